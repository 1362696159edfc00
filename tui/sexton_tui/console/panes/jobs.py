"""Jobs by name, a page at a time; find by name."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.views import JobFilter, JobPage
from sexton_tui.console.core import tables
from sexton_tui.console.core.words import plural
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

JOBS_A_PAGE = 100


class JobsPane(Pane):
    """Jobs by name, a page at a time; find by name."""

    is_findable = True
    is_paged = True

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.offset_rows = 0
        self._total = 0

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.JOB_COLUMNS, id="job-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(classes="info")

    def request(self) -> Request:
        which, offset = JobFilter(text=self.find), self.offset_rows
        return lambda store: store.reads.jobs_page(which, offset, JOBS_A_PAGE)

    def show(self, shown: Shown, data: JobPage) -> None:
        self._total = data.total
        self.show_rows([tables.job_row(job, shown.now, ascii_only=shown.ascii_only) for job in data.jobs])
        found = plural(data.total, "job") + (f" with {self.find!r} in the name" if self.find else "")
        self.tell(f"{self.offset_rows + 1} to {self.offset_rows + len(data.jobs)} of {found}" if data.jobs else found)

    def turn(self, pages: int) -> None:
        offset = self.offset_rows + pages * JOBS_A_PAGE
        if 0 <= offset < max(self._total, 1):
            self.offset_rows = offset

    def find_by(self, text: str) -> None:
        super().find_by(text)
        self.offset_rows = 0
