"""What was not read yet says so: no empty frame looks like nothing there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from sexton.store.protocol import Store
from sexton_tui.console import polling
from sexton_tui.console.app import ConsoleOptions, SextonConsole
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.core.subjects import OfJob, OfProposal, OfQueue, OfRun, OfTick, Subject
from tests.screens.conftest import Scene, shown, until
from tests.support import scene

OPENED: Sequence[Subject] = (
    OfJob("backup-db"),
    OfRun("backup-db", scene.NOW, 1),
    OfTick("backup-db", scene.NOW),
    OfProposal("gl-export", 1),
    OfQueue("gpu"),
)


def test_every_pane_and_screen_says_that_it_is_being_read_and_soon_what_is_in_the_way(
    seeded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "READ_WITHIN", 3600.0)
    said, now, may_open = reading_line().text, [0.0], threading.Event()
    open_store = SextonConsole._open

    def hangs(self: SextonConsole, read_only: bool) -> Store:
        may_open.wait()
        return open_store(self, read_only)

    monkeypatch.setattr(SextonConsole, "_open", hangs)
    options = ConsoleOptions(seeded.url, clock=lambda: scene.NOW)

    async def scenario() -> None:
        app = SextonConsole(options, monotonic=lambda: now[0])
        async with app.run_test(size=(120, 40)) as pilot:
            assert shown(app).count(said) == 6  # in each block of the overview
            assert len(app.main.query("#panes > *")) == 1  # the others are made when they are first chosen
            for key in "23456789":
                await pilot.press(key)
                assert said in shown(app)
                assert "does not answer" not in shown(app)
            for subject in OPENED:
                app.open(subject)
                await until(pilot, lambda: app.screen is not app.main, "it is open")
                await until(pilot, lambda: said in shown(app), "it says that it is being read")
                await pilot.press("escape")
            now[0] = 3.5
            await until(pilot, lambda: f"{said}  no data yet; the database" in shown(app), "and what is in the way")
            may_open.set()
            await until(pilot, lambda: "How far ahead claims" in shown(app), "the data are there")
            assert said not in shown(app)

    asyncio.run(scenario())
