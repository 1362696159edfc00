"""A table of as many rows as there are: it draws the lines on the screen, and asks for what it does not have.

Rows come in blocks (``core/windows.py``). A row that is not here yet is drawn empty, so that no key waits for the
database. The cursor stays on its row while rows change, or on the newest where the table follows its top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sexton_tui.console.core.lines import Row, to_ascii
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.core.windows import Window, span_of_blocks
from sexton_tui.console.themes import cell_styles
from sexton_tui.console.view import Awaiting, CursorMoved, OpenAsked
from sexton_tui.console.widgets.drawing import strip_of

_WIDEST = 48  # cells of a column that is not the last
_HEAD = 1  # line


class FleetTable(ScrollView, Awaiting, can_focus=True):
    """Shows a window over a long list. ``follows_top``: a cursor on the first row stays on the newest."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"fleet--header", "fleet--cursor"}
    DEFAULT_CSS = """
    FleetTable { height: 1fr; background: $surface; color: $foreground; scrollbar-size-horizontal: 1; }
    FleetTable > .fleet--header { background: $panel; color: $foreground; text-style: bold; }
    FleetTable > .fleet--cursor { background: $block-cursor-blurred-background; color: $foreground; text-style: bold; }
    FleetTable:focus > .fleet--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: $block-cursor-text-style;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,ctrl+home", "first", show=False),
        Binding("end,ctrl+end", "last", show=False),
        Binding("left", "aside(-8)", show=False),
        Binding("right", "aside(8)", show=False),
        Binding("enter", "open", show=False),
    ]

    def __init__(
        self,
        columns: Sequence[str],
        *,
        id: str,  # noqa: A002 - Textual's name
        ascii_only: bool = False,
        follows_top: bool = False,
    ) -> None:
        super().__init__(id=id)
        self._titles = tuple(columns)
        self._ascii_only = ascii_only
        self._follows_top = follows_top
        self.window = Window()
        self._is_read = False
        self._trouble = ""
        self._cursor = 0
        self._wanted: str | None = None  # the key of the row under the cursor, once it was seen
        self._widths = [cell_len(title) for title in self._titles]
        self._styles: Mapping[str, Style] = {}
        self._looks: dict[tuple[str, bool], Style] = {}

    # --- what is under the cursor -----------------------------------------------------------------

    @property
    def cursor_row(self) -> int:
        """The place of the row under the cursor."""
        return self._cursor

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        row = self.window.row(self._cursor)
        return None if row is None else row.key

    @property
    def about(self) -> Subject | None:
        """What the row under the cursor is about."""
        row = self.window.row(self._cursor)
        return None if row is None else row.about

    @property
    def visible_rows(self) -> tuple[int, int]:
        """The first and the last place on the screen."""
        first = int(self.scroll_offset.y)
        return first, first + self._page - 1

    @property
    def wanted_rows(self) -> tuple[int, int]:
        """Offset and number of the rows to read for what is on the screen."""
        return span_of_blocks(*self.visible_rows)

    @property
    def _page(self) -> int:
        return max(self.scrollable_content_region.height - _HEAD, 1)

    # --- rows -------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Another list: from its first row on."""
        self.window.renew()
        self._is_read = False
        self._cursor, self._wanted = 0, None
        self._widths = [cell_len(title) for title in self._titles]
        self.scroll_to(0, 0, animate=False, immediate=True, force=True)
        self.refresh()

    def show_rows(self, generation: int, offset: int, rows: Sequence[Row], total: int) -> None:
        """Show these rows from place ``offset`` on, out of ``total``; nothing where they are of an older list."""
        first, last = self.visible_rows
        before = [self.window.row(place) for place in range(first, last + 1)]
        old_total, wanted = self.window.total, self._wanted
        if not self.window.put(generation, offset, rows, total):
            return
        was_read, self._is_read = self._is_read, True
        is_wider = self._widen(rows)
        if old_total != total or is_wider:
            self.virtual_size = Size(sum(self._widths) + len(self._widths) * 2, total + _HEAD)
        place = None if wanted is None or (self._follows_top and self._cursor == 0) else self.window.place_of(wanted)
        new = min(self._cursor if place is None else place, max(total - 1, 0))
        has_moved = new != self._cursor
        if has_moved:  # the rows on the screen move with it
            self.scroll_to(y=max(first + new - self._cursor, 0), animate=False, immediate=True, force=True)
        self._cursor, self._wanted = new, self.selected
        if has_moved or is_wider or old_total != total or not was_read:
            self.refresh()
        else:
            for at, old in enumerate(before):
                if self.window.row(first + at) != old:
                    self._refresh_line(first + at)
        self._keep_in_sight()
        if self._wanted != wanted:
            self.post_message(CursorMoved())

    def tell_wait(self, trouble: str) -> None:
        if not self._is_read and trouble != self._trouble:
            self._refresh_line(int(self.scroll_offset.y))
        self._trouble = trouble

    def get_row_index(self, key: str) -> int:
        """Where the row with this key is. Raises ``KeyError`` where it is not known."""
        place = self.window.place_of(key)
        if place is None:
            raise KeyError(key)
        return place

    def _widen(self, rows: Sequence[Row]) -> bool:
        widths = list(self._widths)
        for row in rows:
            for at, cell in enumerate(row.cells):
                widest = _WIDEST if at < len(widths) - 1 else 4 * _WIDEST
                widths[at] = max(widths[at], min(cell_len(cell.text), widest))
        if widths == self._widths:
            return False
        self._widths = widths
        return True

    # --- moving -----------------------------------------------------------------------------------

    def move_cursor(self, *, row: int, on_top: bool = False) -> None:
        """Put the cursor on this place, or the nearest there is. ``on_top``: as the first on the screen, where as many
        follow."""
        new = min(max(row, 0), max(self.window.total - 1, 0))
        old, self._cursor = self._cursor, new
        self._wanted = self.selected
        if new != old:
            self._refresh_line(old)
            self._refresh_line(new)
        if on_top:
            self.scroll_to(y=new, animate=False, immediate=True, force=True)
        self._keep_in_sight()
        if new != old:
            self._tell_moved()

    def _tell_moved(self) -> None:
        self.post_message(CursorMoved(reads=not self.window.is_known(*self.visible_rows)))

    def _keep_in_sight(self) -> None:
        top = int(self.scroll_offset.y)
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, immediate=True, force=True)
        elif self._cursor >= top + self._page:
            self.scroll_to(y=self._cursor - self._page + 1, animate=False, immediate=True, force=True)

    def action_move(self, rows: int) -> None:
        self.move_cursor(row=self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Turn by so many screenfuls; the cursor stays on its line of the screen."""
        y = max(int(self.scroll_offset.y) + pages * self._page, 0)
        self.scroll_to(y=y, animate=False, immediate=True, force=True)
        self.move_cursor(row=self._cursor + pages * self._page)

    def action_first(self) -> None:
        self.move_cursor(row=0)

    def action_last(self) -> None:
        self.move_cursor(row=self.window.total - 1)

    def action_aside(self, cells: int) -> None:
        self.scroll_to(x=max(self.scroll_offset.x + cells, 0), animate=False, immediate=True, force=True)

    def action_open(self) -> None:
        if (about := self.about) is not None:
            self.post_message(OpenAsked(about))

    def on_click(self, event: Click) -> None:
        place = int(self.scroll_offset.y) + event.y - _HEAD
        if event.y < _HEAD or not 0 <= place < self.window.total:
            return
        if place == self._cursor:
            self.action_open()
        self.move_cursor(row=place)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self.window.is_known(*self.visible_rows):
            self._tell_moved()  # by the wheel, too

    def on_resize(self, event: Resize) -> None:
        self._keep_in_sight()

    # --- drawing ----------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._restyle())
        self._restyle()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()

    def _restyle(self) -> None:
        self._styles = {word: Style.parse(style) for word, style in cell_styles(self.app.theme_variables).items()}
        self._looks.clear()
        self.refresh()

    def _refresh_line(self, place: int) -> None:
        y = place - int(self.scroll_offset.y) + _HEAD
        if _HEAD <= y <= self._page:
            self.refresh(Region(0, y, self.size.width, 1))

    def _look(self, word: str, *, is_cursor: bool) -> Style:
        look = self._looks.get((word, is_cursor))
        if look is None:
            look = self.rich_style + self._styles.get(word, Style.null())
            if is_cursor:
                look += self.get_component_rich_style("fleet--cursor", partial=True)
            self._looks[word, is_cursor] = look
        return look

    def render_line(self, y: int) -> Strip:
        left, width = int(self.scroll_offset.x), self.size.width
        if y < _HEAD:
            head = self.get_component_rich_style("fleet--header")
            names = zip(self._titles, self._widths, strict=True)
            titles = [Segment(f" {set_cell_size(title, wide)} ", head) for title, wide in names]
            return Strip(titles).crop_extend(left, left + width, head)
        if not self._is_read and y == _HEAD:
            return strip_of(reading_line(self._trouble, ascii_only=self._ascii_only), width, self.rich_style)
        place = int(self.scroll_offset.y) + y - _HEAD
        row = self.window.row(place)
        is_cursor = place == self._cursor and place < self.window.total
        rest = self._look("", is_cursor=is_cursor)
        if row is None:
            waits = " ..." if place < self.window.total else ""
            return Strip([Segment(waits, self._look("dim", is_cursor=is_cursor))]).crop_extend(left, left + width, rest)
        segments = []
        for cell, wide in zip(row.cells, self._widths, strict=True):
            text = to_ascii(cell.text) if self._ascii_only else cell.text
            if cell_len(text) > wide:
                text = set_cell_size(text, wide - 1) + ("~" if self._ascii_only else "…")
            segments.append(Segment(f" {set_cell_size(text, wide)} ", self._look(cell.style, is_cursor=is_cursor)))
        return Strip(segments).crop_extend(left, left + width, rest)
