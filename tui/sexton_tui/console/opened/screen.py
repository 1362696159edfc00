"""Screens on top of the panes: each is about one subject, is read once a second as panes are, and escape goes back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from sexton_tui.console.core.lines import WARN, Line, line
from sexton_tui.console.core.subjects import Subject, crumb
from sexton_tui.console.view import Shown, View
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.head import Head
from sexton_tui.console.widgets.keys_footer import KeysFooter
from sexton_tui.console.widgets.read_lines import ReadLines


class OpenedScreen(Screen[None], View):
    """One subject, opened. What it shows stands between the head and the footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("q", "leave", "back", show=False),
    ]

    def __init__(self, subject: Subject | None, *, ascii_only: bool = False) -> None:
        super().__init__(classes="ascii" if ascii_only else None)
        self.ascii_only = ascii_only
        self._subject = subject
        self.trail: tuple[str, ...] = ()
        """Through what it was opened, itself the last."""

    @property
    def subject(self) -> Subject | None:
        return self._subject

    @property
    def crumb(self) -> str:
        """The screen's word in the trail of what was opened."""
        return "" if self._subject is None else crumb(self._subject)

    def compose(self) -> ComposeResult:
        yield Head(ascii_only=self.ascii_only)
        yield from self.compose_body()
        yield KeysFooter()

    def compose_body(self) -> ComposeResult:
        """What stands between the head and the footer."""
        yield from ()

    def on_mount(self) -> None:
        self.query_one(Head).show_trail(self.trail)
        if (target := self.focus_target) is not None:
            target.focus()

    def action_leave(self) -> None:
        self.dismiss()


class LinesScreen(OpenedScreen):
    """A page of lines to scroll through."""

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield ReadLines(id="lines", ascii_only=self.ascii_only)

    @property
    def focus_target(self) -> Widget | None:
        return self.query_one("#page")

    def show(self, shown: Shown, data: Any) -> None:
        if data is not None:
            self.show_lines(self.lines_of(shown, data))

    @abstractmethod
    def lines_of(self, shown: Shown, data: Any) -> list[Line]:
        """The page."""

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show these lines; who reads at the end stays at the end."""
        page = self.query_one("#page", VerticalScroll)
        is_at_end = page.max_scroll_y > 0 and page.scroll_offset.y >= page.max_scroll_y
        self.query_one("#lines", Static).update(content_of(lines, ascii_only=self.ascii_only))
        if is_at_end:
            page.scroll_end(animate=False)

    def show_missing(self, sentence: str) -> None:
        self.show_lines([line((sentence, WARN))])
