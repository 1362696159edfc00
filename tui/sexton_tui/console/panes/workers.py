"""Who runs what: each worker, with its slots and whether it is alive."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton.cluster_views import WorkerView
from sexton_tui.console.core import tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

_MOST = 200


class WorkersPane(Pane):
    """Workers by name."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.WORKER_COLUMNS, id="worker-table", ascii_only=self.ascii_only)
        yield self.table

    def request(self) -> Request:
        return lambda store: store.reads.workers(stopped=True)

    def show(self, shown: Shown, data: tuple[WorkerView, ...]) -> None:
        self.show_rows([tables.worker_row(worker, shown.now) for worker in data[:_MOST]])
