"""What all panes have in common: a table, what it is narrowed to, and a line below that says what it shows.

``/`` narrows every list: by SQL where it is long (jobs, runs), else by the cells of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Static

from sexton_tui.console.core.filters import Filter, filter_words, filtered, keys_of, parse_filter
from sexton_tui.console.core.lines import DIM, WARN, Line, Part, Row, line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.view import View
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.fleet_table import FleetTable
from sexton_tui.console.widgets.table import RowTable


class Pane(Container, View):
    """One pane. ``table``, where it has one, takes the focus when the pane is chosen."""

    table: RowTable | FleetTable | None = None

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.ascii_only = ascii_only
        self.filter = Filter()
        self._told = Line()
        self._found = Static(classes="info found")

        self._found.display = False

    def on_mount(self) -> None:
        self.is_findable = self.table is not None
        self.mount(self._found)

    @property
    def find_question(self) -> str:
        """What ``/`` asks for."""
        return "Show only: " + ", ".join(["letters in their order", *(f"{key}:WORD" for key in self.filter_keys)])

    @property
    def filter_keys(self) -> Sequence[str]:
        """The keys that this list knows."""
        return keys_of(self.table.titles) if isinstance(self.table, RowTable) else ()

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

    def find_by(self, text: str) -> None:
        """Raises ``InvalidInput`` with what to write."""
        self.filter = parse_filter(text, self.filter_keys)
        self.find = text

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows in the pane's table, as far as they pass the filter."""
        assert isinstance(self.table, RowTable)  # noqa: S101 - composed before it is shown
        found = rows if self.filter.is_empty else filtered(rows, self.table.titles, self.filter)
        self.table.show(found)
        self._found.display = not self.filter.is_empty
        if self._found.display:
            told = line((filter_words(self.find, len(found), len(rows)), WARN))
            self._found.update(content_of([told], ascii_only=self.ascii_only))

    def tell(self, *parts: Part) -> None:
        """Say this in the line below."""
        told: list[Any] = [(part, DIM) if isinstance(part, str) else part for part in parts]
        if (one := line(*told)) != self._told:
            self._told = one
            self.query_one(".info", Static).update(content_of([one], ascii_only=self.ascii_only), layout=False)
