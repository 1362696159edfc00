"""A stretch of the user's own schedule with gaps in it, on virtual time: the ledger that would result.

What is simulated are the decisions, by the code that decides in production, and nothing else:

* While somebody leads, every tick up to ``now + horizon`` has its claim. That is what the planner writes, and is taken
  from the schedules' arithmetic here, not written tick by tick: so months cost seconds.
* At the end of each gap the planner itself runs its pass over what fell due unclaimed (``begin_pass``, ``draft``), by
  the jobs' policies, ``catch_up.hold_above`` and the budget of ``catch_up.rate``.
* Each node's time is the database's, by the product's ``DatabaseTime`` over a clock of its own that is off.
* The audit judges the result as it judges a ledger.

There are always free workers: a claim starts when it may. Nobody answers what is held.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.audit import AuditReport, audit_job
from sexton.audit_findings import Window
from sexton.audited_ledger import AuditedRevision, AuditedSkip, ClaimColumns, JobLedger, SkipColumns, kind_of
from sexton.bulk_ticks import micros_of, ticks_between
from sexton.claims import Origin
from sexton.clock import DatabaseTime
from sexton.decisions import Cause, CommitResult, JobDecision, NewClaim, NewSkip, PlannedJob, SkipReason
from sexton.errors import Refused
from sexton.missed_ticks import decide_missed
from sexton.settings import ClusterSettings
from sexton_scheduler.core.pacing import start_instants
from sexton_scheduler.core.planner import Planner
from sexton_scheduler.core.takeover import at_cursor
from sexton_tui.simulation.skewed_clock import SkewedClock

_NO_TIME = timedelta(0)
SLOWEST_ELECTION = 1.45  # sessions until a successor leads; what was measured lies between 0.8 and this


class Ending(StrEnum):
    """What became of the leader before."""

    KILLED = "killed"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Gap:
    """Nobody decides between these instants. ``cause``: of the pass at its end."""

    begin: datetime
    end: datetime
    ended: Ending
    cause: Cause


@dataclass(frozen=True, slots=True)
class GapOutcome:
    """A gap, who decided at its end, and what; ``holds_all``: above ``catch_up.hold_above``."""

    gap: Gap
    node: str
    decisions: tuple[tuple[str, JobDecision], ...] = ()
    holds_all: bool = False


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of one job's ticks. ``latest``: the longest that a start came after its tick and jitter.

    ``reasons``: why ticks did not run, with counts.
    """

    job: str
    due: int
    on_time: int
    late: int
    caught_up: int
    skips: dict[SkipReason, int]
    latest: timedelta
    reasons: dict[str, int]
    example: str = ""  # the last sentence of reason


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result. Pure: equal arguments give equal ones."""

    begin: datetime
    end: datetime
    jobs: tuple[JobOutcome, ...]
    gaps: tuple[GapOutcome, ...]
    audit: AuditReport
    clock_error: timedelta  # the most by which a node's idea of the database's time was wrong


@dataclass(slots=True)
class GapLedger:
    """What passes decided about one job's ticks in gaps; all other ticks were claimed ahead."""

    claims: list[NewClaim] = field(default_factory=list)
    skips: list[NewSkip] = field(default_factory=list)
    late: int = 0
    caught_up: int = 0
    latest: timedelta = _NO_TIME
    example: str = ""

    def add(self, claim: NewClaim, now: datetime) -> None:
        self.claims.append(claim)
        due = claim.scheduled_at + claim.jitter
        self.latest = max(self.latest, max(claim.available_at, now) - due)
        if claim.origin is Origin.CATCH_UP:
            self.caught_up += 1
        elif claim.available_at > due:
            self.late += 1


def rehearse(
    jobs: Sequence[PlannedJob],
    begin: datetime,
    end: datetime,
    gaps: Iterable[Gap],
    settings: ClusterSettings,
    *,
    inputs_id: str,
    nodes: int = 3,
    skew: timedelta = _NO_TIME,
    told: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """The ledger of ``(begin, end]``, every job decided up to ``begin``; ``gaps`` in order and apart.

    ``skew``: how far the nodes' wall clocks are off, by turns fast and slow; ``told``: how many jobs' ledgers are
    judged, of how many. Raises Refused where a job's schedule cannot be planned.
    """
    return _Rehearsing(jobs, begin, end, settings, inputs_id).run(gaps, nodes, skew, told)


def decide_gaps(
    jobs: Sequence[PlannedJob], begin: datetime, end: datetime, gaps: Iterable[Gap], settings: ClusterSettings
) -> Sequence[GapLedger]:
    """What ``rehearse`` would decide about ticks in the gaps, without the ledger around them and its audit."""
    rehearsing = _Rehearsing(jobs, begin, end, settings, "")
    rehearsing.decide(gaps, 1, _NO_TIME)
    return list(rehearsing.ledgers.values())


class _Rehearsing:
    def __init__(
        self, jobs: Sequence[PlannedJob], begin: datetime, end: datetime, settings: ClusterSettings, inputs_id: str
    ) -> None:
        self.jobs, self.begin, self.end = jobs, begin, end
        self.settings = settings
        self.inputs_id = inputs_id
        self.planner = Planner()
        self.ledgers = {job.job_id: GapLedger() for job in jobs}
        self.names = {job.job_id: job.name for job in jobs}
        self.unwritten: list[tuple[datetime, datetime]] = []  # what no leader claimed ahead
        self.budget_from = begin
        self.clock_error = _NO_TIME

    def run(
        self, gaps: Iterable[Gap], nodes: int, skew: timedelta, told: Callable[[int, int], None] | None
    ) -> Rehearsal:
        outcomes = self.decide(gaps, nodes, skew)
        report = AuditReport(Window(self.begin, self.end, self.end, None, self.inputs_id))
        judged = []
        for job in self.jobs:
            judged.append(self._judge(job, report))
            if told is not None:
                told(len(judged), len(self.jobs))
        return Rehearsal(self.begin, self.end, tuple(judged), tuple(outcomes), report, self.clock_error)

    def decide(self, gaps: Iterable[Gap], nodes: int, skew: timedelta) -> list[GapOutcome]:
        """Each gap, and what was decided at its end."""
        outcomes: list[GapOutcome] = []
        written = self.begin
        leader = 0
        for number, gap in enumerate(one for one in gaps if one.end <= self.end):
            leader = (leader + (gap.cause is Cause.TAKEOVER)) % nodes
            now = self._time_of(gap.end, skew if number % 2 else -skew)
            written = max(written, gap.begin + self.settings.horizon)
            name = f"node-{leader + 1}"
            outcomes.append(self._decide(gap, name, written, now) if now > written else GapOutcome(gap, name))
            written = max(written, now)
        return outcomes

    def _time_of(self, instant: datetime, skew: timedelta) -> datetime:
        """What a node takes for the database's time at ``instant``, having asked a second before."""
        clock = SkewedClock(instant - timedelta(seconds=1), skew)
        time = DatabaseTime(clock)
        time.observe(clock.truth, clock.elapsed(), clock.elapsed())
        clock.advance(timedelta(seconds=1))
        self.clock_error = max(self.clock_error, abs(time.now() - instant))
        return time.now()

    def _decide(self, gap: Gap, node: str, written: datetime, now: datetime) -> GapOutcome:
        planner = self.planner
        self.unwritten.append((written, now))
        planner.put_all([at_cursor(job, written) for job in self.jobs if not job.pauses])
        missed_pass = planner.begin_pass(gap.cause, now, 0, self.settings.catch_up_hold_above)
        decisions: list[tuple[str, JobDecision]] = []
        while (draft := planner.draft(now, now, missed_pass)).plans:
            batch = draft.batch(1, now, self._starts(draft.paced, now))
            for claim in batch.claims:
                self.ledgers[claim.job_id].add(claim, now)
            for skip in batch.skips:
                self.ledgers[skip.job_id].skips.append(skip)
            for decision in batch.decisions:
                self.ledgers[decision.job_id].example = decision.reason
                decisions.append((self.names[decision.job_id], decision))
            missed_pass.fired += draft.fired
            planner.settle(draft, CommitResult(True, True, len(draft.plans), 0))
        refuse_faults(planner)
        return GapOutcome(gap, node, tuple(decisions), missed_pass.force_hold)

    def _starts(self, count: int, now: datetime) -> list[datetime]:
        starts = start_instants(max(now, self.budget_from), count + 1, self.settings.catch_up_rate)
        if count:
            self.budget_from = starts[-1]
        return starts[:-1]

    # --- the ledger, and its audit ---

    def _judge(self, job: PlannedJob, report: AuditReport) -> JobOutcome:
        ledger = self.ledgers[job.job_id]
        revision = job.revisions[0]
        ticks = array("q")
        if job.pauses:
            ledger.skips.extend(decide_missed(job, self.end, cause=Cause.LATE_LEADER).skips)
        else:
            ticks = self._claimed(job, ledger)
        kinds = array("q", [kind_of(revision.revision, Origin.SCHEDULE)]) * len(ticks)
        for claim in ledger.claims:
            kinds[bisect_left(ticks, micros_of(claim.scheduled_at))] = kind_of(claim.revision, claim.origin)
        audited = audit_job(
            JobLedger(
                job_id=job.job_id,
                name=job.name,
                cursor=self.end,
                revisions=(
                    AuditedRevision(
                        revision.revision,
                        revision.schedule,
                        revision.since,
                        None,
                        revision.firing.missed.grace,
                        self.inputs_id,
                    ),
                ),
                open_pause_since=None,
                claims=ClaimColumns(ticks, kinds),
                skips=SkipColumns.of(AuditedSkip(s.after, s.upto, s.count, s.reason.value) for s in ledger.skips),
            ),
            report.window,
        )
        report.add(audited)
        skips: Counter[SkipReason] = Counter()
        reasons: Counter[str] = Counter()
        for skip in ledger.skips:
            skips[skip.reason] += skip.count
            reasons[_said(skip)] += skip.count
        return JobOutcome(
            job=job.name,
            due=audited.due,
            on_time=len(ticks) - ledger.late - ledger.caught_up,
            late=ledger.late,
            caught_up=ledger.caught_up,
            skips=dict(skips),
            latest=ledger.latest,
            reasons=dict(reasons),
            example=ledger.example,
        )

    def _claimed(self, job: PlannedJob, ledger: GapLedger) -> array[int]:
        """All ticks; of those that fell into what no leader had claimed, the ones that a pass fired."""
        every = ticks_between(job.revisions[0].schedule, micros_of(self.begin), micros_of(self.end))
        fired = array("q", sorted(micros_of(claim.scheduled_at) for claim in ledger.claims))
        ticks, done = array("q"), 0
        for after, upto in self.unwritten:
            first, last = micros_of(after), micros_of(upto)
            ticks.extend(every[done : bisect_right(every, first)])
            ticks.extend(fired[bisect_right(fired, first) : bisect_right(fired, last)])
            done = bisect_right(every, last)
        ticks.extend(every[done:])
        return ticks


def refuse_faults(planner: Planner) -> None:
    """Raise Refused where the planner gave a job up: a cluster would put it in quarantine."""
    for fault in planner.faults.values():
        raise Refused(f"{fault.name} cannot be planned: {fault.reason}", hint="look at its schedule")


def _said(skip: NewSkip) -> str:
    """Why, without the instant: which tick others were merged into is another in each gap."""
    return "merged into the newest" if skip.reason is SkipReason.MERGED else skip.detail or skip.reason.value


def fault_gaps(
    begin: datetime,
    end: datetime,
    *,
    kill_every: timedelta | None,
    gap: timedelta,
    pause: timedelta,
    pause_every: timedelta,
    election: timedelta,
) -> Iterator[Gap]:
    """Gaps in order: a leader killed every ``kill_every``, with ``gap`` until its successor decides; and, halfway
    between, one frozen for ``pause``, which goes on by itself where that is shorter than an ``election``.

    Raises Refused where they would run into each other.
    """
    kills, frozen = (gap if kill_every else _NO_TIME), min(pause, election)
    every = kill_every or pause_every
    if max(kills, frozen) * 2 >= every:
        raise Refused(
            "the gaps run into each other: each must be shorter than half the time between two",
            hint="raise --kill-leader-every, or lower --gap or --pause",
        )
    at = begin
    while at + every / 2 <= end:
        if pause:
            halfway = at + every / 2
            cause = Cause.TAKEOVER if pause > election else Cause.LATE_LEADER
            yield Gap(halfway, halfway + frozen, Ending.FROZEN, cause)
        at += every
        if kill_every:
            yield Gap(at, at + gap, Ending.KILLED, Cause.TAKEOVER)
