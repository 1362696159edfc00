"""What the parts of an opened job have in common: each reads for itself, and is either lines or a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from sexton_tui.console.core.lines import WARN, Line, Row, line
from sexton_tui.console.core.subjects import OfJob, Subject
from sexton_tui.console.core.typed_instants import parse_reading
from sexton_tui.console.view import Shown, View
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.read_lines import ReadLines
from sexton_tui.console.widgets.table import RowTable

_JUST_AFTER = timedelta(microseconds=1)


class Section(View):
    """A part of the job's page. ``shown``: what the screen was last shown with."""

    DEFAULT_CSS = "Section { height: 1fr; width: 1fr; }"
    title = ""
    is_in_time = False

    def __init__(self, job: str, *, ascii_only: bool) -> None:
        super().__init__(id=self.title.lower())
        self.job = job
        self.ascii_only = ascii_only
        self.shown: Shown | None = None

    @property
    def subject(self) -> Subject | None:
        return OfJob(self.job)


class LinesSection(Section):
    """Lines to scroll through."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield ReadLines(id="lines", ascii_only=self.ascii_only)

    @property
    def focus_target(self) -> Widget | None:
        return self.query_one("#page")

    def show_lines(self, lines: Sequence[Line]) -> None:
        self.query_one("#lines", Static).update(content_of(lines, ascii_only=self.ascii_only))

    def show_missing(self, sentence: str) -> None:
        self.show_lines([line((sentence, WARN))])


class TableSection(Section):
    """A table with a line below it that says which part of it is shown. Keys act on what is under the cursor."""

    COLUMNS: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        self.table = RowTable(self.COLUMNS, id=f"{self.id}-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(classes="info")

    @property
    def subject(self) -> Subject | None:
        return self.table.about or super().subject

    @property
    def focus_target(self) -> Widget | None:
        return self.table

    def show_rows(self, rows: Sequence[Row], told: str) -> None:
        self.table.show(rows)
        self.tell(told)

    def tell(self, text: str) -> None:
        self.query_one(".info", Static).update(content_of([line(text)], ascii_only=self.ascii_only))

    def show_missing(self, sentence: str) -> None:
        self.show_rows([], sentence)


class PagedSection(TableSection):
    """A table whose older rows come by the page, or from any instant on."""

    is_paged = True
    is_in_time = True

    def __init__(self, job: str, *, ascii_only: bool) -> None:
        super().__init__(job, ascii_only=ascii_only)
        self.before: list[datetime] = []
        self.older: datetime | None = None
        self.is_at = False
        """Whether the page begins at an instant that was asked for."""

    def turn(self, pages: int) -> None:
        if pages < 0 and self.before:
            self.before.pop()
            self.is_at = self.is_at and bool(self.before)
        elif pages > 0 and self.older is not None:
            self.before.append(self.older)
            self.older = None  # until the page has come

    def jump_to(self, text: str, now: datetime) -> None:
        at = parse_reading(text, now, now) if text.strip() else None
        self.before, self.is_at = ([], False) if at is None else ([at + _JUST_AFTER], True)

    @property
    def place(self) -> str:
        """Which page this is, and the keys to others."""
        keys = (["[ newer"] if self.before else []) + (["] older"] if self.older is not None else [])
        return "   ".join([f"page {len(self.before) + 1}", *keys, "@ another time"])
