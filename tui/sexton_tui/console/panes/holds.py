"""Held ticks that wait for a person."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.hold_views import HoldView
from sexton_tui.console.core import tables
from sexton_tui.console.core.words import plural
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable


class HoldsPane(Pane):
    """Open proposals, oldest first."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.HOLD_COLUMNS, id="hold-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(classes="info")

    def request(self) -> Request:
        return lambda store: store.reads.holds()

    def show(self, shown: Shown, data: tuple[HoldView, ...]) -> None:
        self.show_rows([tables.hold_row(hold, shown.now) for hold in data])
        self.tell(plural(len(data), "proposal") + " to answer" if data else "no ticks are held")
