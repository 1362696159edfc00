"""The audit log: what was done to the cluster, by whom and why, newest first."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton.views import EventView
from sexton_tui.console.core import tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

_EVENTS = 100


class AuditPane(Pane):
    """Events, newest first."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.EVENT_COLUMNS, id="event-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table

    def request(self) -> Request:
        return lambda store: store.reads.events_page(limit=_EVENTS)

    def show(self, shown: Shown, data: tuple[EventView, ...]) -> None:
        self.show_rows([tables.event_row(event, shown.now) for event in data])
