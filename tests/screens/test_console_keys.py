from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update
from textual.pilot import Pilot
from textual.widgets import Input

from sexton.claims import Origin
from sexton.store import tables
from sexton_tui.console import app as console_app
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.screens import LinesScreen
from tests.screens.conftest import Scene, running, shown, until
from tests.support import scene

Play = Callable[[Pilot[Any], SextonConsole], Coroutine[Any, Any, None]]


def play(app: SextonConsole, act: Play, size: tuple[int, int] = (120, 40)) -> None:
    """Run the console and act on it."""

    async def scenario() -> None:
        async with running(app, size) as pilot:
            await act(pilot, app)

    asyncio.run(scenario())


async def sees(pilot: Pilot[Any], app: SextonConsole, text: str) -> None:
    await until(pilot, lambda: text in shown(app), f"{text!r} is on the screen")


async def press(pilot: Pilot[Any], text: str) -> None:
    for character in text:
        await pilot.press({" ": "space", "-": "minus"}.get(character, character))


async def to_job(pilot: Pilot[Any], app: SextonConsole, name: str) -> None:
    """Put the cursor of the jobs pane on a job."""
    await pilot.press("3")
    await sees(pilot, app, "1 to 9 of 9 jobs")
    for _ in range(20):
        if app.job_under_cursor == name:
            return
        await pilot.press("down")
    raise AssertionError(f"no job {name}")


def test_number_keys_choose_panes_and_the_first_one_answers_the_first_questions(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for text in (
            "● sched-2  term 41  since 02:13:07",
            "queue gpu has no worker",
            "p50",
            "▲ takeover",
            "gap 12m40s",
        ):
            await sees(pilot, app, text)
        for key, text in (
            ("2", "hold: older than grace 60s, waits for an operator"),
            ("3", "minutely-sync"),
            ("4", "exit code 7"),
            ("5", "default, reports"),
            ("6", "why storage moves tonight"),
            ("1", "Leadership"),
        ):
            await pilot.press(key)
            await sees(pilot, app, text)

    play(seeded.console(), act)


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
        await sees(pilot, app, "backup-db is resumed")
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

    play(seeded.console(), act)


def test_resign_asks_the_leader_to_hand_over(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("R")
        await sees(pilot, app, "Ask sched-2 to hand over?")
        await pilot.press("y")
        await sees(pilot, app, "sched-2 is asked to hand over")
        assert seeded.rows(select(tables.cluster.c.resign_requested))[0].resign_requested

    play(seeded.console(), act)


def test_the_leaders_process_is_killed_only_after_a_yes(seeded: Scene) -> None:
    killed: list[str] = []

    def kill() -> str:
        killed.append("sched-2")
        return "killed sched-2, process 4002"

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("K")
        await sees(pilot, app, "Kill sched-2?")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main, "the question is gone")
        assert killed == []
        await pilot.press("K")
        await sees(pilot, app, "Kill sched-2?")
        await pilot.press("enter")
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
        await to_job(pilot, app, "minutely-sync")
        offered = {binding.binding.action for binding in app.screen.active_bindings.values()}
        assert "find" in offered
        assert not offered & {"pause", "resume", "trigger", "resign", "kill_leader"}
        for key in ("p", "r", "t", "R", "K"):
            await pilot.press(key)
            assert app.screen is app.main
        await pilot.press("question_mark")
        await sees(pilot, app, "Started read-only")

    play(seeded.console(read_only=True, kill_leader=lambda: "never"), act)
    assert seeded.rows(select(tables.events.c.event_id)) == [(1,), (2,), (3,), (4,)]


def test_the_action_layer_refuses_what_a_read_only_console_must_not_do(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await app._act(lambda _: "done")
        await sees(pilot, app, "started read-only: nothing was changed")

    play(seeded.console(read_only=True), act)


def test_an_action_whose_answer_does_not_come_has_an_unknown_outcome(
    seeded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_app, "READ_WITHIN", 0.3)  # the store's limit

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        blocker = sqlite3.connect(seeded.engine.url.database or "", isolation_level=None)
        try:
            blocker.execute("BEGIN IMMEDIATE")
            await to_job(pilot, app, "backup-db")
            await pilot.press("r")
            await sees(pilot, app, "outcome unknown")
        finally:
            blocker.close()

    play(seeded.console(), act)


def test_enter_opens_a_job_and_escape_goes_back(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "backup-db")
        await pilot.press("enter")
        await sees(pilot, app, "ana: storage moves tonight")
        assert app.job_under_cursor == "backup-db"
        await pilot.press("r")  # actions are offered here too
        await sees(pilot, app, "backup-db is resumed")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main, "the job is closed")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LinesScreen), "the job is opened")
        await pilot.press("1")
        await sees(pilot, app, "Leadership")

    play(seeded.console(), act)


def test_a_run_opens_into_its_output_with_controls_shown(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("4")
        await sees(pilot, app, "heartbeat-ping")
        await pilot.press("f")
        await sees(pilot, app, "7 runs only failed")
        await pilot.press("enter")
        await sees(pilot, app, "\\x1b[31mretry\\x1b[0m 1")
        await sees(pilot, app, "exit code 7: connection refused by db-eu [primary]")
        await sees(pilot, app, "the last 45 B kept")

    play(seeded.console(), act)


def test_the_takeover_under_the_cursor_shows_its_decisions(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("2")
        await sees(pilot, app, "term 41: sched-2 took over from sched-1, which vanished")
        await sees(pilot, app, "3 jobs, 16 missed: 2 fired, 12 merged, 2 held")
        await pilot.press("down")
        await sees(pilot, app, "term 40: sched-1 took over from sched-3")
        await sees(pilot, app, "no tick was missed")
        await until(pilot, lambda: "gl-export" not in shown(app), "the other's decisions are gone")

    play(seeded.console(), act)


def test_the_newest_takeover_is_followed_until_the_cursor_moves(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("2")
        await sees(pilot, app, "term 41: sched-2 took over")
        later = {"term": 42, "node": "sched-3", "elected_by": "zookeeper", "taken_at": scene.NOW}
        with seeded.engine.begin() as connection:
            connection.execute(insert(tables.takeovers).values(predecessor_ended="resigned", predecessor="x", **later))
        await sees(pilot, app, "term 42: sched-3 took over from x, which handed over")

    play(seeded.console(), act)


def test_find_narrows_jobs_and_runs(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "backup-db")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await press(pilot, "sync")
        await pilot.press("enter")
        await sees(pilot, app, "1 to 2 of 2 jobs with 'sync' in the name")
        await pilot.press("4")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await press(pilot, "sync-eu")
        await pilot.press("enter")
        await sees(pilot, app, "7 runs of job sync-eu")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await press(pilot, "backup")  # in the place of what was there
        await pilot.press("enter")
        await sees(pilot, app, "there is no job 'backup'; near it: backup-db")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await pilot.press("backspace", "enter")
        await sees(pilot, app, "page 1: 103 runs")

    play(seeded.console(), act)


def test_older_runs_are_a_key_away(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("4")
        await sees(pilot, app, "page 1: 103 runs, more with ]")
        await pilot.press("right_square_bracket")
        await sees(pilot, app, "page 2: 100 runs, more with ]")
        await pilot.press("right_square_bracket")
        await sees(pilot, app, "page 3:")
        await pilot.press("left_square_bracket")
        await sees(pilot, app, "page 2:")

    play(seeded.console(), act)


def test_the_cursor_stays_on_its_row_while_rows_come_and_go(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        with seeded.engine.begin() as connection:
            connection.execute(update(tables.jobs).where(tables.jobs.c.job_id == 7).values(retired_at=scene.NOW))
        await sees(pilot, app, "1 to 8 of 8 jobs")
        assert app.job_under_cursor == "minutely-sync"

    play(seeded.console(), act)


def test_no_leader_and_halted_cannot_be_overlooked_on_any_pane(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("6")
        await sees(pilot, app, "term.taken")
        with seeded.engine.begin() as connection:
            connection.execute(update(tables.cluster).values(leader=None))
        await sees(pilot, app, "NO LEADER")
        with seeded.engine.begin() as connection:
            connection.execute(update(tables.cluster).values(halted=True))
        await sees(pilot, app, "HALTED")

    play(seeded.console(), act)


def test_a_ledger_that_cannot_be_read_is_said_and_tried_again(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        (row,) = seeded.rows(select(tables.heartbeat))
        with seeded.engine.begin() as connection:
            connection.execute(delete(tables.heartbeat))
        await until(pilot, lambda: bool(app._trouble), "the trouble is known")
        with seeded.engine.begin() as connection:
            connection.execute(tables.heartbeat.insert().values(**row._mapping))
        await until(pilot, lambda: not app._trouble, "it reads again")

    play(seeded.console(), act)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (240, 60)])
def test_hostile_text_changes_nothing_but_what_it_says(hostile: Scene, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        assert_clean(app)
        for key in "23456":
            await pilot.press(key)
            await pilot.pause(0.3)
            assert_clean(app)
        await pilot.press("3")
        await sees(pilot, app, "a [/x] b\\x1b[2J\\u202e")
        await pilot.press("home")
        await until(pilot, lambda: app.job_under_cursor == scene.HOSTILE_NAME, "the hostile job is chosen")
        await pilot.press("enter")
        await sees(pilot, app, "revision 1")
        assert_clean(app)
        await pilot.press("escape", "p")
        await sees(pilot, app, "why?")
        assert_clean(app)
        await press(pilot, "x")
        await pilot.press("enter")
        paused = select(tables.jobs.c.paused_at).where(tables.jobs.c.job_id == 10)
        await until(pilot, lambda: hostile.rows(paused)[0].paused_at is not None, "it is paused")
        await sees(pilot, app, "paused")
        assert_clean(app)
        await pilot.press("4", "f")
        await sees(pilot, app, "8 runs only failed")
        await pilot.press("enter")
        await sees(pilot, app, "stdout")
        assert_clean(app)
        assert app.is_running

    play(hostile.console(), act, size)


def assert_clean(app: SextonConsole) -> None:
    text = shown(app)
    assert not any(character in text for character in "\x1b\x07\u202e\x9b")


def test_ascii_draws_no_other_character(hostile: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for key in "123456":
            await pilot.press(key)
            await pilot.pause(0.3)
            # Scrollbars are drawn with blocks whatever the locale; everything else is Sexton's.
            other = {character for character in shown(app) if not character.isascii()} - set("▁▂▃▄▅▆▇█▉▊▋▌▍▎▏▔▕ ")
            assert other == set()

    play(hostile.console(ascii_only=True), act, (100, 30))
