"""Reads of jobs, their ticks and the history of their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sexton.errors import NotFound
from sexton.history_views import History, PastRevision
from sexton.job_standing import Standings
from sexton.store import read_explain, read_history, read_job_list, read_jobs, read_runs, read_standing
from sexton.store.reading.transaction import ReadTransactions
from sexton.tick_facts import TickFacts
from sexton.views import ClaimDetail, ClaimView, JobDetail, JobFilter, JobOrder, JobPage, TickPage


class JobReads(ReadTransactions):
    """Jobs, what fires when, and what was applied."""

    def jobs_page(self, which: JobFilter | None = None, offset: int = 0, limit: int = 50) -> JobPage:
        """Jobs by name, with next ticks and newest runs."""
        with self._connect() as connection:
            return read_jobs.read_job_page(connection, self._now(connection), which or JobFilter(), offset, limit)

    def job_list(
        self,
        which: JobFilter,
        order: JobOrder = JobOrder.NAME,
        offset: int = 0,
        limit: int = 128,
        total: int | None = None,
    ) -> JobPage:
        """A window over the jobs that are not retired, with next tick and newest runs; `total` is counted where it is
        None."""
        with self._connect() as connection:
            return read_job_list.read_job_list(connection, self._now(connection), which, order, offset, limit, total)

    def job_names(self, text: str, limit: int = 20) -> tuple[str, ...]:
        """Jobs whose names hold the letters of `text` in their order, the shortest names first."""
        with self._connect() as connection:
            return read_jobs.read_names(connection, text, limit)

    def job(self, name: str, ticks: int = 5) -> JobDetail:
        """One job opened. Raises ``NotFound`` with near names."""
        with self._connect() as connection:
            now = self._now(connection)
            view, definition = read_jobs.read_job(connection, now, name, ticks)
            return JobDetail(
                job=view,
                definition=definition,
                cursor=read_jobs.read_cursor(connection, view.job_id),
                revisions=read_jobs.read_revisions(connection, view.job_id, 20),
                pauses=read_jobs.read_pauses(connection, view.job_id, 20),
                claims=read_runs.read_job_claims(connection, view.job_id, None, 20, upto=now),
            )

    def ticks_page(self, job: str, before: datetime | None = None, limit: int = 50, upcoming: int = 5) -> TickPage:
        """What was decided about a job's ticks, newest first, and `upcoming` of those to come. Raises ``NotFound``."""
        with self._connect() as connection:
            now = self._now(connection)
            view, _ = read_jobs.read_job(connection, now, job, 0)
            claims = read_runs.read_job_claims(connection, view.job_id, before, limit + 1, upto=now)
            skips = read_runs.read_job_skips(connection, view.job_id, before, limit + 1)
            instants = sorted([c.scheduled_at for c in claims] + [s.upto for s in skips], reverse=True)
            older = instants[limit - 1] if len(instants) > limit else None
            if older is not None:
                claims = tuple(claim for claim in claims if claim.scheduled_at >= older)
                skips = tuple(skip for skip in skips if skip.upto >= older)
            ahead: tuple[ClaimView, ...] = ()
            if before is None:
                ahead = read_runs.read_claims_ahead(connection, view.job_id, now, upcoming)
            ticks: tuple[datetime, ...] = ()
            if view.state == "active" and before is None:
                cursor = read_jobs.read_cursor(connection, view.job_id)
                schedule = read_jobs.read_schedule_text(connection, view.job_id, view.revision)
                ticks = read_jobs.upcoming(schedule, max(cursor or now, now), upcoming)
            earlier = None if older is not None else read_jobs.read_earlier_job(connection, view.job_id)
            return TickPage(view, claims, skips, ahead, ticks, older, earlier)

    def claim(self, job: str, scheduled_at: datetime) -> ClaimDetail:
        """A claim with its runs. Raises ``NotFound``."""
        with self._connect() as connection:
            row = read_jobs.read_job_row(connection, job)
            claim = read_runs.read_claim(connection, row.job_id, scheduled_at)
            if claim is None:
                raise NotFound(
                    f"job {row.name!r} has no claim for {scheduled_at.isoformat()}",
                    hint=f"`sexton ticks {row.name}` lists its ticks",
                )
            return ClaimDetail(claim, read_runs.read_claim_runs(connection, row.job_id, scheduled_at))

    def tick_facts(self, job: str, instant: datetime) -> TickFacts:
        """All that the ledger holds about one instant of a job, a tick or not. Raises ``NotFound`` for the job."""
        with self._connect() as connection:
            return read_explain.read_tick_facts(connection, self._now(connection), job, instant)

    def near_tick(self, job: str, which: str) -> datetime:
        """The job's ``last`` tick that fell due, or its ``next``. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_explain.read_near_tick(connection, self._now(connection), job, which)

    def zone(self, job: str) -> str:
        """The zone of the job's newest revision. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_explain.read_zone(connection, job)

    def standings(self, job_ids: Sequence[int], runs: int = 20) -> Standings:
        """What an edit of these jobs would meet: claims ahead, runs in flight, how long their last runs took."""
        with self._connect() as connection:
            return read_standing.read_standings(connection, self._now(connection), job_ids, runs)

    def history(self, job: str | None = None, limit: int = 50) -> History:
        """What was done to the jobs of this name, or to all: newest first. Raises ``NotFound``."""
        with self._connect() as connection:
            if job is None:
                return read_history.read_history(connection, limit)
            return read_history.read_job_history(connection, job, limit)

    def past_revision(self, job: str, revision: int) -> PastRevision:
        """One revision of a job as it was. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_history.read_past_revision(connection, job, revision)
