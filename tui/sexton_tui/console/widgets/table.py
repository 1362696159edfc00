"""A table of short lists (200 rows at most) that keeps its cursor while its rows change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from textual.strip import Strip
from textual.widgets import DataTable

from sexton_tui.console.core.lines import Row, Span
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.core.table_shape import column_widths, keep_place
from sexton_tui.console.themes import cell_styles
from sexton_tui.console.view import Awaiting, CursorMoved, OpenAsked
from sexton_tui.console.widgets.drawing import strip_of, text_of


class RowTable(DataTable[object], Awaiting):
    """Shows the core's rows. Changed cells are changed in place; the cursor stays on its row, or on the newest.

    ``reads``: what is shown beside it hangs on the row under the cursor.
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        id: str,  # noqa: A002 - Textual's name
        ascii_only: bool = False,
        follows_top: bool = False,
        reads: bool = False,
    ) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=1)
        self.titles = tuple(columns)
        self._ascii_only = ascii_only
        self._follows_top = follows_top
        self._reads = reads
        self._widths: list[int] = []
        self._shown: tuple[Row, ...] = ()
        self._is_read = False
        self._trouble = ""
        self._styles: Mapping[str, str] = {}

    def on_mount(self) -> None:
        self._styles = cell_styles(self.app.theme_variables)
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._restyle())
        for title in self.titles:
            self.add_column(title, key=title, width=cell_len(title))

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        if not self._shown or not 0 <= self.cursor_row < len(self._shown):
            return None
        return self._shown[self.cursor_row].key

    @property
    def about(self) -> Subject | None:
        """What the row under the cursor is about."""
        if not self._shown or not 0 <= self.cursor_row < len(self._shown):
            return None
        return self._shown[self.cursor_row].about

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if (about := self.about) is not None:
            self.post_message(OpenAsked(about))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self.post_message(CursorMoved(reads=self._reads))

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows in this order."""
        rows = tuple(rows)
        if not self._is_read:
            self._is_read = True
            self.refresh()
        if rows == self._shown:
            return
        keys = [row.key for row in rows]
        widths = column_widths(self.titles, rows)
        if widths == self._widths and keys == [row.key for row in self._shown]:
            self._change_cells(rows)
        else:
            # Widths that the table measures come a moment after the rows: until then all are cut to their titles.
            for column, width in zip(self.ordered_columns, widths, strict=True):
                column.width = width
            self._widths = widths
            self._change_rows(rows, keys)
        self._shown = rows

    def tell_wait(self, trouble: str) -> None:
        if not self._is_read and trouble != self._trouble:
            self._trouble = trouble
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._is_read or y != self.header_height:
            return super().render_line(y)
        return strip_of(reading_line(self._trouble, ascii_only=self._ascii_only), self.size.width, self.rich_style)

    def _restyle(self) -> None:
        """Draw what is shown in the new theme's colours."""
        self._styles = cell_styles(self.app.theme_variables)
        self._change_rows(self._shown, [row.key for row in self._shown])

    def _change_cells(self, rows: tuple[Row, ...]) -> None:
        for old, new in zip(self._shown, rows, strict=True):
            for title, before, after in zip(self.titles, old.cells, new.cells, strict=True):
                if before != after:
                    self.update_cell(new.key, title, self._cell(after))

    def _change_rows(self, rows: tuple[Row, ...], keys: list[str]) -> None:
        selected, place, top = self.selected, self.cursor_row, self.scroll_y
        self.clear()
        for row in rows:
            self.add_row(*(self._cell(cell) for cell in row.cells), key=row.key)
        if rows:
            self.move_cursor(row=keep_place(keys, selected, place, follows_top=self._follows_top), scroll=False)
            self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def _cell(self, cell: Span) -> object:
        return text_of(cell, self._styles, ascii_only=self._ascii_only)
