"""From a takeover down to why one tick did not run, and the answer to a proposal, by keys."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import insert, select
from textual.pilot import Pilot

from sexton.claims import Origin
from sexton.store import tables
from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees
from tests.support import scene


def test_a_takeover_opens_into_decisions_these_into_ticks_and_a_tick_into_why(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("2")
        await sees(pilot, app, "term 41: sched-2 took over")
        await pilot.press("enter")
        await sees(pilot, app, "sexton ▸ Takeovers ▸ term 41")
        await sees(pilot, app, "12 merged into it")
        await pilot.press("down", "enter")
        await sees(pilot, app, "minutely-sync  ticks after 02:00:00 to 02:13:00, under term 41")
        assert app.job_under_cursor == "minutely-sync"
        await sees(pilot, app, "to 02:12:00")
        await pilot.press("down", "enter")
        await sees(pilot, app, "02:12:00 UTC, 18m41s ago")
        await sees(pilot, app, "`* * * * *` names 02:12 in UTC")
        await sees(pilot, app, "02:13:00 fired, 12 merged into it")
        await pilot.press("escape", "escape", "escape")
        await until(pilot, lambda: app.screen is app.main, "all is closed")

    play(seeded.console(), act)


def test_a_gap_that_the_same_leader_ended_opens_into_the_decisions_about_it(seeded: Scene) -> None:
    ended = scene.NOW - 5 * scene.MINUTE
    told = json.dumps({"term": 41, "gap_from": (ended - 12 * scene.MINUTE).isoformat()})
    event = {"event_id": 900, "at": ended, "actor": "sched-2", "action": "term.gap", "detail": told}
    counts = {"missed": 11, "fired": 1, "merged": 10, "skipped": 0, "expired": 0, "held": 0}
    stretch = {"after": ended - 11 * scene.MINUTE, "upto": ended, "decided_at": ended + scene.SECOND}
    about = {"term": 41, "job_id": 2, "cause": "late leader", "revision": 1, "policy": "latest", "reason": "was away"}
    with seeded.engine.begin() as connection:
        connection.execute(insert(tables.events).values(**event))
        connection.execute(insert(tables.decisions).values(**counts, **stretch, **about))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("2")
        await sees(pilot, app, "02:13:41      02:25:41      same leader  12m00s  11")
        await sees(pilot, app, "sched-2 wrote no claims from 02:13:41 to 02:25:41")
        await pilot.press("down")
        await sees(pilot, app, "term 41: sched-2 took over from sched-1")
        await sees(pilot, app, "later, a gap of 12m00s")
        await pilot.press("up", "enter")
        await sees(pilot, app, "Takeovers ▸ term 41, gap to 2026-03-29 02:25:41 UTC")
        await sees(pilot, app, "was away")
        assert "gl-export" not in shown(app)

    play(seeded.console(), act)


def test_a_part_of_a_proposal_is_approved_and_the_rest_rejected(seeded: Scene) -> None:
    proposal = select(tables.proposals)

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("3")
        await sees(pilot, app, "gl-export")
        await pilot.press("enter")
        await sees(pilot, app, "02:10:00 UTC, 20m41s ago")  # the ticks that would run
        await pilot.press("enter")
        await sees(pilot, app, "proposal    1: 2 held ticks, open until")
        await until(pilot, lambda: "a approve" in shown(app).splitlines()[-1], "its key is offered of a held tick, too")
        await pilot.press("a")
        await sees(pilot, app, "Under the cursor: 02:05:00")
        await sees(pilot, app, "Approve 2: 02:05:00 to 02:10:00, starting 02:30:41")
        await press(pilot, "some")
        await sees(pilot, app, "'some' names no ticks")
        await pilot.press("enter")  # answers nothing
        await pilot.press("home", "ctrl+k")
        await press(pilot, "02:10")
        await sees(pilot, app, "Approve 1, reject the other 1 for good: 02:10:00, starting")
        await pilot.press("tab")
        await press(pilot, "bank agrees")
        await pilot.press("enter")
        await sees(pilot, app, "What is rejected never runs.")
        assert "Approve 1, reject the other 1 for good?" in shown(app)
        await pilot.press("n")
        await sees(pilot, app, "Which: all")
        await pilot.press("enter")  # as it was typed
        await sees(pilot, app, "Approve 1, reject the other 1 for good?")
        await pilot.press("y")
        await until(pilot, lambda: seeded.rows(proposal)[0].state == "approved", "it is answered")
        await pilot.press("escape")
        await sees(pilot, app, "approved in part")
        await until(pilot, lambda: "approve" not in shown(app).splitlines()[-1], "no key answers it once more")

    play(seeded.console(), act)
    (answered,) = seeded.rows(proposal)
    assert (answered.answered_by, answered.note) == ("ana@test", "bank agrees")
    claim = select(tables.claims.c.scheduled_at).where(tables.claims.c.origin == int(Origin.HELD))
    assert [f"{row.scheduled_at:%H:%M}" for row in seeded.rows(claim)] == ["02:10"]


def test_held_ticks_are_rejected_with_a_reason_and_never_by_a_read_only_console(seeded: Scene) -> None:
    proposal = select(tables.proposals.c.state, tables.proposals.c.note)

    async def look(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("3")
        await sees(pilot, app, "gl-export")
        await pilot.press("x", "a")
        assert "reject" not in shown(app).splitlines()[-1]

    play(seeded.console(read_only=True), look)
    assert seeded.rows(proposal) == [("open", None)]

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("3")
        await sees(pilot, app, "gl-export")
        await pilot.press("x")
        await sees(pilot, app, "2 held ticks would not run")
        await press(pilot, "paid by hand")
        await pilot.press("enter")
        await sees(pilot, app, "no ticks are held")

    play(seeded.console(), act)
    assert seeded.rows(proposal) == [("rejected", "paid by hand")]
