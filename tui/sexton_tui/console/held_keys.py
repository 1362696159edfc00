"""What is typed between a key and the dialog that it opens.

Keys are held from an asking key on until its dialog stands, or until it is known that there is none: no letter of an
answer is ever a key of a pane. A dialog that takes text gets them in their order. A question that is answered by one
key gets none of them, for what was typed before it was seen is no answer to it, nor is the rest of the same sentence:
it is swallowed until there is a pause in it. Escape leaves the question all the same.

Where no dialog comes, what is being typed was meant for one: it is swallowed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App
from textual.events import Event, Key, Paste
from textual.screen import Screen
from textual.timer import Timer

PAUSE = 0.7  # seconds without a key: what comes next is no more part of what was typed
_NEVER_HELD = ("ctrl+c", "ctrl+q")


class HeldKeys(App[None]):
    """An app whose keys can be held. ``unseen``: for so many seconds a question stands before anybody has read it."""

    unseen: ClassVar[float] = 0.3

    def __init__(self) -> None:
        super().__init__()
        self._held: list[Key | Paste] | None = None
        self._swallowing: Timer | None = None
        self._unheard: Callable[[], None] | None = None  # tells that a question did not hear a key

    def hold_keys(self) -> None:
        """From now on keys go nowhere, until they are given to a dialog or dropped."""
        self._end_swallowing()
        if self._held is None:
            self._held = []

    def swallow_keys(self, seconds: float = PAUSE) -> None:
        """The dialog that was typed for does not come: keys go nowhere until none came for a while, or escape."""
        self.hold_keys()
        self._swallowing = self.set_timer(seconds, self.drop_keys)

    def _end_swallowing(self) -> None:
        if self._swallowing is not None:
            self._swallowing.stop()
            self._swallowing = None

    def drop_keys(self) -> None:
        """What was held is of no use, and keys go where they went."""
        self._end_swallowing()
        self._held = self._unheard = None

    def give_text(self, dialog: Screen[Any]) -> None:
        """The dialog stands: it has what was held, and what is typed from now on."""
        self.call_later(self._give, dialog)  # in this app's own turn no key comes between

    async def _give(self, dialog: Screen[Any]) -> None:
        held = self._held or []
        self.drop_keys()
        for event in sorted(held, key=lambda one: one.time):  # some had been to the pane and come back
            if self.screen is dialog:
                await self.on_event(Paste(event.text) if isinstance(event, Paste) else Key(event.key, event.character))

    def give_answer(self, question: Screen[Any], unheard: Callable[[], None]) -> None:
        """The question stands, and is answered by one key: by the first after a pause in what was being typed."""
        self.call_later(self._hear, question, unheard)

    async def _hear(self, question: Screen[Any], unheard: Callable[[], None]) -> None:
        held = self._held or []
        self.drop_keys()
        if self.screen is not question:
            return
        if any(_is_escape(event) for event in held):
            await self.on_event(Key("escape", None))
        elif seconds := PAUSE if held else self.unseen:
            self.swallow_keys(seconds)
            self._unheard = unheard

    def passes(self, event: Event) -> bool:
        """Whether the event goes its way while keys are held."""
        return not isinstance(event, Key | Paste) or (isinstance(event, Key) and event.key in _NEVER_HELD)

    async def on_event(self, event: Event) -> None:
        if self._held is None or self.passes(event):
            await super().on_event(event)
        elif self._swallowing is None:
            if isinstance(event, Key | Paste):
                self._held.append(event)
        elif not _is_escape(event):
            self.swallow_keys()
            if self._unheard is not None:
                self._unheard()
        else:
            is_asked = self._unheard is not None
            self.drop_keys()
            if is_asked:
                await super().on_event(event)


def _is_escape(event: Event) -> bool:
    return isinstance(event, Key) and event.key == "escape"
