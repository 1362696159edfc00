"""A pane's title in the top line."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Static

from sexton_tui.console.core.keys import PaneName
from sexton_tui.console.core.lines import WARN, line
from sexton_tui.console.widgets.drawing import content_of


class Tab(Static):
    """A pane's title; a click chooses the pane."""

    class Clicked(Message):
        """The pane ``pane`` was asked for."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, name: PaneName) -> None:
        super().__init__(classes="tab")
        self.pane = name.id
        self._titles = name
        self._mark = ""
        self._is_short = False

    def on_mount(self) -> None:
        self._write()

    def show_mark(self, mark: str) -> None:
        """Stand this behind the title: how many wait there."""
        if mark != self._mark:
            self._mark = mark
            self._write()

    def show_short(self, is_short: bool) -> None:
        """Show the shorter title, where it has one."""
        self._is_short = is_short
        self._write()

    def _write(self) -> None:
        title = self._titles.short if self._is_short and self._titles.short else self._titles.title
        self.update(content_of([line(f"{self._titles.key} {title}", (self._mark, WARN))]))

    def on_click(self) -> None:
        self.post_message(self.Clicked(self.pane))
