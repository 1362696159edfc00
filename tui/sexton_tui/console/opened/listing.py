"""An opened screen with a head of lines and a table below it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from sexton_tui.console.core.lines import WARN, Line, Row, line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.table import RowTable


class ListingScreen(OpenedScreen):
    """``COLUMNS`` are the table's. Keys act on what is under its cursor; on the screen's subject where it is empty."""

    COLUMNS: tuple[str, ...] = ()

    def __init__(self, subject: Subject, *, ascii_only: bool = False) -> None:
        super().__init__(subject, ascii_only=ascii_only)
        self.table = RowTable(self.COLUMNS, id="opened-table", ascii_only=ascii_only)

    def compose_body(self) -> ComposeResult:
        yield Static(classes="opened-head")
        yield self.table

    @property
    def subject(self) -> Subject | None:
        return self.table.about or super().subject

    @property
    def focus_target(self) -> Widget | None:
        return self.table

    def show_head(self, lines: Sequence[Line]) -> None:
        """Show these lines above the table."""
        self.query_one(".opened-head", Static).update(content_of(lines, ascii_only=self.ascii_only))

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows in the table."""
        self.table.show(rows)

    def show_missing(self, sentence: str) -> None:
        self.show_head([line((sentence, WARN))])
        self.show_rows([])
