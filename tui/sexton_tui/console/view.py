"""What a pane and an opened screen have in common: what they read, how they show it, and what is under the cursor.

A request is made on the screen's thread and carried out on another: it captures values, never widgets. The app reads
for the one view that is visible, once a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.widget import Widget

if TYPE_CHECKING:  # the first screen waits for none of it
    from datetime import datetime

    from sexton.cluster_views import Overview
    from sexton.store.protocol import Store
    from sexton_tui.console.core.history import LatenessHistory
    from sexton_tui.console.core.subjects import Subject

Request = Callable[["Store"], Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """What every view is shown with. ``overview.now`` is on the clock of the zone that the screen shows; ``read_only``:
    no key that changes something is to be told."""

    overview: Overview
    history: LatenessHistory
    ascii_only: bool
    read_only: bool = False

    @property
    def now(self) -> datetime:
        return self.overview.now


class OpenAsked(Message):
    """Enter, or a click, on a row that is about something: open it."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject


class CursorMoved(Message):
    """Another row is under the cursor, so other keys may be offered. ``reads``: so is what the view shows."""

    def __init__(self, *, reads: bool = False) -> None:
        super().__init__()
        self.reads = reads


class Awaiting:
    """A widget that says that it is being read, until it first has something to show."""

    def tell_wait(self, trouble: str) -> None:
        """Say what is in the way, too; nothing where it was read."""


class View(Widget):
    """A pane or an opened screen."""

    is_findable = False
    """Whether it can be narrowed by ``find_by``."""
    is_paged = False
    """Whether ``turn`` shows other pages."""
    find = ""
    """What it is narrowed by now."""
    is_waiting = False
    """Whether it came to the front and was not read since."""

    def request(self) -> Request:
        """What to read now; of itself, nothing."""
        return lambda _store: None

    def show(self, shown: Shown, data: Any) -> None:
        """Show what ``request`` read."""

    def tell_wait(self, trouble: str) -> None:
        """What was not read yet says what is in the way of that; nothing, where ``trouble`` is empty."""
        for widget in self.walk_children():
            if isinstance(widget, Awaiting):
                widget.tell_wait(trouble)

    def show_missing(self, sentence: str) -> None:
        """What was asked for is not, or no more: say so."""

    @property
    def subject(self) -> Subject | None:
        """What enter and the keys of actions are about."""
        return None

    @property
    def focus_target(self) -> Widget | None:
        """What takes the keys when the view comes to the front."""
        return None

    has_failures = False
    """Whether ``toggle_failed`` narrows it to what failed."""
    is_sortable = False
    """Whether ``sort`` gives it another order."""
    is_in_time = False
    """Whether ``jump_to`` shows it as of another time."""

    def find_by(self, text: str) -> None:
        """Show only what the text finds, from now on; all by an empty one. Raises ``InvalidInput``."""
        self.find = text

    def sort(self) -> None:
        """The next order."""

    def toggle_failed(self) -> None:
        """Only what failed, or all again."""

    def jump_to(self, text: str, now: datetime) -> None:
        """Show it from the time on that the text says; as of now by an empty one. Raises ``InvalidInput``."""

    @property
    def find_question(self) -> str:
        """What is asked for when it is to be narrowed."""
        return ""

    @property
    def is_narrowed(self) -> bool:
        """Whether ``widen`` shows more than is shown."""
        return bool(self.find)

    def widen(self) -> None:
        """Show all, as of now."""
        self.find_by("")

    def turn(self, pages: int) -> None:
        """The page before or after, where there is one."""
