"""Reads of runs and of their output."""

from __future__ import annotations

from datetime import datetime

from sexton.errors import NotFound
from sexton.output_views import LiveOutput
from sexton.store import read_jobs, read_runs
from sexton.store.reading.transaction import ReadTransactions
from sexton.views import ClaimView, RunFilter, RunKey, RunOutput, RunPage


class RunReads(ReadTransactions):
    """What ran, what runs, and what it wrote."""

    def runs_page(self, which: RunFilter | None = None, before: RunKey | None = None, limit: int = 50) -> RunPage:
        """Runs that have ended, newest first."""
        with self._connect() as connection:
            return read_runs.read_runs(connection, which or RunFilter(), before, limit)

    def oldest_runs(self, which: RunFilter | None = None, limit: int = 50) -> RunPage:
        """The oldest of the runs that have ended, newest first: the end of the list, whatever lies before it."""
        with self._connect() as connection:
            return read_runs.read_runs(connection, which or RunFilter(), None, limit, oldest=True)

    def run_key_after(self, at: datetime, count: int) -> RunKey | None:
        """The `count`-th run that ended after `at`, or the last there is: where a window around `at` begins."""
        with self._connect() as connection:
            return read_runs.read_key_after(connection, at, count)

    def running(self, limit: int = 200, which: RunFilter | None = None) -> tuple[ClaimView, ...]:
        """Claims that run now, longest first; the states of `which` are not looked at."""
        with self._connect() as connection:
            return read_runs.read_running(connection, limit, which or RunFilter())

    def run_output(self, token: int) -> RunOutput:
        """A run and the tails of its output. Raises ``NotFound``."""
        with self._connect() as connection:
            output = read_runs.read_output(connection, token)
            if output is None:
                raise NotFound(f"there is no ended run with token {token}", hint="`sexton runs` lists them")
            return output

    def live_output(self, token: int) -> LiveOutput | None:
        """What a run that goes on has written, as its worker last wrote it down; None: it has not."""
        with self._connect() as connection:
            return read_runs.read_live_output(connection, token)

    def running_claim(self, token: int) -> ClaimView | None:
        """The claim that runs under this token; None: it has ended, or the token is another's."""
        with self._connect() as connection:
            return read_runs.read_running_claim(connection, token)

    def current_claim(self, job: str) -> ClaimView | None:
        """The claim of a job that runs now, the newest of them; else the oldest that waits to run, be it ahead of now.
        Raises ``NotFound`` for the job."""
        with self._connect() as connection:
            return read_runs.read_current_claim(connection, read_jobs.read_job_row(connection, job).job_id)
