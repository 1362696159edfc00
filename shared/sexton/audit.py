"""The audit: recompute what should have fallen due, and hold the ledger against it.

It shares with the planner the next-tick arithmetic and nothing else: no cache, no
heap, no policy. For each job it walks the intervals in which its revisions were in
force and asks of every tick up to the cursor: is there exactly one decision?

    missing        due, at or before the cursor, and no decision
    double         more than one decision: a skip record and a claim, or two records
    overdue        due, undecided, and older than the job's grace (5 s at least)
    unexpected     a scheduled claim that no revision in force says, or beyond the cursor
    miscounted     a skip record whose count is not that of the ticks it covers
    inputs changed a revision computed with zone data, holidays or a tick engine on which its
                   ticks depend and that are others here: what it was in force for is not judged
    pending        undecided, but still allowed to be (or in an open pause)
    pruned         older than the ledger goes back

All but the last two fail an audit; these are said, not counted. A skip record that
an operator resolved counts with its claims as one decision, and without them as none;
but for a pause's, whose ticks its policy decided when the job was resumed.

Ticks are compared by the ten thousand, as sorted columns of numbers; what differs is
looked at one by one. Findings of one kind next to each other are one difference with a
count, so that a ledger that lost a million rows is told in a few lines.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from sexton.audit_findings import DECIDED_WITHIN, Findings, JobAudit, Verdict, Window
from sexton.audit_findings import AuditReport as AuditReport
from sexton.audited_ledger import ORIGIN_MASK, AuditedRevision, JobLedger, kind_of, origin_of, revision_of
from sexton.bulk_ticks import instant_of, micros_of, ticks_between
from sexton.claims import Origin
from sexton.decisions import SkipReason
from sexton.inputs import differ_for
from sexton.schedules import Schedule

_SMALL = 64  # a skip record of at most so many ticks is looked at with the claims around it
_AT_ONCE = 50_000  # ticks in memory
# Decisions of the schedule itself; the other origins answer an operator, and never count as a tick's first decision.
_DECIDING = frozenset({Origin.SCHEDULE, Origin.CATCH_UP})
_Interval = tuple[int, int]
_END = 2**62  # after every instant
_MICROSECOND = timedelta(microseconds=1)


def audit_job(ledger: JobLedger, window: Window) -> JobAudit:
    """Judge one job in the window. Pure: equal inputs give equal findings."""
    return _JobAuditor(ledger, window).judge()


class _JobAuditor:
    """All instants are microseconds since 1970; intervals are ``(after, upto]``."""

    def __init__(self, ledger: JobLedger, window: Window) -> None:
        self.ledger = ledger
        self.window = window
        self.claims = ledger.claims
        self.skips = ledger.skips
        self.findings = Findings(ledger.name)
        self.upto = micros_of(window.upto)
        self.after = micros_of(window.after)
        if window.pruned_before is not None:
            self.after = max(self.after, micros_of(window.pruned_before))
        self._take_claims()
        self.cursor = self._newest_decision() if ledger.cursor is None else micros_of(ledger.cursor)
        self.decided_upto = min(self.upto, self.cursor)
        self.judged: list[tuple[AuditedRevision, Schedule, int, int]] = []
        self.unjudged: list[_Interval] = []
        self._take_revisions()
        self.covered: dict[int, int] = {}  # of the small skip records, the ticks found in them
        self.missing = 0

    def judge(self) -> JobAudit:
        due = self._count(self.after, self.upto)
        for detail in self.ledger.broken:
            self.findings.add(Verdict.BROKEN, self.cursor, 1, detail)
        self._judge_pruned()
        first, last = self._skips_in_window()
        self._judge_overlaps(first, last)
        self._judge_resolved(first, last)
        large = self._judge_large_skips(first, last)
        self._judge_decided(first, last, large)
        self._judge_small_skips()
        undecided = self._judge_undecided()
        return JobAudit(self.ledger.name, due, due - self.missing - undecided, self.findings.told())

    # What is there ------------------------------------------------------------------------------

    def _take_claims(self) -> None:
        """Claims of an origin that is not known here are judged as an operator's."""
        unknown = {kind for kind in set(self.claims.kinds) if kind & ORIGIN_MASK not in tuple(Origin)}
        if not unknown:
            return
        number = sum(map(self.claims.kinds.count, unknown))
        detail = "claims of an origin that this release does not know"
        self.findings.add(Verdict.BROKEN, self.claims.ticks[0], number, detail)
        known = (kind_of(revision_of(one), Origin.BACKFILL) if one in unknown else one for one in self.claims.kinds)
        self.claims = replace(self.claims, kinds=array("q", known))

    def _newest_decision(self) -> int:
        """In place of a cursor that is lost: what is not known of is undecided."""
        at = max(self.claims.ticks[-1:].tolist() + self.skips.upto.tolist(), default=self.after)
        detail = "the job has no cursor: nobody decides its ticks any more"
        self.findings.add(Verdict.BROKEN, at, 1, detail)
        return at

    # What should have fallen due ---------------------------------------------------------------

    def _take_revisions(self) -> None:
        for revision in self.ledger.revisions:
            since = micros_of(revision.since)
            until = _END if revision.until is None else micros_of(revision.until)
            schedule = revision.schedule
            if schedule is not None and not differ_for(schedule, revision.inputs_id, self.window.inputs_id):
                self.judged.append((revision, schedule, since, until))
                continue
            self.unjudged.append((since, until))
            if until > self.after and since < self.upto:
                detail = (
                    f"revision {revision.revision} has a schedule or rules that this release cannot read"
                    if schedule is None
                    else f"revision {revision.revision} was computed with {revision.inputs_id}, "
                    f"here is {self.window.inputs_id}"
                )
                self.findings.add(Verdict.INPUTS_CHANGED, max(since, self.after), 1, detail)

    def _stretches(self, after: int, upto: int) -> Iterator[tuple[AuditedRevision, Schedule, int, int]]:
        for revision, schedule, since, until in self.judged:
            begin, end = max(after, since), min(upto, until)
            if begin < end:
                yield revision, schedule, begin, end

    def _count(self, after: int, upto: int) -> int:
        return sum(_count(schedule, begin, end) for _, schedule, begin, end in self._stretches(after, upto))

    def _is_unjudged(self, after: int, upto: int) -> bool:
        return any(since < upto and after < until for since, until in self.unjudged)

    # The verdicts ------------------------------------------------------------------------------

    def _judge_pruned(self) -> None:
        begin = micros_of(self.window.after)
        if self.after > begin and (count := self._count(begin, min(self.after, self.upto))):
            self.findings.add(Verdict.PRUNED, begin, count, "older than the ledger goes back")

    def _skips_in_window(self) -> _Interval:
        """The range of skip records that reach into what is decided; they are in the order of their ``after``."""
        first, last = 0, bisect_left(self.skips.after, self.decided_upto)
        while first < last and self.skips.upto[first] <= self.after:
            first += 1
        return first, last

    def _judge_overlaps(self, first: int, last: int) -> None:
        skips = self.skips
        for place in range(first + 1, last):
            if skips.after[place] < skips.upto[place - 1]:
                upto = min(skips.upto[place - 1], skips.upto[place])
                reasons = f"{skips.reasons[place - 1]}, {skips.reasons[place]}"
                detail = f"two skip records ({reasons}) cover ticks up to {instant_of(upto):%Y-%m-%dT%H:%M:%SZ}"
                self.findings.add(
                    Verdict.DOUBLE, skips.after[place], self._count(skips.after[place], upto) or 1, detail
                )

    def _judge_resolved(self, first: int, last: int) -> None:
        """What an operator had run after all has claims, whatever became of them."""
        skips, ticks = self.skips, self.claims.ticks
        for place in range(first, last):
            after, upto = skips.after[place], skips.upto[place]
            inside = after >= self.after and upto <= self.decided_upto
            if not skips.resolved[place] or not inside or skips.reasons[place] == SkipReason.PAUSED:
                continue
            lacking = skips.counts[place] - (bisect_right(ticks, upto) - bisect_right(ticks, after))
            if lacking > 0:
                detail = (
                    f"its skip record ({skips.reasons[place]}) was resolved by an operator, and no claim answers it"
                )
                self.missing += lacking
                self.findings.add(Verdict.MISSING, after, lacking, detail)

    def _judge_large_skips(self, first: int, last: int) -> list[_Interval]:
        """Records of many ticks, or that reach out of the window, are counted by arithmetic; the stretches they cover.

        A claim of the schedule in one of them is a second decision."""
        skips = self.skips
        covered: list[_Interval] = []
        for place in range(first, last):
            after, upto = skips.after[place], skips.upto[place]
            if skips.counts[place] <= _SMALL and after >= self.after and upto <= self.decided_upto:
                continue
            if not self._is_unjudged(after, upto):
                self._judge_count(place, self._count(after, upto))
            covered.append((max(after, self.after), min(upto, self.decided_upto)))
            self._find_doubles(place, max(after, self.after), min(upto, self.decided_upto))
        return covered

    def _judge_small_skips(self) -> None:
        for place, covered in self.covered.items():
            if not self._is_unjudged(self.skips.after[place], self.skips.upto[place]):
                self._judge_count(place, covered)

    def _judge_count(self, place: int, covered: int) -> None:
        said = self.skips.counts[place]
        if covered != said:
            detail = f"a skip record ({self.skips.reasons[place]}) says {said} ticks, {covered} fell due in it"
            self.findings.add(Verdict.MISCOUNTED, self.skips.after[place], abs(covered - said), detail)

    def _find_doubles(self, place: int, after: int, upto: int) -> None:
        claims = self.claims
        for index in range(bisect_right(claims.ticks, after), bisect_right(claims.ticks, upto)):
            origin = origin_of(claims.kinds[index])
            if origin in _DECIDING:
                detail = f"claimed ({origin.word}) and in a skip record ({self.skips.reasons[place]})"
                self.findings.add(Verdict.DOUBLE, claims.ticks[index], 1, detail)

    def _judge_decided(self, first: int, last: int, large: list[_Interval]) -> None:
        """Every due tick up to the cursor has its claim or its skip record, and every claim its tick."""
        small = [place for place in range(first, last) if not self._is_large(place)]
        self.covered = dict.fromkeys(small, 0)
        at = self.after
        for revision, schedule, since, until in self._stretches(self.after, self.decided_upto):
            self._judge_undue(at, since, large)
            for begin, end in _outside(large, since, until):
                for low, high in _parts(schedule, begin, end):
                    self._judge_part(revision, schedule, low, high, small)
            at = until
        self._judge_undue(at, self.decided_upto, large)
        for index in range(bisect_right(self.claims.ticks, self.cursor), len(self.claims.ticks)):
            if origin_of(self.claims.kinds[index]) in _DECIDING:
                detail = "claimed beyond the cursor: the next commit would swallow it"
                self.findings.add(Verdict.UNEXPECTED, self.claims.ticks[index], 1, detail)

    def _is_large(self, place: int) -> bool:
        skips = self.skips
        inside = skips.after[place] >= self.after and skips.upto[place] <= self.decided_upto
        return skips.counts[place] > _SMALL or not inside

    def _judge_part(
        self, revision: AuditedRevision, schedule: Schedule, after: int, upto: int, small: list[int]
    ) -> None:
        """A part of one revision's interval that no large skip record covers."""
        due = ticks_between(schedule, after, upto)
        first, last = bisect_right(self.claims.ticks, after), bisect_right(self.claims.ticks, upto)
        ticks, kinds = self.claims.ticks[first:last], self.claims.kinds[first:last]
        begin = bisect_right(small, after, key=self.skips.upto.__getitem__)
        end = bisect_left(small, upto, key=self.skips.after.__getitem__)
        if begin < end:
            due, ticks, kinds = self._without_skipped(small[begin:end], due, ticks, kinds)
        plain = {kind_of(revision.revision, origin) for origin in _DECIDING}
        if array("q", due) == ticks and plain.issuperset(kinds):
            return
        self._compare(revision, due, ticks, kinds)

    def _without_skipped(
        self, places: list[int], due: Sequence[int], ticks: array[int], kinds: array[int]
    ) -> tuple[Sequence[int], array[int], array[int]]:
        """What of a part is not in one of these small skip records; the ticks in them are counted."""
        skips = self.skips
        left_due, left_ticks, left_kinds = array("q"), array("q"), array("q")
        at_due = at_claim = 0
        for place in places:
            after, upto = skips.after[place], skips.upto[place]
            first, last = bisect_right(due, after), bisect_right(due, upto)
            self.covered[place] += last - first
            if at_due < first:
                left_due.extend(due[at_due:first])
            at_due = max(at_due, last)
            first, last = bisect_right(ticks, after), bisect_right(ticks, upto)
            if at_claim < first:
                left_ticks.extend(ticks[at_claim:first])
                left_kinds.extend(kinds[at_claim:first])
            if first < last:
                self._find_doubles(place, ticks[first] - 1, ticks[last - 1])
            at_claim = max(at_claim, last)
        left_due.extend(due[at_due:])
        left_ticks.extend(ticks[at_claim:])
        left_kinds.extend(kinds[at_claim:])
        return left_due, left_ticks, left_kinds

    def _compare(self, revision: AuditedRevision, due: Sequence[int], ticks: array[int], kinds: array[int]) -> None:
        """One by one: the due ticks of a part without skip records, and its claims."""
        claimed = set(ticks)
        lacking = [tick for tick in due if tick not in claimed]
        self.missing += len(lacking)
        detail = f"due by revision {revision.revision}, but neither a claim nor a skip record"
        for tick in lacking:
            self.findings.add(Verdict.MISSING, tick, 1, detail)
        expected = set(due)
        for tick, kind in zip(ticks, kinds, strict=True):
            origin = origin_of(kind)
            if origin not in _DECIDING:
                continue
            if tick not in expected:
                detail = f"claimed ({origin.word}), but not due by the revision in force"
                self.findings.add(Verdict.UNEXPECTED, tick, 1, detail)
            elif revision_of(kind) != revision.revision:
                claimed_by = f"claimed under revision {revision_of(kind)}"
                detail = f"{claimed_by}, but revision {revision.revision} was in force"
                self.findings.add(Verdict.UNEXPECTED, tick, 1, detail)

    def _judge_undue(self, after: int, upto: int, large: list[_Interval]) -> None:
        """Claims where no judged revision was in force."""
        if after >= upto:
            return
        for begin, end in _outside(large, after, upto):
            for index in range(bisect_right(self.claims.ticks, begin), bisect_right(self.claims.ticks, end)):
                tick, origin = self.claims.ticks[index], origin_of(self.claims.kinds[index])
                if origin in _DECIDING and not self._is_unjudged(tick - 1, tick):
                    detail = f"claimed ({origin.word}), but not due by the revision in force"
                    self.findings.add(Verdict.UNEXPECTED, tick, 1, detail)

    def _judge_undecided(self) -> int:
        """Due ticks beyond the cursor: pending while they may be, then overdue."""
        ledger, now = self.ledger, micros_of(self.window.now)
        undecided = 0
        for revision, schedule, begin, end in self._stretches(max(self.after, self.cursor), self.upto):
            limit = min(end, now - max(revision.grace, DECIDED_WITHIN) // _MICROSECOND)
            if ledger.open_pause_since is not None:
                limit = min(limit, max(begin, micros_of(ledger.open_pause_since)))
            overdue = _count(schedule, begin, limit) if begin < limit else 0
            pending = _count(schedule, max(begin, limit), end) if max(begin, limit) < end else 0
            undecided += overdue + pending
            if overdue:
                detail = f"undecided for longer than the grace of {revision.grace.total_seconds():g} s"
                detail += f"; {ledger.standing}" if ledger.standing else ""
                first = schedule.next_after(instant_of(begin))
                self.findings.add(Verdict.OVERDUE, begin if first is None else micros_of(first), overdue, detail)
            if pending:
                self.findings.add(Verdict.PENDING, max(begin, limit), pending, "may still be undecided")
        return undecided


def _count(schedule: Schedule, after: int, upto: int) -> int:
    return schedule.count_between(instant_of(after), instant_of(upto))


def _parts(schedule: Schedule, after: int, upto: int) -> Iterator[_Interval]:
    """The interval in parts of so few ticks that they fit into memory."""
    if _count(schedule, after, upto) <= _AT_ONCE or upto - after <= 1:
        yield after, upto
        return
    middle = (after + upto) // 2
    yield from _parts(schedule, after, middle)
    yield from _parts(schedule, middle, upto)


def _outside(taken: list[_Interval], after: int, upto: int) -> Iterator[_Interval]:
    """What of ``(after, upto]`` none of these intervals, ordered by their start, holds."""
    at = after
    for begin, end in taken[bisect_left(taken, after, key=lambda one: one[1]) :]:
        if begin >= upto:
            break
        if begin > at:
            yield at, begin
        at = max(at, end)
    if at < upto:
        yield at, upto
