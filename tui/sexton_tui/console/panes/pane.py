"""What all panes have in common: a table in the midst, and a line below that says what part of all it shows."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Static

from sexton_tui.console.core.lines import DIM, Part, Row, line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.view import View
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.table import RowTable


class Pane(Container, View):
    """One pane. ``table``, where it has one, takes the focus when the pane is chosen."""

    table: RowTable | None = None

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.ascii_only = ascii_only

    @property
    def subject(self) -> Subject | None:
        """What the row under the cursor is about: in the table that has the focus, else in the pane's first."""
        for table in self.query(RowTable):
            if table.has_focus:
                return table.about
        return None if self.table is None else self.table.about

    @property
    def focus_target(self) -> Widget | None:
        return self.table

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows in the pane's table."""
        assert self.table is not None  # noqa: S101 - composed before it is shown
        self.table.show(rows)

    def tell(self, *parts: Part) -> None:
        """Say this in the line below."""
        told = [(part, DIM) if isinstance(part, str) else part for part in parts]
        self.query_one(".info", Static).update(content_of([line(*told)], ascii_only=self.ascii_only))
