"""A term at work, a leader's or a race's: drafts of the planner become commits, one batch a turn.

What differs between the two, how passes over missed ticks are begun and counted, is a value (``Passes``).

What the commit says decides what is true (invariants 2 and 3): a term that is over
ends the work at once; jobs that did not move are read and planned again; after an
answer that was lost, nothing is known, and all jobs of the batch are read again.

A plan that is older than 5 s when it reaches the database is not written. Where that came from slow schedules, the
next batch is one job, and grows from there; a job that is too slow all by itself is put in quarantine, for it would
silence all others (invariant 9).
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from sexton.clock import Clock
from sexton.decisions import Cause, CommitResult
from sexton.errors import DatabaseUnreachable
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_scheduler.core.planner import BATCH_ROWS, Draft, MissedPass, Planner, Quarantine
from sexton_scheduler.job_book import JobBook
from sexton_scheduler.missed_passes import Passes
from sexton_scheduler.node_counts import NodeCounts

_LEAST_AHEAD = timedelta(0)
_MOST_AHEAD = timedelta(seconds=1)
_STALE_SECONDS = 5.0  # what the commit takes for an old plan
_QUICK_SECONDS = 1.0  # a batch that took no longer may be followed by a larger one
_SLOW_TRIES = 3  # a process that was frozen looks the same as a slow schedule: once
_CONTENDED_SECONDS = 0.05  # the whole batch was locked or changed: an edit is under way, or the cluster is halted


class TermOver(Exception):
    """A statement said that this term is over."""


class TickWriter:
    """The writing of one term. ``turn`` raises ``TermOver`` and ``DatabaseUnreachable``.

    ``served_at``: until when others had written it, where they did.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        planner: Planner,
        book: JobBook,
        term: int,
        passes: Passes,
        counts: NodeCounts,
        served_at: datetime | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._planner = planner
        self._book = book
        self.term = term
        self._passes = passes
        self._counts = counts
        self._pass: MissedPass | None = None
        self._served_at = served_at  # database time of the newest turn that wrote what was due, or found nothing due
        self._planning = timedelta(0)
        self._rows = BATCH_ROWS
        self._slow: tuple[int, int] = (0, 0)  # the job that alone was too slow last, and how often in a row
        self._log = structlog.get_logger("sexton.scheduler").bind(term=term)

    def begin(self, now: datetime, settings: ClusterSettings) -> None:
        """The term's own reading: the cursors as the predecessor left them, and the pass over what it missed."""
        started = self._clock.elapsed()
        self._book.follow()
        self._pass = self._passes.first(now, settings)
        self._planning = timedelta(seconds=self._clock.elapsed() - started)

    def turn(self, now: datetime, settings: ClusterSettings, has_open_pass: bool = False) -> float:
        """Write at most one batch of what is due; seconds until the next turn is due, 0 where more is due now.

        ``has_open_pass``: racers are about missed ticks, as the cluster row says.
        """
        self._book.read_changed()
        self._quarantine_faults()
        if self._pass is None and (has_open_pass or self._planner.is_late(now)):
            self._pass = self._passes.late(now, settings, self._served_at)
            if self._planner.is_late(now):
                if self._pass is None:
                    return _CONTENDED_SECONDS
                self._log.warning("ticks.late", hold=self._pass.force_hold)
        started = self._clock.elapsed()
        draft = self._planner.draft(now, now + settings.horizon + _ahead(settings), self._pass, self._rows)
        planning = self._clock.elapsed() - started
        if draft.plans:
            moved = self._commit(draft, now, settings, planning)
            if moved:
                self._served_at = now
            if moved and self._clock.elapsed() - started <= _QUICK_SECONDS:
                self._rows = min(2 * self._rows, BATCH_ROWS)
            return 0.0 if moved else _CONTENDED_SECONDS
        self._served_at = now
        self._quarantine_faults()
        self._end_pass()
        due = self._planner.next_at(settings.horizon)
        return 3600.0 if due is None else max(0.0, (due - now).total_seconds())

    def _commit(self, draft: Draft, now: datetime, settings: ClusterSettings, planning: float) -> int:
        try:
            batch = self._passes.batch(draft, now, settings, self._pass)
            sent_at = self._clock.elapsed()
            is_over = batch is None and self._store.terms.cluster().term != self.term
            result = None if batch is None else self._store.ticks.commit(batch)
        except DatabaseUnreachable:
            self._book.expect_changes(self._planner.abandon(draft))
            raise
        if result is not None:
            self._counts.committed(draft, result, self._clock.elapsed() - sent_at)
        if is_over or (result is not None and not result.is_current):
            self._book.expect_changes(self._planner.abandon(draft))
            raise TermOver
        if result is None:  # the cluster was halted a moment ago
            self._book.expect_changes(self._planner.abandon(draft))
            return 0
        if not result.is_fresh:
            self._passes.unused(draft)
            self._grew_old(draft, planning)
            return 0
        self._passes.unused(draft, set(result.not_moved))
        self._book.expect_changes(self._planner.settle(draft, result))
        self._note(draft, result)
        self._pass = self._passes.committed(draft, result, self._pass)
        return result.moved

    def _grew_old(self, draft: Draft, planning: float) -> None:
        """Nothing was written: this process was frozen, or planning took too long (``planning``: seconds)."""
        self._rows = 1
        job = draft.plans[0].job
        if len(draft.plans) == 1 and planning >= _STALE_SECONDS:
            self._slow = (job.job_id, self._slow[1] + 1 if self._slow[0] == job.job_id else 1)
            if self._slow[1] >= _SLOW_TRIES:
                reason = (
                    f"planning its ticks took {planning:.1f} s, {_SLOW_TRIES} times in a row: simplify its schedule"
                )
                self._planner.drop(job.job_id)
                self._planner.faults[job.job_id] = Quarantine(job.job_id, job.name, reason)
                return
        self._book.expect_changes(self._planner.abandon(draft))

    def _note(self, draft: Draft, result: CommitResult) -> None:
        not_moved = set(result.not_moved)
        if self._pass is not None:
            self._pass.fired += sum(plan.fired for plan in draft.plans if plan.job.job_id not in not_moved)
        if result.swallowed:
            self._log.error(
                "ticks.swallowed", count=result.swallowed, hint="a claim existed that no cursor accounts for: run audit"
            )

    def _end_pass(self) -> None:
        """Nothing of the pass is left: what was missed is decided, and the claims reach the horizon again."""
        if self._pass is None or self._planner.is_behind(self._pass.upto):
            return
        self._passes.end(self._pass, self._planning)
        if self._pass.cause is not Cause.LATE_LEADER:
            self._log.info(
                "takeover.done" if self._pass.cause is Cause.TAKEOVER else "pass.done",
                fired=self._pass.fired,
                held=self._pass.force_hold,
                jobs=len(self._planner.jobs),
                planning_ms=round(self._planning.total_seconds() * 1000, 1),
            )
        self._pass = None

    def _quarantine_faults(self) -> None:
        for fault in list(self._planner.faults.values()):
            done = self._store.ticks.quarantine(self.term, fault.job_id, fault.reason)
            self._planner.faults.pop(fault.job_id, None)
            if not done:  # by another already; or the cluster was halted a moment ago, and it is to be found again
                self._book.expect_changes([fault.job_id])
            self._log.error("job.quarantined", job=fault.name, reason=fault.reason, recorded=done)


def _ahead(settings: ClusterSettings) -> timedelta:
    """How far beyond the horizon a batch reaches, so that claims are written a second's worth at a time."""
    return min(_MOST_AHEAD, settings.horizon / 10) if settings.horizon else _LEAST_AHEAD
