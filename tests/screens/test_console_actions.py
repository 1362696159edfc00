from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from sqlalchemy import select, update
from textual.pilot import Pilot
from textual.widgets import Input

from sexton.claims import Origin
from sexton.store import tables
from sexton_tui.console import polling
from sexton_tui.console.acts import Done
from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees, to_job
from tests.support import troubles


def test_a_pause_asks_why_and_is_recorded_with_who_and_why(seeded: Scene) -> None:
    jobs, events = tables.jobs.c, tables.events.c

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        await pilot.press("p")
        await sees(pilot, app, "Pause minutely-sync: why?")
        await pilot.press("enter")
        await sees(pilot, app, "a reason, please")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main, "the question is gone")
        assert seeded.rows(select(jobs.paused_at).where(jobs.job_id == 2))[0].paused_at is None
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.focused, Input), "the question is asked again")
        await press(pilot, "q 1 p")  # keys of the console are letters here
        await pilot.press("enter")
        await sees(pilot, app, "minutely-sync is paused")
        row = seeded.rows(select(jobs.paused_at, jobs.paused_by, jobs.pause_reason).where(jobs.job_id == 2))[0]
        assert (row.paused_by, row.pause_reason) == ("ana@test", "q 1 p")
        (event,) = seeded.rows(select(events.actor, events.detail).where(events.job_id == 2))
        assert event.actor == "ana@test"
        await sees(pilot, app, "minutely-sync    paused")

    play(seeded.console(), act)


def test_resume_ends_a_pause_and_says_when_there_is_none(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "backup-db")
        await pilot.press("r")
        await sees(pilot, app, "s  stay undone")
        await pilot.press("s")
        await sees(pilot, app, "backup-db is resumed; u undoes it")
        assert seeded.rows(select(tables.jobs.c.paused_at).where(tables.jobs.c.job_id == 7))[0].paused_at is None
        await sees(pilot, app, "backup-db        active")
        await pilot.press("r")
        await sees(pilot, app, "neither paused nor quarantined")

    play(seeded.console(), act)


def test_a_trigger_is_confirmed_and_writes_one_manual_claim(seeded: Scene) -> None:
    manual = select(tables.claims.c.job_id).where(tables.claims.c.origin == int(Origin.MANUAL))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "sync-eu")
        await pilot.press("t")
        await sees(pilot, app, "Run sync-eu once, now?")
        await pilot.press("n")
        await until(pilot, lambda: app.screen is app.main, "the question is gone")
        assert seeded.rows(manual) == []
        await pilot.press("t")
        await sees(pilot, app, "Run sync-eu once, now?")
        await pilot.press("y")
        await sees(pilot, app, "sync-eu is triggered")
        assert [row.job_id for row in seeded.rows(manual)] == [5]
        await to_job(pilot, app, "backup-db")
        await pilot.press("t")
        await sees(pilot, app, "Run backup-db once, now?")
        await pilot.press("y")
        await sees(pilot, app, "stays")

    play(seeded.console(), act)


def test_resign_asks_the_leader_to_hand_over(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("R")
        await sees(pilot, app, "Ask sched-2 to hand over?")
        await pilot.press("y")
        await sees(pilot, app, "sched-2 is asked to hand over")
        assert seeded.rows(select(tables.cluster.c.resign_requested))[0].resign_requested

    play(seeded.console(), act)


def test_a_leader_that_is_not_confirmed_is_not_asked_to_hand_over(seeded: Scene) -> None:
    with seeded.engine.begin() as connection:
        connection.execute(update(tables.heartbeat).values(confirmation="unconfirmed"))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("R")
        await sees(pilot, app, "Ask sched-2 to hand over?")
        await pilot.press("y")
        await sees(pilot, app, "not asked to resign: it leads unconfirmed")
        assert not seeded.rows(select(tables.cluster.c.resign_requested))[0].resign_requested

    play(seeded.console(), act)


def test_a_halt_asks_why_is_shown_with_who_and_why_and_is_lifted_by_the_same_key(seeded: Scene) -> None:
    cluster = tables.cluster.c

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.focused, Input), "it is asked why")
        await press(pilot, "restore")
        await pilot.press("enter")
        await sees(pilot, app, "!! HALTED by ana@test since 02:30:41 (restore)")
        (row,) = seeded.rows(select(cluster.halted, cluster.halted_by, cluster.halt_reason))
        assert (row.halted, row.halted_by, row.halt_reason) == (True, "ana@test", "restore")
        await pilot.press("8")
        await sees(pilot, app, "!! HALTED")
        await pilot.press("h")
        await sees(pilot, app, "Lift the halt?")
        await pilot.press("y")
        await sees(pilot, app, "the halt is lifted")
        assert not seeded.rows(select(cluster.halted))[0].halted
        await until(pilot, lambda: "!! HALTED" not in shown(app), "the banner is gone")

    play(seeded.console(), act)


def test_a_node_is_forced_by_its_name_or_refused_where_nobody_heard_of_it(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for name, said in (("sched-9", "sched-9 cannot be forced"), ("sched-1", "sched-1 is to take the term")):
            await pilot.press("F")
            await until(pilot, lambda: isinstance(app.focused, Input), "it is asked which")
            await sees(pilot, app, "These can: sched-1, sched-2 (leads now), sched-3")
            await press(pilot, name)
            await pilot.press("enter")
            await sees(pilot, app, f"Force {name} to lead?")
            await pilot.press("y")
            await sees(pilot, app, said)
        assert seeded.rows(select(tables.cluster.c.forced_to))[0].forced_to == "sched-1"
        await sees(pilot, app, "! FORCED to sched-1")

    play(seeded.console(), act)


def test_a_clock_that_jumped_is_accepted_only_after_a_yes(seeded: Scene) -> None:
    accepts = select(tables.cluster.c.clock_accepts)
    with seeded.engine.begin() as connection:
        troubles.clock_in_doubt(connection)

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await sees(pilot, app, "!! CLOCK IN DOUBT: the database's clock jumped by +1h00m")
        before = seeded.rows(accepts)[0].clock_accepts
        await pilot.press("C")
        await sees(pilot, app, "Take the database's clock for the truth?")
        await pilot.press("n")
        await until(pilot, lambda: app.screen is app.main, "the question is gone")
        assert seeded.rows(accepts)[0].clock_accepts == before
        await pilot.press("C")
        await sees(pilot, app, "Take the database's clock for the truth?")
        await pilot.press("y")
        await sees(pilot, app, "the database's clock is accepted")
        assert seeded.rows(accepts)[0].clock_accepts == before + 1

    play(seeded.console(), act)


def test_a_clock_that_nobody_doubts_is_not_asked_about(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("C")
        await sees(pilot, app, "no node doubts the database's clock")
        assert app.screen is app.main

    play(seeded.console(), act)


def test_the_leaders_process_is_killed_only_after_a_yes(seeded: Scene) -> None:
    killed: list[str] = []

    def kill() -> str:
        killed.append("sched-2")
        return "killed sched-2, process 4002"

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("K")
        await sees(pilot, app, "Kill sched-2?")
        await sees(pilot, app, "Claims are written 1m00s ahead")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main, "the question is gone")
        assert killed == []
        await pilot.press("K")
        await sees(pilot, app, "Kill sched-2?")
        await pilot.press("enter")  # held down, or once too often: it answers nothing
        assert killed == []
        await pilot.press("y")
        await sees(pilot, app, "killed sched-2, process 4002")
        assert killed == ["sched-2"]

    play(seeded.console(kill_leader=kill), act)


def test_whoever_started_it_can_end_it(seeded: Scene) -> None:
    over: list[bool] = []

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        over.append(True)
        await until(pilot, lambda: not app.is_running or app._exit, "it ends")

    play(seeded.console(is_over=lambda: bool(over)), act)


def test_without_a_way_to_kill_and_read_only_no_action_is_offered(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await sees(pilot, app, "1 proposal held")
        assert "a approves" not in shown(app)
        await to_job(pilot, app, "minutely-sync")
        offered = {binding.binding.action for binding in app.screen.active_bindings.values()}
        assert "find" in offered
        assert not offered & {
            "pause",
            "resume",
            "trigger",
            "resign",
            "halt",
            "force_leader",
            "accept_clock",
            "kill_leader",
        }
        for key in "axprPtsbcoduRhFCK":
            await pilot.press(key)
            assert app.screen is app.main
        await pilot.press("question_mark")
        await sees(pilot, app, "Started read-only")

    play(seeded.console(read_only=True, kill_leader=lambda: "never"), act)
    assert seeded.rows(select(tables.events.c.event_id)) == [(1,), (2,), (3,), (4,)]


def test_the_action_layer_refuses_what_a_read_only_console_must_not_do(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await app.act(lambda _: Done("done"))
        await sees(pilot, app, "started read-only: nothing was changed")

    play(seeded.console(read_only=True), act)


def test_an_action_whose_answer_does_not_come_has_an_unknown_outcome(
    seeded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "READ_WITHIN", 0.3)  # the store's limit

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        blocker = sqlite3.connect(seeded.engine.url.database or "", isolation_level=None)
        try:
            blocker.execute("BEGIN IMMEDIATE")
            await to_job(pilot, app, "backup-db")
            await pilot.press("r")
            await sees(pilot, app, "s  stay undone")
            await pilot.press("s")
            await sees(pilot, app, "outcome unknown")
        finally:
            blocker.close()

    play(seeded.console(), act)
