"""Who runs what, and who decides: each worker with its slots, below them the scheduler nodes."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton.cluster_views import WorkerView
from sexton_tui.console.core import members, tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

_MOST = 200


class WorkersPane(Pane):
    """Workers by name; tab goes to the nodes and back. Enter opens either."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.WORKER_COLUMNS, id="worker-table", ascii_only=self.ascii_only)
        self._node_table = RowTable(members.NODE_COLUMNS, id="node-table", ascii_only=self.ascii_only)
        yield self.table
        yield self._node_table

    def request(self) -> Request:
        return lambda store: store.reads.workers(stopped=True)

    def show(self, shown: Shown, data: tuple[WorkerView, ...]) -> None:
        self.show_rows([tables.worker_row(worker, shown.now) for worker in data[:_MOST]])
        self._node_table.show([members.node_row(node, shown.overview) for node in shown.overview.nodes[:_MOST]])
