"""What waits where: each queue with its oldest claim, its workers and its limits."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton.cluster_views import QueueView
from sexton_tui.console.core import tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable


class QueuesPane(Pane):
    """Queues by name."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.QUEUE_COLUMNS, id="queue-table", ascii_only=self.ascii_only)
        yield self.table

    def request(self) -> Request:
        return lambda store: store.reads.queues()

    def show(self, shown: Shown, data: tuple[QueueView, ...]) -> None:
        self.show_rows([tables.queue_row(queue, shown.now) for queue in data])
