"""What an operator does to jobs, ticks and workers by keys, with its effect in the ledger, and what undoes it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from sqlalchemy import select, update
from textual.pilot import Pilot
from textual.widgets import Input

from sexton.claims import Origin, State
from sexton.inputs import own_inputs
from sexton.job_formats import FORMAT
from sexton.store import open_store, tables
from sexton.store.protocol import ChangeKind, JobChange, StoreOptions
from sexton_tui.console.acts import Done
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.core.subjects import OfWorker
from tests.screens.conftest import Scene, until
from tests.screens.playing import play, press, sees, to_job
from tests.support import scene

EVENTS = select(tables.events.c.actor, tables.events.c.action).order_by(tables.events.c.event_id.desc())


@pytest.fixture(autouse=True)
def own_inputs_id(seeded: Scene) -> None:
    """Ticks are computed here as the cluster computes them, and its workers are of this release."""
    with seeded.engine.begin() as connection:
        connection.execute(update(tables.cluster).values(inputs_id=own_inputs().inputs_id))
        connection.execute(update(tables.workers).values(job_format=FORMAT))


async def answer(pilot: Pilot[Any], app: SextonConsole, text: str) -> None:
    """Type an answer into the question that is asked."""
    await until(pilot, lambda: isinstance(app.focused, Input), "a question is asked")
    await press(pilot, text)
    await pilot.press("enter")


def test_a_tick_ahead_is_skipped_and_the_skip_undone(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "weekly-report")
        assert app.offers("undo") is False
        await pilot.press("s")
        await answer(pilot, app, "holiday")
        await sees(pilot, app, "weekly-report 2026-03-30T04:00:00Z will not run")
        await sees(pilot, app, "u undoes it")
        await pilot.press("u")
        await sees(pilot, app, "Undo the skip of weekly-report 2026-03-30T04:00:00Z?")
        await pilot.press("y")
        await sees(pilot, app, "weekly-report 2026-03-30T04:00:00Z will run")
        assert app.offers("undo") is False

    play(seeded.console(), act)
    assert [row.actor for row in seeded.rows(EVENTS)[:2]] == ["ana@test", "ana@test"]


def test_ticks_of_the_past_are_backfilled_after_they_were_shown(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        await pilot.press("b")
        await answer(pilot, app, "02:05")
        await sees(pilot, app, "'02:05' names no ticks; write 02:00 to 03:30")
        await answer(pilot, app, " to 02:08")  # it is asked still
        await sees(pilot, app, "3 of 3 ticks of minutely-sync would run (02:05:00 to 02:07:00)")
        await answer(pilot, app, "the feed is back")
        await sees(pilot, app, "minutely-sync: 3 ticks to run")

    play(seeded.console(), act)
    of_backfill = select(tables.claims.c.scheduled_at).where(tables.claims.c.origin == int(Origin.BACKFILL))
    assert len(seeded.rows(of_backfill)) == 3


def test_a_run_is_explained_cancelled_and_an_ended_one_run_again(seeded: Scene) -> None:
    claims = tables.claims.c

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("5")
        await sees(pilot, app, "weekly-report")
        await pilot.press("c")
        await sees(pilot, app, "of weekly-report?")
        await pilot.press("y")
        await sees(pilot, app, "1 run asked to stop")
        await pilot.press("f")
        await sees(pilot, app, "7 runs only failed")
        assert not app.offers("cancel")
        assert app.offers("run_again")
        await pilot.press("o")
        await answer(pilot, app, "db-eu is back")
        await sees(pilot, app, "sync-eu 2026-03-29T02:30:00Z runs again")
        await pilot.press("e")
        await sees(pilot, app, "02:30:00 UTC, 41 s ago")

    play(seeded.console(), act)
    stopped = seeded.rows(select(claims.cancel_requested).where(claims.job_id == 9, claims.state == State.RUNNING))
    assert [row.cancel_requested for row in stopped] == [True]


def test_all_jobs_are_paused_and_resumed_for_maintenance(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("P")
        await answer(pilot, app, "storage moves")
        await sees(pilot, app, "all jobs are paused, 8 jobs by this")
        await sees(pilot, app, "! ALL PAUSED by ana@test since 02:30:41 (storage moves)")
        await pilot.press("P")
        await sees(pilot, app, "paused by ana@test (storage moves)")
        await pilot.press("s")
        await sees(pilot, app, "8 jobs resumed")

    play(seeded.console(), act)
    assert [row.paused_at is None for row in seeded.rows(select(tables.jobs.c.paused_at))].count(False) == 1


def test_an_undo_and_a_yes_end_no_pause_but_that_which_was_told(seeded: Scene) -> None:
    """What somebody else has made of the job meanwhile stays."""

    def pauses_anew(why: str, minutes: int) -> None:
        options = StoreOptions(seeded.url, application="bob", clock=lambda: scene.NOW + minutes * scene.MINUTE)
        with contextlib.closing(open_store(options)) as store:
            job_id = store.edits.find_job("minutely-sync").job_id
            store.edits.edit([JobChange(ChangeKind.RESUME, job_id)], "bob")
            store.edits.edit([JobChange(ChangeKind.PAUSE, job_id, why=why)], "bob")

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        await pilot.press("p")
        await answer(pilot, app, "mine")
        await sees(pilot, app, "minutely-sync is paused; u undoes it")
        pauses_anew("data corrupt", 1)
        await pilot.press("u")
        await sees(pilot, app, "Undo the pause of minutely-sync?")
        await pilot.press("y")
        await sees(pilot, app, "minutely-sync is paused anew by bob")
        await pilot.press("r")
        await sees(pilot, app, "Resume minutely-sync, paused by bob (data corrupt)")
        pauses_anew("do not run", 2)
        await pilot.press("s")
        await sees(pilot, app, "do not run")

    play(seeded.console(), act)
    assert seeded.rows(select(tables.jobs.c.paused_by).where(tables.jobs.c.job_id == 2)) == [("bob",)]


def test_a_worker_is_drained_and_that_is_taken_back(seeded: Scene) -> None:
    asked = select(tables.workers.c.drain_requested).where(tables.workers.c.name == "worker-1")

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("6")
        await until(pilot, lambda: app.subject == OfWorker("worker-1"), "the worker is under the cursor")
        await pilot.press("d")
        await sees(pilot, app, "Drain worker worker-1?")
        await pilot.press("y")
        await sees(pilot, app, "worker-1 takes no more claims")
        assert seeded.rows(asked) == [(True,)]
        await pilot.press("u")
        await sees(pilot, app, "Undo the drain of worker-1?")
        await pilot.press("y")
        await sees(pilot, app, "worker-1 goes on")

    play(seeded.console(), act)
    assert seeded.rows(asked) == [(False,)]


def test_what_the_database_refuses_is_said_and_the_console_goes_on(seeded: Scene) -> None:
    """A role that may only read, say."""

    def refused(_store: object) -> Done:
        raise RuntimeError("permission denied for table jobs\n[SQL: ...]")

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await app.act(refused)
        await sees(pilot, app, "not done: RuntimeError: permission denied for table jobs")
        assert app.is_running

    play(seeded.console(), act)
