"""The ticks and the runs of an opened job, newest first, as far back as the ledger goes."""

from __future__ import annotations

from sexton.job_page_views import OpenedRuns, OpenedTicks
from sexton_tui.console.core.decided import TICK_COLUMNS
from sexton_tui.console.core.job_rows import JOB_RUN_COLUMNS, opened_run_rows, opened_tick_rows
from sexton_tui.console.core.words import plural
from sexton_tui.console.opened.job.section import PagedSection
from sexton_tui.console.view import Request, Shown

_A_PAGE = 100
_AHEAD = 3


class TicksSection(PagedSection):
    """What is to come, and what was decided about what fell due; enter explains a tick."""

    title = "Ticks"
    COLUMNS = TICK_COLUMNS

    def request(self) -> Request:
        job, before = self.job, self.before[-1] if self.before else None
        around = self.is_at and len(self.before) == 1
        return lambda store: store.reads.opened_ticks(job, before, _A_PAGE, _AHEAD, around=around)

    def show(self, shown: Shown, data: OpenedTicks) -> None:
        self.older = data.older
        rows = opened_tick_rows(data, shown.now)
        self.show_rows(rows, f"{self.place}   enter explains a tick" if rows else "no tick here; [ newer")


class RunsSection(PagedSection):
    """What runs now and what ran; enter opens the output."""

    title = "Runs"
    COLUMNS = JOB_RUN_COLUMNS

    def request(self) -> Request:
        job, before = self.job, self.before[-1] if self.before else None
        return lambda store: store.reads.opened_runs(job, before, _A_PAGE)

    def show(self, shown: Shown, data: OpenedRuns) -> None:
        self.older = data.older
        rows = opened_run_rows(data, shown.now)
        self.show_rows(rows, f"{plural(len(rows), 'run')}   {self.place}")
