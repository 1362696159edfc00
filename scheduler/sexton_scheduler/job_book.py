"""A node's copy of the jobs: read from the ledger, kept warm, handed to the planner.

Equal texts become one object, and so do equal revisions: a million jobs with five
hundred schedules hold five hundred schedules. A job whose texts cannot be read is a fault of that
job alone (invariant 9): the leader puts it in quarantine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sexton.decisions import LateClaim, LateJob, PlannedJob, RevisionInForce
from sexton.job_rules import FiringRules, firing_rules
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.store.protocol import JobRow, LateJobRow, RevisionRow, TickStore
from sexton_scheduler.core.planner import Planner, Quarantine
from sexton_scheduler.core.takeover import reconcile

PAGE_JOBS = 5000
_REVISIONS_AT_HAND = 20_000


class DefinitionCache:
    """Schedules and firing rules by their texts."""

    def __init__(self) -> None:
        self._schedules: dict[str, Schedule] = {}
        self._firings: dict[str, FiringRules] = {}
        self._revisions: dict[tuple[RevisionRow, ...], tuple[RevisionInForce, ...]] = {}

    def planned_job(self, row: JobRow) -> PlannedJob:
        """The row as the planner knows it; raises what its texts raise."""
        return PlannedJob(
            job_id=row.job_id,
            name=row.name,
            seq=row.seq,
            at=row.at,
            revisions=self._shared(row.revisions),
            pauses=row.pauses,
            pause_detail=row.pause_detail,
            growing=row.growing,
            is_quarantined=row.is_quarantined,
        )

    def late_job(self, row: LateJobRow) -> LateJob:
        """The late claims of a job as ``decide_late`` takes them; raises what its texts raise."""
        return LateJob(
            job_id=row.job.job_id,
            name=row.job.name,
            seq=row.job.seq,
            at=row.job.at,
            revision=self.revision(row.revision),
            claims=tuple(LateClaim(claim.scheduled_at, claim.origin, claim.jitter) for claim in row.claims),
        )

    def _shared(self, rows: tuple[RevisionRow, ...]) -> tuple[RevisionInForce, ...]:
        """Jobs that were applied together have revisions alike; only those at hand are looked for."""
        known = self._revisions.get(rows)
        if known is None:
            if len(self._revisions) >= _REVISIONS_AT_HAND:
                self._revisions.clear()
            known = self._revisions[rows] = tuple(self.revision(row) for row in rows)
        return known

    def revision(self, row: RevisionRow) -> RevisionInForce:
        schedule = self._schedules.get(row.schedule)
        if schedule is None:
            schedule = self._schedules[row.schedule] = schedule_from_spec(json.loads(row.schedule))
        firing = self._firings.get(row.firing)
        if firing is None:
            firing = self._firings[row.firing] = firing_rules(row.firing)
        return RevisionInForce(row.revision, schedule, firing, row.since, row.until)

    def forget_unused(self, jobs: int) -> None:
        """Bound the caches where edits have left many texts behind; what is still used is read again."""
        if len(self._schedules) > 2 * jobs + 1000:
            self._schedules.clear()
        if len(self._firings) > 2 * jobs + 1000:
            self._firings.clear()


class JobBook:
    """The jobs in a planner, as fresh as the last ``refresh``; a follower's cursors as the last ``follow``."""

    def __init__(self, ticks: TickStore, planner: Planner) -> None:
        self._ticks = ticks
        self._planner = planner
        self._definitions = DefinitionCache()
        self._mark: int | None = None
        self._cursor_mark = 0
        self._to_read: set[int] = set()

    def refresh(self) -> int:
        """Read what was edited since the last time (the first time: everything); how many jobs."""
        first = 0 if self._mark is not None else self._read_all()
        read = self._ticks.load_jobs(self._mark)
        for job_id in read.gone:
            self._planner.drop(job_id)
        self._put(read.jobs)
        self._mark = read.mark
        self._to_read.difference_update(row.job_id for row in read.jobs)
        return first + len(read.jobs) + len(read.gone)

    def _read_all(self) -> int:
        """Every job, page by page: a million of them are never in memory as rows."""
        cursor_mark = self._ticks.cursor_mark()
        page = self._ticks.job_page(0, PAGE_JOBS)
        mark, count = page.mark, len(page.jobs)
        self._put(page.jobs)
        while page.upto is not None:
            page = self._ticks.job_page(page.upto, PAGE_JOBS)
            self._put(page.jobs)
            count += len(page.jobs)
        self._mark, self._cursor_mark = mark, cursor_mark
        return count

    def start_over(self) -> None:
        """Forget all jobs: the ledger is another than the one they were read from."""
        for job_id in list(self._planner.jobs):
            self._planner.drop(job_id)
        self._to_read.clear()
        self._mark, self._cursor_mark = None, 0

    def follow(self) -> None:
        """After it, the planner's jobs stand at the cursors that the last leader left: reads what has moved since the
        last time. A follower calls it now and then, so that its takeover costs little; a leader at its beginning, with
        a term of its own, so that no older leader moves them any more."""
        self.refresh()
        read = self._ticks.moved_cursors(self._cursor_mark)
        reconciled = reconcile(self._planner.jobs, read.rows)
        self._planner.put_all(reconciled.advanced)
        self._cursor_mark = read.mark
        self.expect_changes(reconciled.to_read)
        self.read_changed()

    def expect_changes(self, job_ids: Iterable[int]) -> None:
        """These jobs are not as this node knows them; the planner leaves them alone until ``read_changed``."""
        self._to_read.update(job_ids)

    def read_changed(self) -> None:
        """Read the jobs that were expected to have changed."""
        if not self._to_read:
            return
        job_ids = sorted(self._to_read)
        rows = self._ticks.read_jobs(job_ids)
        for job_id in self._to_read.difference(row.job_id for row in rows):
            self._planner.drop(job_id)
        self._put(rows)
        self._to_read.clear()

    def _put(self, rows: Iterable[JobRow]) -> None:
        self._definitions.forget_unused(len(self._planner.jobs))
        jobs: list[PlannedJob] = []
        for row in rows:
            try:
                jobs.append(self._definitions.planned_job(row))
            except Exception as error:  # invariant 9: a text that cannot be read is that job's fault alone
                self._planner.drop(row.job_id)
                if not row.is_quarantined:
                    reason = f"{type(error).__name__}: {error}"[:500]
                    self._planner.faults[row.job_id] = Quarantine(row.job_id, row.name, reason)
        self._planner.put_all(jobs)
