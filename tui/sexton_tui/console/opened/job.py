"""A job, opened."""

from __future__ import annotations

from sexton.views import JobDetail
from sexton_tui.console.core.details import job_lines
from sexton_tui.console.core.lines import Line
from sexton_tui.console.core.subjects import OfJob
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown

_TICKS = 10


class JobScreen(LinesScreen):
    """What the job is, what it fires next, and what became of its newest ticks."""

    def __init__(self, job: str, *, ascii_only: bool = False) -> None:
        super().__init__(OfJob(job), ascii_only=ascii_only)
        self._job = job

    def request(self) -> Request:
        job = self._job
        return lambda store: store.reads.job(job, _TICKS)

    def lines_of(self, shown: Shown, data: JobDetail) -> list[Line]:
        return job_lines(data, shown.now)
