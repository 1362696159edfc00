"""Jobs, all of them: a window over the list, in one of a few orders, narrowed by what the operator looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.store.protocol import Store
from sexton.views import JobFilter, JobOrder, JobPage
from sexton_tui.console.core import tables
from sexton_tui.console.core.filters import KEYS
from sexton_tui.console.core.lines import WARN
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import CursorMoved, Request, Shown
from sexton_tui.console.widgets.fleet_table import FleetTable

_COUNTED_EVERY = 5  # reads


@dataclass(frozen=True, slots=True)
class _Jobs:
    """A page with the place it begins at, and the list it is of."""

    generation: int
    offset: int
    page: JobPage


class JobsPane(Pane):
    """Jobs by name, by state, or the newest failure first."""

    is_paged = True
    is_sortable = True
    table: FleetTable

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.order = JobOrder.NAME
        self._total: int | None = None
        self._reads = 0

    def compose(self) -> ComposeResult:
        self.table = FleetTable(tables.JOB_COLUMNS, id="job-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(classes="info")

    @property
    def filter_keys(self) -> Sequence[str]:
        return KEYS

    def request(self) -> Request:
        asked = self.filter
        which = JobFilter(letters=asked.letters, state=asked.state, queue=asked.queue, owner=asked.owner, tag=asked.tag)
        order, generation = self.order, self.table.window.generation
        offset, limit = self.table.wanted_rows
        self._reads += 1
        total = self._total if self._reads % _COUNTED_EVERY else None

        def read(store: Store) -> _Jobs:
            return _Jobs(generation, offset, store.reads.job_list(which, order, offset, limit, total))

        return read

    def show(self, shown: Shown, data: _Jobs) -> None:
        if data.generation != self.table.window.generation:
            return
        self._total = data.page.total
        rows = [tables.job_row(job, shown.now, ascii_only=shown.ascii_only) for job in data.page.jobs]
        self.table.show_rows(data.generation, data.offset, rows, data.page.total)
        self._tell_place()

    def on_cursor_moved(self, event: CursorMoved) -> None:
        self._tell_place()

    def _tell_place(self) -> None:
        if self._total is None:
            return
        total = self._total
        first, last = self.table.visible_rows
        jobs = "1 job" if total == 1 else f"{total:,} jobs"
        told = f"{first + 1:,} to {min(last + 1, total):,} of {jobs}" if total else "no job"
        by = "" if self.order is JobOrder.NAME else f", by {self.order.value}"
        found = (f"  found by {self.find!r}; escape shows all", WARN) if self.find else ""
        self.tell(told + by, found)

    def turn(self, pages: int) -> None:
        self.table.action_page(pages)

    def sort(self) -> None:
        self.order = self.order.next
        self._renew()

    def find_by(self, text: str) -> None:
        super().find_by(text)
        self._renew()

    def _renew(self) -> None:
        self._total = None
        self.table.renew()
