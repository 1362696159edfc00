"""A leader's term at work: drafts of the planner become commits, one batch a turn.

What the commit says decides what is true (invariants 2 and 3): a term that is over
ends the work at once; jobs that did not move are read and planned again; after an
answer that was lost, nothing is known, and all jobs of the batch are read again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from sexton.clock import Clock
from sexton.decisions import Cause, CommitResult
from sexton.errors import DatabaseUnreachable
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_scheduler.core.planner import Draft, MissedPass, Planner
from sexton_scheduler.job_book import JobBook

_LEAST_AHEAD = timedelta(0)
_MOST_AHEAD = timedelta(seconds=1)
_CONTENDED_SECONDS = 0.05  # the whole batch was locked or changed: an edit is under way, or the cluster is halted


class TermOver(Exception):
    """A statement said that this leader's term is over."""


class TickWriter:
    """The writing of one term. ``turn`` raises ``TermOver`` and ``DatabaseUnreachable``."""

    def __init__(self, store: Store, clock: Clock, planner: Planner, book: JobBook, term: int) -> None:
        self._store = store
        self._clock = clock
        self._planner = planner
        self._book = book
        self.term = term
        self._pass: MissedPass | None = None
        self._planning = timedelta(0)
        self._log = structlog.get_logger("sexton.scheduler").bind(term=term)

    def begin(self, now: datetime, settings: ClusterSettings) -> None:
        """The takeover's own reading: the cursors as the predecessor left them, and the pass over what it missed."""
        started = self._clock.elapsed()
        self._book.catch_up_with_cursors()
        fired_before = self._store.ticks.pass_fired()
        self._pass = self._planner.begin_pass(Cause.TAKEOVER, now, fired_before, settings.catch_up_hold_above)
        self._planning = timedelta(seconds=self._clock.elapsed() - started)

    def turn(self, now: datetime, settings: ClusterSettings) -> float:
        """Write at most one batch of what is due; seconds until the next turn is due, 0 where more is due now."""
        self._book.read_changed()
        self._quarantine_faults()
        if self._pass is None and self._planner.is_late(now):
            self._pass = self._planner.begin_pass(Cause.LATE_LEADER, now, 0, settings.catch_up_hold_above)
            self._log.warning("ticks.late", hold=self._pass.force_hold)
        draft = self._planner.draft(now, now + settings.horizon + _ahead(settings), self._pass)
        if draft.plans:
            moved = self._commit(draft, now, settings)
            return 0.0 if moved else _CONTENDED_SECONDS
        self._quarantine_faults()
        self._end_pass()
        due = self._planner.next_at(settings.horizon)
        return 3600.0 if due is None else max(0.0, (due - now).total_seconds())

    def _commit(self, draft: Draft, now: datetime, settings: ClusterSettings) -> int:
        first_start = None
        try:
            if draft.paced:
                first_start = self._store.ticks.reserve_budget(draft.paced, settings.catch_up_rate)
            batch = draft.batch(self.term, now, first_start, settings.catch_up_rate)
            result = self._store.ticks.commit(batch)
        except DatabaseUnreachable:
            self._book.expect_changes(self._planner.abandon(draft))
            raise
        if not result.is_current:
            self._book.expect_changes(self._planner.abandon(draft))
            raise TermOver
        if not result.is_fresh:  # this process was frozen between planning and writing: nothing was written
            self._book.expect_changes(self._planner.abandon(draft))
            return 0
        self._book.expect_changes(self._planner.settle(draft, result))
        self._note(draft, result)
        return result.moved

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
        if self._pass.cause is Cause.TAKEOVER:
            self._store.ticks.finish_pass(self.term, self._planning, len(self._planner.jobs))
            self._log.info(
                "takeover.done",
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
            self._log.error("job.quarantined", job=fault.name, reason=fault.reason, recorded=done)


def _ahead(settings: ClusterSettings) -> timedelta:
    """How far beyond the horizon a batch reaches, so that claims are written a second's worth at a time."""
    return min(_MOST_AHEAD, settings.horizon / 10) if settings.horizon else _LEAST_AHEAD
