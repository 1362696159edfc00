"""Acting on a console as an operator does: by keys, and by looking at the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from textual.pilot import Pilot

from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import running, shown, until

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
    await pilot.press("4")
    await sees(pilot, app, "1 to 9 of 9 jobs")
    await pilot.press("ctrl+home")
    for _ in range(20):
        if app.job_under_cursor == name:
            return
        await pilot.press("down")
    raise AssertionError(f"no job {name}")
