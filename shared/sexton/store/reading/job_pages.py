"""Reads of one job, part by part, as a screen polls it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sexton.job_page_views import DayOfRuns, OpenedJob, OpenedRevision, OpenedRuns, OpenedTicks
from sexton.store import read_history, read_job_page
from sexton.store.reading.transaction import ReadTransactions


class JobPageReads(ReadTransactions):
    """One job opened."""

    def opened_job(self, job: str, ticks: int = 10, runs: int = 150) -> OpenedJob:
        """What the job is, fires next, and how its newest runs went. Raises ``NotFound`` with near names."""
        with self._connect() as connection:
            return read_job_page.read_opened_job(connection, self._now(connection), job, ticks, runs)

    def opened_ticks(
        self, job: str, before: datetime | None = None, limit: int = 100, ahead: int = 5, *, around: bool = False
    ) -> OpenedTicks:
        """A page of its ticks, newest first; with `around` also the skipped ones with which `before` was decided on.
        Raises ``NotFound``."""
        with self._connect() as connection:
            now = self._now(connection)
            return read_job_page.read_opened_ticks(connection, now, job, before, limit, ahead, around=around)

    def opened_runs(self, job: str, before: datetime | None = None, limit: int = 100) -> OpenedRuns:
        """A page of its runs by their ticks, newest first. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_job_page.read_opened_runs(connection, job, before, limit)

    def days_of_runs(self, job: str, bounds: Sequence[datetime]) -> tuple[DayOfRuns, ...]:
        """How many runs it had between each two neighbours of `bounds` (ascending). Raises ``NotFound``."""
        with self._connect() as connection:
            return read_job_page.read_days_of_runs(connection, job, bounds)

    def opened_revision(self, job: str, revision: int) -> OpenedRevision:
        """One revision of a job beside the one before it. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_history.read_opened_revision(connection, job, revision)
