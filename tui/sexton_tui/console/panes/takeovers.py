"""Every term with its gap, and the gaps within it; what is under the cursor opens into its decisions, below."""

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
    """Every term with its gap, and the gaps within it; what is under the cursor opens into its decisions, below."""

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self._known: tuple[TakeoverView, ...] = ()

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
        selected = None if table is None or table.cursor_row == 0 else table.about  # the first row: the newest
        known = self._known

        def read(store: Store) -> tuple[tuple[TakeoverView, ...], TakeoverDetail | None]:
            takeovers = store.reads.takeovers(100, known)
            found = tables.chosen_takeover(takeovers, selected)
            return takeovers, None if found is None else store.reads.opened_takeover(*found, 200)

        return read

    def show(self, shown: Shown, data: tuple[tuple[TakeoverView, ...], TakeoverDetail | None]) -> None:
        takeovers, detail = data
        self._known, now = takeovers, shown.now
        self.show_rows(tables.takeover_rows(takeovers, now))
        head = self.query_one("#takeover-head", Static)
        if detail is None:
            head.update(content_of([line(("no takeover yet", DIM))]))
            self._decisions.show([])
            return
        head.update(content_of(details.takeover_lines(detail, now), ascii_only=self.ascii_only))
        self._decisions.show([tables.decision_row(decision, now) for decision in detail.decisions])
