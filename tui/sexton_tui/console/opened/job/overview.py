"""The first part of an opened job: what it is, how it goes, what it fires next."""

from __future__ import annotations

from sexton.job_page_views import OpenedJob
from sexton_tui.console.core.job_page import overview_lines
from sexton_tui.console.opened.job.section import LinesSection
from sexton_tui.console.view import Request, Shown

_TICKS = 10
_RUNS = 180  # as many as a plot of 90 columns shows


class OverviewSection(LinesSection):
    """What ``sexton jobs JOB`` prints first."""

    title = "Overview"

    def request(self) -> Request:
        job = self.job
        return lambda store: store.reads.opened_job(job, _TICKS, _RUNS)

    def show(self, shown: Shown, data: OpenedJob) -> None:
        proposals, width = shown.overview.proposals, self.size.width - 2
        self.show_lines(overview_lines(data, shown.now, width, proposals, ascii_only=self.ascii_only))
