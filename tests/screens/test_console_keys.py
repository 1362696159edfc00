from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, select, update
from textual.pilot import Pilot
from textual.widgets import Input

from sexton.claims import State
from sexton.store import tables
from sexton.store.tables import claims, live_outputs, watches
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.core.subjects import OfRun
from sexton_tui.console.opened.job import JobScreen
from sexton_tui.console.widgets.fleet_table import FleetTable
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees, to_job
from tests.support import scene


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
            ("4", "minutely-sync"),
            ("5", "exit code 7"),
            ("6", "default, reports"),
            ("8", "why storage moves tonight"),
            ("1", "Leadership"),
        ):
            await pilot.press(key)
            await sees(pilot, app, text)

    play(seeded.console(), act)


def test_enter_opens_a_job_and_escape_goes_back(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "backup-db")
        await pilot.press("enter")
        await sees(pilot, app, "ana: storage moves tonight")
        assert app.job_under_cursor == "backup-db"
        await pilot.press("r")  # actions are offered here too
        await sees(pilot, app, "s  stay undone")
        await pilot.press("s")
        await sees(pilot, app, "backup-db is resumed")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main, "the job is closed")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen), "the job is opened")
        await pilot.press("1")
        await sees(pilot, app, "Leadership")

    play(seeded.console(), act)


def test_a_run_opens_into_its_output_with_controls_shown(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("5")
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


def test_find_narrows_every_list_and_escape_shows_all_again(seeded: Scene) -> None:
    async def find(pilot: Pilot[Any], app: SextonConsole, text: str) -> None:
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await press(pilot, text)  # in the place of what was there
        await pilot.press("enter")

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "backup-db")
        await find(pilot, app, "sync")
        await sees(pilot, app, "1 to 2 of 2 jobs  found by 'sync'")
        await find(pilot, app, "color:red")
        await sees(pilot, app, "this list has no color:")  # asked again
        await pilot.press("escape")
        await find(pilot, app, "state:paused bkdb")
        await sees(pilot, app, "1 to 1 of 1 job  found by 'state:paused bkdb'; escape shows all")
        await pilot.press("escape")
        await sees(pilot, app, "1 to 9 of 9 jobs")
        await pilot.press("S", "S")
        await sees(pilot, app, "by newest failure")
        await until(pilot, lambda: app.job_under_cursor == "sync-eu", "it is first")
        await pilot.press("5")
        await find(pilot, app, "sync-eu")
        await sees(pilot, app, "1 to 7 of 7 runs  found by 'sync-eu'")
        await pilot.press("9")
        await find(pilot, app, "hrzn")
        await sees(pilot, app, "found by 'hrzn': 1 of")

    play(seeded.console(), act)


def test_runs_go_on_below_the_screen_and_from_any_time_on(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("5")
        await sees(pilot, app, "of 256+ runs")
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown")
        await sees(pilot, app, "of 214 runs")  # by going there
        await pilot.press("home")
        await pilot.press("f", "f", "end")
        await sees(pilot, app, "128 of 128 runs from the oldest on; home: the newest")  # at once
        oldest = min(run.finished_at for run in seeded.rows(select(tables.runs.c.finished_at)))
        await sees(pilot, app, f"{oldest:%H:%M:%S}")
        await pilot.press("home")
        await sees(pilot, app, "of 256+ runs")
        await pilot.press("at")
        await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
        await press(pilot, "02:20")
        await pilot.press("enter")
        await sees(pilot, app, "as of 2026-03-29 02:20:00 UTC")
        table = app.query_one(FleetTable)
        await until(pilot, lambda: app.job_under_cursor is not None and table.cursor_row > 0, "its row is there")
        assert table.visible_rows[0] == table.cursor_row  # on top; newer ones are above
        assert isinstance(app.subject, OfRun)
        assert f"{app.subject.scheduled_at:%H:%M}" in ("02:19", "02:20")
        await pilot.press("escape", "home")
        await sees(pilot, app, "of 256+ runs")
        await sees(pilot, app, "now       nightly-billing")

    play(seeded.console(), act)


def test_the_cursor_stays_on_its_row_while_rows_come_and_go(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        with seeded.engine.begin() as connection:
            connection.execute(update(tables.jobs).where(tables.jobs.c.job_id == 7).values(retired_at=scene.NOW))
        await sees(pilot, app, "1 to 8 of 8 jobs")
        await until(pilot, lambda: app.job_under_cursor == "minutely-sync", "the cursor is on its job")

    play(seeded.console(), act)


def test_no_leader_and_halted_cannot_be_overlooked_on_any_pane(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("8")
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


def test_a_run_that_goes_on_opens_into_its_output_as_it_comes_and_then_into_what_became_of_it(seeded: Scene) -> None:
    with seeded.engine.begin() as connection:
        claim = connection.execute(select(claims).where(claims.c.state == State.RUNNING).limit(1)).one()

    def writes(text: bytes) -> None:
        with seeded.engine.begin() as connection:
            connection.execute(delete(live_outputs))
            values = {"token": claim.token, "stdout": text, "stderr": b"", "stdout_bytes": 10 * len(text)}
            connection.execute(insert(live_outputs).values(**values, stderr_bytes=0, written_at=claim.granted_at))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("5")
        await sees(pilot, app, "heartbeat-ping")
        table = app.pane.table
        assert table is not None
        table.move_cursor(row=table.get_row_index(f"running {claim.token}"))
        await pilot.press("enter")
        await sees(pilot, app, "asking its worker for the output so far")
        writes(b"first\x1b[31m\xff")
        await sees(pilot, app, "first\\x1b[31m\\xff")
        writes(b"second")
        await sees(pilot, app, "second")
        await sees(pilot, app, "60 B so far, the last 6 B shown")
        assert seeded.rows(select(watches.c.token)) == [(claim.token,)]
        with seeded.engine.begin() as connection:
            connection.execute(update(claims).where(claims.c.token == claim.token).values(state=State.SUCCEEDED))
        await sees(pilot, app, "this run is over")

    play(seeded.console(), act)
