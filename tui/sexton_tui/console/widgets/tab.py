"""A pane's title in the top line."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Static

from sexton_tui.console.core.lines import line
from sexton_tui.console.widgets.drawing import content_of


class Tab(Static):
    """A pane's title; a click chooses the pane."""

    class Clicked(Message):
        """The pane ``pane`` was asked for."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, text: str, pane: str) -> None:
        super().__init__(content_of([line(text)]), classes="tab")
        self.pane = pane

    def on_click(self) -> None:
        self.post_message(self.Clicked(self.pane))
