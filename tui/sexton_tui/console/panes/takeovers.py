"""Every term with its gap; the one under the cursor opens into its decisions, below."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.store.protocol import Store
from sexton.views import TakeoverDetail, TakeoverView
from sexton_tui.console.core import details, tables
from sexton_tui.console.core.lines import DIM, line
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.table import RowTable


class TakeoversPane(Pane):
    """Every term with its gap; the one under the cursor opens into its decisions, below."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(
            tables.TAKEOVER_COLUMNS, id="takeover-table", ascii_only=self.ascii_only, follows_top=True, reads=True
        )
        self._decisions = RowTable(tables.DECISION_COLUMNS, id="decision-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(id="takeover-head")
        yield self._decisions

    def request(self) -> Request:
        table = self.table
        selected = None if table is None or table.cursor_row == 0 else table.selected  # the first row: the newest

        def read(store: Store) -> tuple[tuple[TakeoverView, ...], TakeoverDetail | None]:
            takeovers = store.reads.takeovers(100)
            known = [str(takeover.term) for takeover in takeovers]
            term = selected if selected in known else next(iter(known), None)
            return takeovers, None if term is None else store.reads.takeover(int(term), 200)

        return read

    def show(self, shown: Shown, data: tuple[tuple[TakeoverView, ...], TakeoverDetail | None]) -> None:
        takeovers, detail = data
        now = shown.now
        self.show_rows([tables.takeover_row(takeover, now) for takeover in takeovers])
        head = self.query_one("#takeover-head", Static)
        if detail is None:
            head.update(content_of([line(("no takeover yet", DIM))]))
            self._decisions.show([])
            return
        head.update(content_of(details.takeover_lines(detail, now), ascii_only=self.ascii_only))
        self._decisions.show([tables.decision_row(decision, now) for decision in detail.decisions])
