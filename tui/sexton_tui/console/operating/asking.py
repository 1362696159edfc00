"""Keys that ask before they act: one question at a time, and what is typed meanwhile is for it alone."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import ScreenStackError
from textual.events import Event, Key

from sexton_tui.console.acts import Act
from sexton_tui.console.held_keys import HeldKeys
from sexton_tui.console.widgets.dialogs import Dialog, Reading

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.store.protocol import Store

Answer = TypeVar("Answer")
AskingApp = TypeVar("AskingApp", bound="Asking")

_AT_ONCE = 0.2  # seconds; a read that takes longer is told


def asks(questions: Callable[[AskingApp], Coroutine[Any, Any, Act | None]]) -> Callable[[AskingApp], None]:
    """An action that asks ``questions``, and carries out the act that comes of them. While it asks, no other does."""

    def action(app: AskingApp) -> None:
        if not app.is_asking:
            app.is_asking = True
            app.hold_keys()
            app.run_worker(_asked(app, questions(app)), name=questions.__name__)

    action.__name__, action.__doc__ = questions.__name__, questions.__doc__
    return action


async def _asked(app: Asking, questions: Coroutine[Any, Any, Act | None]) -> None:
    act, app.has_asked = None, False
    try:
        act = await questions
    finally:
        app.is_asking = False
        if act is None and not app.has_asked and app.is_running:
            app.swallow_keys()
        else:
            app.drop_keys()
    if act is not None:
        await app.act(act)


class Asking(HeldKeys):
    """Asks by dialogs."""

    is_asking = False
    """Whether an action has not got its answers yet."""
    has_asked = False
    """Whether the newest of them has come to a dialog."""

    @abstractmethod
    async def act(self, act: Act) -> None:
        """Carry out an act and say what became of it."""

    @abstractmethod
    async def read(self, request: Callable[[Store], Any]) -> Any:
        """What was read; None after saying why not."""

    def passes(self, event: Event) -> bool:
        is_left = isinstance(event, Key) and event.key == "escape" and isinstance(self.screen, Reading)
        return super().passes(event) or is_left

    async def ask(self, dialog: Dialog[Answer]) -> Answer | None:
        """The answer; None where the dialog was left. Keys that were held are the dialog's."""
        self.has_asked = True
        return await self.push_screen_wait(dialog)

    async def read_for(self, title: str, request: Callable[[Store], Any]) -> Any:
        """What was read for a dialog of this title; None after saying why not, or where it was left by escape."""
        reading = asyncio.create_task(self.read(request))
        try:
            if (await asyncio.wait({reading}, timeout=_AT_ONCE))[0]:
                return reading.result()
            return await self._told_reading(title, reading)
        finally:
            reading.cancel()

    async def _told_reading(self, title: str, reading: asyncio.Task[Any]) -> Any:
        left = asyncio.Event()
        screen, self.has_asked = Reading(title, left.set), True
        self.push_screen(screen)
        leaving = asyncio.create_task(left.wait())
        try:
            await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return None if left.is_set() else reading.result()
        finally:
            leaving.cancel()
            with contextlib.suppress(ScreenStackError):  # the console is being left
                if self.screen is screen:
                    self.pop_screen()
