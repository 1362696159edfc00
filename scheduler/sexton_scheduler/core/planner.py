"""The leader's plan: every job's next tick in a heap, and batches of decisions over what is due.

The planner holds values and decides; the loop reads, commits and tells it what
happened. Between ``draft`` and ``settle`` (or ``abandon``) the drafted jobs are out
of the heap, so that no tick is in two batches of this process at once; that it is
in no two commits is the database's to say (invariant 2).

* Live ticks are claimed ahead of time, up to the horizon (invariant 5); paused ones are recorded when they fall due.
* Past ticks belong to a **pass**: the takeover's, or that of a leader that found itself late. A pass counts what it
  fires, and holds what would take it above ``catch_up.hold_above``.
* A job whose schedule raises, or never moves on, leaves the plan with its reason and stops nobody else (invariant 9).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.claims import OnWorkerLost
from sexton.decisions import Cause, CommitResult, CursorMove, GrowingSkip, PlannedJob, SkipReason, TickBatch
from sexton.missed_ticks import HOLD_ABOVE_DETAIL, Fire, decide_missed
from sexton.races import RaceCounts
from sexton_scheduler.core.fire_heap import FireHeap
from sexton_scheduler.core.job_plan import JobPlan, claim_at, first_tick, plan_job
from sexton_scheduler.core.job_table import JobTable
from sexton_scheduler.core.takeover import at_cursor
from sexton_scheduler.core.tick_cache import TickCache

PUNCTUAL = timedelta(seconds=1)
"""A tick that its leader finds undecided no later than this was found when it fell due; it is live."""

BATCH_ROWS = 1000

MAY_HAVE_RUN_DETAIL = "held: may have run, for the ledger was restored or promoted"


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A job that cannot be planned, and why."""

    job_id: int
    name: str
    reason: str


@dataclass(slots=True)
class MissedPass:
    """A pass over the past ticks of all jobs. ``fired`` grows with each commit, also from a predecessor's count on.

    ``found``: how many would fire, counted no further than ``hold_above`` goes. ``number``: of a race's pass, which all
    racers count together. ``gap_from``: in a term that goes on, since when no claims were written; None: no gap led to
    the pass.
    """

    cause: Cause
    upto: datetime
    hold_above: int
    fired: int
    force_hold: bool = False
    found: int = 0
    number: int | None = None
    gap_from: datetime | None = None

    def holds(self, more: int) -> bool:
        """Whether ``more`` fires must be held instead."""
        return self.force_hold or self.fired + more > self.hold_above


@dataclass(frozen=True, slots=True)
class Draft:
    """Decisions that wait for the starts of their paced fires, then for their commit."""

    plans: tuple[JobPlan, ...]

    @property
    def paced(self) -> int:
        """How many starts to ask of the catch-up budget."""
        return sum(len(plan.paced) for plan in self.plans)

    @property
    def fired(self) -> int:
        return sum(plan.fired for plan in self.plans)

    @property
    def job_ids(self) -> tuple[int, ...]:
        return tuple(plan.job.job_id for plan in self.plans)

    @property
    def paced_ticks(self) -> frozenset[tuple[int, datetime]]:
        """Job and tick of each start that is asked for."""
        return frozenset((plan.job.job_id, fire.scheduled_at) for plan in self.plans for fire in plan.paced)

    def counted(self, result: CommitResult) -> RaceCounts:
        """What the commit cost, and how many ticks it decided."""
        lost = set(result.not_moved)
        ticks = sum(plan.ticks for plan in self.plans if plan.job.job_id not in lost)
        return RaceCounts(len(self.plans), len(lost), ticks)

    def starts_of(self, job_ids: Collection[int], starts: Sequence[datetime]) -> list[datetime]:
        """Those of the ``paced`` starts that belong to these jobs."""
        jobs = [plan.job.job_id for plan in self.plans for _ in plan.paced]
        return [start for job_id, start in zip(jobs, starts, strict=True) if job_id in job_ids]

    def batch(self, term: int, planned_at: datetime, starts: Sequence[datetime]) -> TickBatch:
        """The batch to commit; ``starts`` is what the budget gave for the ``paced`` ones."""
        claims = [claim for plan in self.plans for claim in plan.claims]
        paced: list[tuple[int, Fire]] = [(plan.job.job_id, fire) for plan in self.plans for fire in plan.paced]
        claims += [claim_at(job_id, fire, start) for (job_id, fire), start in zip(paced, starts, strict=True)]
        missed = [plan.missed for plan in self.plans if plan.missed is not None]
        moves = (CursorMove(plan.job.job_id, plan.job.seq, plan.job.at, plan.upto) for plan in self.plans)
        return TickBatch(
            term=term,
            planned_at=planned_at,
            moves=tuple(sorted(moves, key=lambda move: move.job_id)),
            claims=tuple(claims),
            skips=tuple(skip for plan in missed for skip in plan.skips),
            proposals=tuple(proposal for plan in missed for proposal in plan.proposals),
            decisions=tuple(plan.decision for plan in missed if plan.decision is not None),
        )


class Planner:
    """All jobs of the cluster and what each is due for next.

    ``may_have_run_upto``: where the ledger was restored or promoted, until when claims may have been written that it
    lacks. A job that must not run twice, and has undecided ticks up to there, has its missed ticks held.
    """

    def __init__(self) -> None:
        self.jobs = JobTable()
        self.faults: dict[int, Quarantine] = {}
        self.may_have_run_upto: datetime | None = None
        self._cache = TickCache()
        self._live = FireHeap()
        self._paused = FireHeap()
        self._is_bulk = False

    # --- jobs ---

    def put(self, job: PlannedJob) -> None:
        """The job as it stands now, with its next tick in the heap."""
        if len(self._cache) > 2 * len(self.jobs) + 1000:
            self._cache.clear()  # schedules of revisions long gone
        self.faults.pop(job.job_id, None)
        if job.is_quarantined:
            self.drop(job.job_id)
            return
        self.jobs.put(job)
        self._place(job)

    def put_all(self, jobs: Sequence[PlannedJob]) -> None:
        """``put`` for each; where that is a large part of all jobs, the heap is put in order once."""
        self._is_bulk = len(jobs) * 8 > len(self.jobs)
        try:
            for job in jobs:
                self.put(job)
        finally:
            if self._is_bulk:
                self._live.settle()
                self._paused.settle()
            self._is_bulk = False

    def drop(self, job_id: int) -> None:
        """The job has no undecided ticks any more, or is not to be planned."""
        self.jobs.drop(job_id)
        self.faults.pop(job_id, None)
        self._live.remove(job_id)
        self._paused.remove(job_id)

    # --- when ---

    def next_at(self, horizon: timedelta) -> datetime | None:
        """The instant from which there is something to decide; None: never, as things stand."""
        live, paused = self._live.peek(), self._paused.peek()
        if live is None:
            return paused
        return live - horizon if paused is None else min(live - horizon, paused)

    def is_late(self, now: datetime) -> bool:
        """Whether a tick fell due unnoticed: a pass over missed ticks is called for."""
        tick = self._live.peek()
        return tick is not None and tick <= now - PUNCTUAL

    def is_behind(self, upto: datetime) -> bool:
        """Whether undecided ticks up to ``upto`` are left."""
        tick = self._live.peek()
        return tick is not None and tick <= upto

    def claims_upto(self) -> datetime | None:
        """The first live tick without a claim: all before it are written."""
        return self._live.peek()

    # --- decisions ---

    def begin_pass(
        self,
        cause: Cause,
        now: datetime,
        fired_before: int,
        hold_above: int,
        *,
        holds: bool = False,
        served_at: datetime | None = None,
    ) -> MissedPass:
        """A pass over all ticks undecided at ``now``; whether it must hold is known before the first is decided.

        ``fired_before`` and ``holds``: by the unfinished pass that it goes on with. ``served_at``: when all that was
        due was last decided, in the same term. A tick that fell due before came late by itself (a job that left
        quarantine, a cursor set back), and not by a gap.
        """
        missed_pass = MissedPass(cause, now, hold_above, fired_before, holds)
        first = self._live.peek()
        if served_at is not None and first is not None and served_at < first:
            missed_pass.gap_from = served_at
        would_fire = fired_before
        for job_id in self._live.due(now):
            would_fire += self._count_fired(self.jobs[job_id], now, cause)
            if would_fire > hold_above:
                missed_pass.force_hold = True
                break
        missed_pass.found = would_fire - fired_before
        return missed_pass

    def would_fire(self, now: datetime, cause: Cause) -> int:
        """How many undecided ticks a pass at ``now`` would fire by the jobs' policies, if nothing held them."""
        return sum(self._count_fired(self.jobs[job_id], now, cause) for job_id in self._live.due(now))

    def draft(
        self, now: datetime, upto: datetime, missed_pass: MissedPass | None = None, max_rows: int = BATCH_ROWS
    ) -> Draft:
        """Decide what is due up to ``upto`` (not before ``now``), oldest first, in about ``max_rows`` rows."""
        plans: list[JobPlan] = []
        rows = fired = 0
        while rows < max_rows and len(plans) < max_rows:
            job_id = self._paused.pop(now) if self._paused else None
            if job_id is None:
                job_id = self._live.pop(upto)
            if job_id is None:
                break
            plan = self._plan(self.jobs[job_id], now, upto, missed_pass, fired, max_rows - rows)
            if plan is None:
                continue
            if plan.upto <= plan.job.at:
                self._place(plan.job)
                continue
            plans.append(plan)
            rows += plan.rows
            fired += plan.fired
        return Draft(tuple(plans))

    def settle(self, draft: Draft, result: CommitResult) -> tuple[int, ...]:
        """A commit happened: moved jobs go on from their new cursors. Returns the jobs to be read anew."""
        not_moved = set(result.not_moved)
        for plan in draft.plans:
            if plan.job.job_id not in not_moved:
                self._advance(plan)
        return result.not_moved

    def abandon(self, draft: Draft) -> tuple[int, ...]:
        """Nothing is known about a commit: all its jobs are to be read anew before they are planned again."""
        return draft.job_ids

    # --- within ---

    def _plan(
        self, job: PlannedJob, now: datetime, upto: datetime, missed_pass: MissedPass | None, fired: int, room: int
    ) -> JobPlan | None:
        cause, punctual = _rules_of(missed_pass)
        force_hold = missed_pass is not None and missed_pass.force_hold
        try:
            is_doubted = self._is_doubted(job)
            while True:
                plan = plan_job(
                    job,
                    self._cache,
                    now=now,
                    upto=upto,
                    room=room,
                    cause=cause,
                    force_hold=force_hold or is_doubted,
                    hold_detail=MAY_HAVE_RUN_DETAIL if is_doubted else HOLD_ABOVE_DETAIL,
                    punctual=timedelta(0) if is_doubted else punctual,
                )
                if force_hold or missed_pass is None or not plan.fired or not missed_pass.holds(fired + plan.fired):
                    return plan
                force_hold = True
        except Exception as error:  # invariant 9: whatever one job's schedule raises is that job's alone
            self._fault(job, error)
            return None

    def _count_fired(self, job: PlannedJob, now: datetime, cause: Cause) -> int:
        try:
            is_held = self._is_doubted(job)
            return decide_missed(job, now, cause=cause, force_hold=is_held, punctual=_punctual(cause)).fired
        except Exception as error:  # invariant 9
            self._fault(job, error)
            return 0

    def _is_doubted(self, job: PlannedJob) -> bool:
        """Whether undecided ticks of the job may have run, and it must not run twice."""
        upto = self.may_have_run_upto
        if upto is None or job.at >= upto:
            return False
        if all(revision.firing.on_worker_lost is not OnWorkerLost.FAIL for revision in job.revisions):
            return False
        found = first_tick(job, self._cache, job.at)
        return found is not None and found[0] <= upto

    def _place(self, job: PlannedJob) -> None:
        """Put the job's next tick into the heap it belongs to."""
        try:
            found = first_tick(job, self._cache, job.at)
        except Exception as error:  # invariant 9
            self._fault(job, error)
            return
        if found is None:
            self._live.remove(job.job_id)
            self._paused.remove(job.job_id)
            return
        tick, is_paused = found
        heap, other = (self._paused, self._live) if is_paused else (self._live, self._paused)
        if other:
            other.remove(job.job_id)
        if self._is_bulk:
            heap.place(job.job_id, tick)
        else:
            heap.push(job.job_id, tick)

    def _advance(self, plan: JobPlan) -> None:
        job = at_cursor(plan.job, plan.upto)
        if plan.missed is not None and plan.missed.skips:
            last = plan.missed.skips[-1]
            if last.reason is SkipReason.PAUSED and last.upto == plan.upto:
                growing = GrowingSkip(last.after, last.count, last.reason)
                job = PlannedJob(
                    job.job_id, job.name, job.seq, job.at, job.revisions, job.pauses, job.pause_detail, growing
                )
        self.jobs.put(job)
        if plan.following is None:
            self._place(job)
        else:
            self._live.push(job.job_id, plan.following)

    def _fault(self, job: PlannedJob, error: Exception) -> None:
        self.drop(job.job_id)
        self.faults[job.job_id] = Quarantine(job.job_id, job.name, f"{type(error).__name__}: {error}"[:500])


def _rules_of(missed_pass: MissedPass | None) -> tuple[Cause, timedelta]:
    cause = Cause.LATE_LEADER if missed_pass is None else missed_pass.cause
    return cause, _punctual(cause)


def _punctual(cause: Cause) -> timedelta:
    """A takeover decides and lists every tick of its gap; a leader that goes on finds ticks when they fall due."""
    return timedelta(0) if cause is Cause.TAKEOVER else PUNCTUAL
