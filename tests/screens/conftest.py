"""A console over a real SQLite ledger with the scene in it, its clocks standing still."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy import Engine, create_engine
from textual.app import App
from textual.pilot import Pilot

from sexton_tui.console.app import ConsoleOptions, SextonConsole
from sexton_tui.console.held_keys import HeldKeys
from tests.support import scene
from tests.support.ledgers import make_ledger


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's terminal reaches the screens."""
    for name in list(os.environ):
        if name == "NO_COLOR" or (name.startswith("TEXTUAL") and not name.startswith("TEXTUAL_SNAPSHOT")):
            monkeypatch.delenv(name)


_drawn: WeakKeyDictionary[App[Any], asyncio.Event] = WeakKeyDictionary()
"""Set when a console has drawn something."""


@pytest.fixture(autouse=True)
def noticed_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SextonConsole, "post_display_hook", lambda app: _drawn[app].set())
    made = SextonConsole.__init__

    def init(app: SextonConsole, *given: Any, **named: Any) -> None:
        made(app, *given, **named)
        _drawn[app] = asyncio.Event()

    monkeypatch.setattr(SextonConsole, "__init__", init)


@pytest.fixture(autouse=True)
def answers_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has seen what it answers."""
    monkeypatch.setattr(HeldKeys, "unseen", 0.0)


class Scene:
    """The scene in a SQLite file: its url, and an engine to look into it."""

    def __init__(self, path: Path, *, hostile: bool = False) -> None:
        self.url = f"sqlite:///{path}"
        make_ledger(self.url)
        self.engine: Engine = create_engine(self.url)
        with self.engine.begin() as connection:
            scene.seed(connection, hostile=hostile)

    def rows(self, query: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(query))

    def console(self, *, ascii_only: bool = False, **options: Any) -> SextonConsole:
        """A console on it whose database clock stands at the scene's now."""
        given = {"clock": lambda: scene.NOW, "actor": "ana@test", "toast_seconds": 30.0, **options}
        return SextonConsole(ConsoleOptions(self.url, **given), ascii_only=ascii_only, monotonic=lambda: 0.0)


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[Scene]:
    """The scene."""
    made = Scene(tmp_path / "ledger.db")
    yield made
    made.engine.dispose()


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Scene]:
    """The scene with a job whose every text is an attack."""
    made = Scene(tmp_path / "ledger.db", hostile=True)
    yield made
    made.engine.dispose()


async def until(pilot: Pilot[Any], condition: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    """Wait until the condition holds."""
    deadline, drawn = time.monotonic() + seconds, _drawn[pilot.app]
    while time.monotonic() < deadline:
        drawn.clear()
        if condition():
            return
        # A look at the whole screen costs as much as a key: there is another when something was drawn, and once a
        # second for what stands nowhere on it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drawn.wait(), 1.0)
        await pilot.pause(0.05)
    raise AssertionError(f"not within {seconds} s: {what}; the screen shows:\n{shown(pilot.app)}")


def shown(app: Any) -> str:
    """What the screen shows, as text."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


@contextlib.asynccontextmanager
async def running(app: SextonConsole, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Pilot[Any]]:
    """The console, running headless, with its first data on the screen."""
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "sched-2" in shown(app), "the first data arrives")
        yield pilot
