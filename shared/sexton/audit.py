"""The audit: recompute what should have fallen due, and hold the ledger against it.

It shares with the planner the next-tick arithmetic and nothing else: no cache, no
heap, no policy. For each job it walks the intervals in which its revisions were in
force and asks of every tick up to the cursor: is there exactly one decision?

    missing        due, at or before the cursor, and no decision
    double         more than one decision: a skip record and a claim, or two records
    overdue        due, undecided, and older than the job's grace (5 s at least)
    unexpected     a scheduled claim that no revision in force says, or beyond the cursor
    miscounted     a skip record whose count is not that of the ticks it covers
    inputs changed computed with other zone data or another tick engine: not judged
    pending        undecided, but still allowed to be (or in an open pause)
    pruned         older than the ledger goes back

The first six fail an audit; the last two are said, not counted. A skip record that
an operator resolved counts with its claims as one decision.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from sexton.claims import Origin
from sexton.inputs import are_same
from sexton.schedules import Schedule


class Verdict(StrEnum):
    MISSING = "missing"
    DOUBLE = "double"
    OVERDUE = "overdue"
    UNEXPECTED = "unexpected"
    MISCOUNTED = "miscounted"
    INPUTS_CHANGED = "inputs changed"
    PENDING = "pending"
    PRUNED = "pruned"

    @property
    def fails(self) -> bool:
        return self not in (Verdict.PENDING, Verdict.PRUNED)


@dataclass(frozen=True, slots=True)
class AuditedRevision:
    """A revision and the interval ``(since, until]`` in which its ticks count."""

    revision: int
    schedule: Schedule
    since: datetime
    until: datetime | None
    grace: timedelta
    inputs_id: str


@dataclass(frozen=True, slots=True)
class AuditedClaim:
    scheduled_at: datetime
    origin: Origin
    revision: int


@dataclass(frozen=True, slots=True)
class AuditedSkip:
    """A skip record: ``count`` ticks in ``(after, upto]``."""

    after: datetime
    upto: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobLedger:
    """All that is stored about one job, from one snapshot; lists oldest first."""

    job_id: int
    name: str
    cursor: datetime
    revisions: tuple[AuditedRevision, ...]
    open_pause_since: datetime | None
    claims: Sequence[AuditedClaim]
    skips: Sequence[AuditedSkip]


@dataclass(frozen=True, slots=True)
class Window:
    """What is judged: ticks in ``(after, upto]``. ``now`` is the snapshot's database time."""

    after: datetime
    upto: datetime
    now: datetime
    pruned_before: datetime | None
    inputs_id: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding about one job; ``at`` is its tick or the start of its stretch."""

    job: str
    verdict: Verdict
    at: datetime
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class JobAudit:
    job: str
    due: int  # ticks that fell due in the window, by recomputation
    decided: int
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class AuditReport:
    """The whole audit; ``is_clean`` is what the exit code says."""

    window: Window
    jobs: int = 0
    due: int = 0
    decided: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, audit: JobAudit) -> None:
        self.jobs += 1
        self.due += audit.due
        self.decided += audit.decided
        self.differences.extend(audit.differences)

    def count(self, verdict: Verdict) -> int:
        return sum(difference.count for difference in self.differences if difference.verdict is verdict)

    def counts(self) -> dict[str, int]:
        """Every verdict's word with how many ticks it was given to."""
        return {verdict.value: self.count(verdict) for verdict in Verdict}

    @property
    def is_clean(self) -> bool:
        return not any(difference.verdict.fails for difference in self.differences)


DECIDED_WITHIN = timedelta(seconds=5)
"""With a grace of 0s a tick would be overdue in the instant it falls due; no leader decides faster than at once."""

# Decisions of the schedule itself; the other origins answer an operator, and never count as a tick's first decision.
_DECIDING = frozenset({Origin.SCHEDULE, Origin.CATCH_UP})


def audit_job(ledger: JobLedger, window: Window) -> JobAudit:
    """Judge one job in the window. Pure: equal inputs give equal findings."""
    changed = [r for r in ledger.revisions if not are_same(r.inputs_id, window.inputs_id)]
    if changed:
        detail = f"revision {changed[0].revision} was computed with {changed[0].inputs_id}, here is {window.inputs_id}"
        found = Difference(ledger.name, Verdict.INPUTS_CHANGED, changed[0].since, 1, detail)
        return JobAudit(ledger.name, 0, 0, (found,))
    return _JobAuditor(ledger, window).judge()


class _JobAuditor:
    def __init__(self, ledger: JobLedger, window: Window) -> None:
        self.ledger = ledger
        self.window = window
        self.differences: list[Difference] = []
        after = window.after
        if window.pruned_before is not None and window.pruned_before > after:
            after = window.pruned_before
        self.after = after
        self.decided_upto = min(window.upto, ledger.cursor)

    def judge(self) -> JobAudit:
        skips = self._skips_without_overlap()
        due = self._count(self.after, self.window.upto)
        self._judge_pruned()
        self._judge_skips(skips)
        missing = self._judge_decided_ticks(skips)
        undecided = self._judge_undecided()
        return JobAudit(self.ledger.name, due, due - missing - undecided, tuple(self.differences))

    # What should have fallen due ---------------------------------------------------------------

    def _stretches(self, after: datetime, upto: datetime) -> Iterator[tuple[AuditedRevision, datetime, datetime]]:
        for revision in self.ledger.revisions:
            begin = max(after, revision.since)
            end = upto if revision.until is None else min(upto, revision.until)
            if begin < end:
                yield revision, begin, end

    def _count(self, after: datetime, upto: datetime) -> int:
        return sum(r.schedule.count_between(begin, end) for r, begin, end in self._stretches(after, upto))

    def _ticks(self, after: datetime, upto: datetime) -> Iterator[tuple[datetime, AuditedRevision]]:
        for revision, begin, end in self._stretches(after, upto):
            for tick in revision.schedule.between(begin, end):
                yield tick, revision

    # The verdicts ------------------------------------------------------------------------------

    def _judge_pruned(self) -> None:
        if self.after > self.window.after:
            count = self._count(self.window.after, self.after)
            if count:
                self._find(Verdict.PRUNED, self.window.after, count, "older than the ledger goes back")

    def _skips_without_overlap(self) -> list[AuditedSkip]:
        skips = sorted(
            (s for s in self.ledger.skips if s.upto > self.after and s.after < self.decided_upto),
            key=lambda s: s.after,
        )
        for earlier, later in pairwise(skips):
            if later.after < earlier.upto:
                upto = min(earlier.upto, later.upto)
                count = self._count(later.after, upto) or 1
                detail = (
                    f"two skip records ({earlier.reason}, {later.reason}) cover ticks up to {upto:%Y-%m-%dT%H:%M:%SZ}"
                )
                self._find(Verdict.DOUBLE, later.after, count, detail)
        return skips

    def _judge_skips(self, skips: Sequence[AuditedSkip]) -> None:
        for skip in skips:
            covered = self._count(skip.after, skip.upto)
            if covered != skip.count:
                detail = f"a skip record ({skip.reason}) says {skip.count} ticks, {covered} fell due in it"
                self._find(Verdict.MISCOUNTED, skip.after, abs(covered - skip.count), detail)

    def _judge_decided_ticks(self, skips: Sequence[AuditedSkip]) -> int:
        """Walk the due ticks outside all skip records: each needs its claim, and each claim its tick."""
        claims = {claim.scheduled_at: claim for claim in self.ledger.claims if claim.origin is not Origin.MANUAL}
        missing = 0
        for after, upto in self._uncovered(skips):
            for tick, revision in self._ticks(after, upto):
                claim = claims.pop(tick, None)
                if claim is None:
                    missing += 1
                    detail = f"due by revision {revision.revision}, but neither a claim nor a skip record"
                    self._find(Verdict.MISSING, tick, 1, detail)
                elif claim.origin in _DECIDING and claim.revision != revision.revision:
                    detail = f"claimed under revision {claim.revision}, but revision {revision.revision} was in force"
                    self._find(Verdict.UNEXPECTED, tick, 1, detail)
        self._judge_claims_without_tick(claims.values(), skips)
        return missing

    def _judge_claims_without_tick(self, claims: Iterable[AuditedClaim], skips: Sequence[AuditedSkip]) -> None:
        for claim in claims:
            at = claim.scheduled_at
            if claim.origin not in _DECIDING:
                continue
            if at > self.ledger.cursor:
                self._find(Verdict.UNEXPECTED, at, 1, "claimed beyond the cursor: the next commit would swallow it")
            elif self._is_in_window(at):
                covering = _covering(skips, at)
                if covering is not None:
                    detail = f"claimed ({claim.origin.word}) and in a skip record ({covering.reason})"
                    self._find(Verdict.DOUBLE, at, 1, detail)
                else:
                    detail = f"claimed ({claim.origin.word}), but not due by the revision in force"
                    self._find(Verdict.UNEXPECTED, at, 1, detail)

    def _uncovered(self, skips: Sequence[AuditedSkip]) -> Iterator[tuple[datetime, datetime]]:
        begin = self.after
        for skip in skips:
            if skip.after > begin:
                yield begin, min(skip.after, self.decided_upto)
            begin = max(begin, skip.upto)
        if begin < self.decided_upto:
            yield begin, self.decided_upto

    def _judge_undecided(self) -> int:
        """Due ticks beyond the cursor: pending while they may be, then overdue."""
        after = max(self.after, self.ledger.cursor)
        undecided = 0
        for revision, begin, end in self._stretches(after, self.window.upto):
            paused_from = self.ledger.open_pause_since
            limit = min(end, self.window.now - max(revision.grace, DECIDED_WITHIN))
            if paused_from is not None:
                limit = min(limit, max(begin, paused_from))
            overdue = revision.schedule.count_between(begin, limit) if begin < limit else 0
            pending = revision.schedule.count_between(max(begin, limit), end) if max(begin, limit) < end else 0
            undecided += overdue + pending
            if overdue:
                detail = f"undecided for longer than the grace of {revision.grace.total_seconds():g} s"
                self._find(Verdict.OVERDUE, revision.schedule.next_after(begin) or begin, overdue, detail)
            if pending:
                self._find(Verdict.PENDING, max(begin, limit), pending, "may still be undecided")
        return undecided

    def _is_in_window(self, at: datetime) -> bool:
        return self.after < at <= self.window.upto

    def _find(self, verdict: Verdict, at: datetime, count: int, detail: str) -> None:
        self.differences.append(Difference(self.ledger.name, verdict, at, count, detail))


def _covering(skips: Sequence[AuditedSkip], at: datetime) -> AuditedSkip | None:
    """The skip record whose stretch holds ``at``; records are sorted by ``after``."""
    last = bisect_left(skips, at, key=lambda skip: skip.after)
    return skips[last - 1] if last and skips[last - 1].upto >= at else None
