from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select, update
from textual.pilot import Pilot

from sexton.store import tables
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.core.subjects import OfTick
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees
from tests.screens.test_console_untrusted import assert_clean
from tests.support import scene


def test_a_job_opens_part_by_part_down_to_a_runs_output(seeded: Scene) -> None:
    revised(seeded)

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await press(pilot, "4")
        await sees(pilot, app, "sync-eu")
        await to_sync_eu(pilot, app)
        await sees(pilot, app, "every 5 minutes")
        await sees(pilot, app, "Sun 2026-03-29 04:35:00 CEST 03-29 02:35:00Z")
        assert "0 of the newest 7 succeeded" in shown(app)

        await pilot.press("tab")  # ticks: what is to come, and what was
        await sees(pilot, app, "clock +1h today")
        await pilot.press("@")
        await press(pilot, "02:12")
        await pilot.press("enter")
        await until(pilot, lambda: "02:10:00" in shown(app) and "02:15:00" not in shown(app), "as of another time")
        await pilot.press("enter")
        await sees(pilot, app, "try 1")  # explained, and its run below
        await sees(pilot, app, "failed 7")
        await pilot.press("enter")
        await sees(pilot, app, "failed, exit code 7")
        await sees(pilot, app, "connecting to db-eu")
        await pilot.press("v", "v")
        await sees(pilot, app, "stderr only")
        assert "connecting to db-eu" not in shown(app)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.view.subject, OfTick), "a run's tick is explained")
        await pilot.press("escape", "escape", "escape")

        await pilot.press("[")  # back from the other time to what is newest
        await sees(pilot, app, "to come")
        await pilot.press("tab")
        await sees(pilot, app, "7 runs")
        await pilot.press("tab")
        await sees(pilot, app, "Failures a day  7 in 182 days")
        await pilot.press("tab")
        await sees(pilot, app, "revised")
        await pilot.press("enter")
        await sees(pilot, app, "+ ben")
        await sees(pilot, app, "by ben, 2026-03-29 01:30:41.250 UTC, 1h00m ago")

    play(seeded.console(), act, (80, 24))


async def to_sync_eu(pilot: Pilot[Any], app: SextonConsole) -> None:
    for _ in range(20):
        if app.job_under_cursor == "sync-eu":
            break
        await pilot.press("down")
    await pilot.press("enter")


def revised(seeded: Scene) -> None:
    """Give sync-eu another owner an hour ago."""
    (first,) = seeded.rows(select(tables.revisions).where(tables.revisions.c.job_id == 5))
    at = scene.NOW - 60 * scene.MINUTE
    definition = first.definition.replace('"owner":"data"', '"owner":"ben"')
    keys = {**first._mapping, "revision": 2, "definition": definition, "in_force_since": at, "applied_at": at}
    with seeded.engine.begin() as connection:
        connection.execute(insert(tables.revisions).values({**keys, "applied_by": "ben"}))
        connection.execute(update(tables.jobs).where(tables.jobs.c.job_id == 5).values(revision=2))


def test_a_hostile_job_changes_nothing_in_any_of_its_parts(hostile: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await press(pilot, "4")
        await until(pilot, lambda: app.job_under_cursor == scene.HOSTILE_NAME, "the hostile job is chosen")
        await pilot.press("enter")
        for told in ("revision 1  active", "enter explains", "1 run", "Failures a day", "1 change"):
            await sees(pilot, app, told)
            assert_clean(app)
            await pilot.press("tab")
        await sees(pilot, app, "revision 1  active")
        await pilot.press("tab", "tab")
        await sees(pilot, app, "1 run")
        await pilot.press("enter")
        await sees(pilot, app, "failed, exit code 1")
        assert_clean(app)
        await pilot.press("e")
        await sees(pilot, app, "try 1")
        assert_clean(app)
        assert app.is_running

    play(hostile.console(), act, (80, 24))
