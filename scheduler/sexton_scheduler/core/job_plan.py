"""One job's share of a batch: its missed ticks by ``sexton.missed_ticks``, its live ones as claims written ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.claims import Origin
from sexton.decisions import Cause, NewClaim, PlannedJob, RevisionInForce
from sexton.missed_ticks import HOLD_ABOVE_DETAIL, Fire, FireKind, MissedPlan, decide_missed
from sexton.tick_view import END_OF_TIME, stretches
from sexton_scheduler.core.tick_cache import TickCache

LEAST_START_WITHIN = timedelta(seconds=1)
_NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What to commit for one job. ``upto`` is its cursor afterwards; ``paced`` fires still wait for their start.

    ``following``: the job's next tick after ``upto``, where planning has come upon it.
    """

    job: PlannedJob
    upto: datetime
    claims: list[NewClaim]
    paced: tuple[Fire, ...]
    missed: MissedPlan | None
    following: datetime | None = None

    @property
    def fired(self) -> int:
        return 0 if self.missed is None else self.missed.fired

    @property
    def ticks(self) -> int:
        """How many ticks it decides."""
        skipped = 0 if self.missed is None else sum(skip.count for skip in self.missed.skips)
        return len(self.claims) + len(self.paced) + skipped

    @property
    def rows(self) -> int:
        """Rows that committing this costs, the cursor's apart."""
        return len(self.claims) + len(self.paced) + (0 if self.missed is None else len(self.missed.skips))


def plan_job(
    job: PlannedJob,
    cache: TickCache,
    *,
    now: datetime,
    upto: datetime,
    room: int,
    cause: Cause,
    force_hold: bool,
    punctual: timedelta,
    hold_detail: str = HOLD_ABOVE_DETAIL,
) -> JobPlan:
    """Decide the job's ticks in ``(cursor, upto]``, at most ``room`` live ones; ``upto`` is not before ``now``.

    Paused ticks ahead of ``now`` stay undecided, and so do all after them. Raises what the job's schedule raises.
    """
    first = first_tick(job, cache, job.at)
    if first is not None and _is_plain(job) and not _is_past(*first, now, punctual):
        return _plan_plain(job, cache, first[0], upto, room)
    missed = None
    decided = position = job.at
    claims: list[NewClaim] = []
    paced: tuple[Fire, ...] = ()
    if first is not None and _is_past(*first, now, punctual):
        missed = decide_missed(job, now, cause=cause, force_hold=force_hold, punctual=punctual, hold_detail=hold_detail)
        decided = missed.upto
        claims = [claim_now(job.job_id, fire, now) for fire in missed.fires if not fire.is_paced]
        paced = tuple(fire for fire in missed.fires if fire.is_paced)
        position = now
    for tick, revision in _live_ticks(job, cache, position, upto):
        claims.append(_live_claim(job.job_id, tick, revision))
        decided = tick
        if len(claims) >= room:
            break
    return JobPlan(job, decided, claims, paced, missed)


def _is_plain(job: PlannedJob) -> bool:
    """Almost every job: one revision that goes on, never paused."""
    return len(job.revisions) == 1 and job.revisions[0].until is None and not job.pauses


def _plan_plain(job: PlannedJob, cache: TickCache, first: datetime, upto: datetime, room: int) -> JobPlan:
    """As ``plan_job`` where nothing is missed: the ticks from ``first`` on, each asked for once."""
    revision, claims = job.revisions[0], list[NewClaim]()
    decided, tick = job.at, first
    while tick <= upto and len(claims) < max(room, 1):
        claims.append(_live_claim(job.job_id, tick, revision))
        decided = tick
        following = cache.next_after(revision.schedule, tick)
        if following is None:
            return JobPlan(job, decided, claims, (), None)
        tick = following
    return JobPlan(job, decided, claims, (), None, tick)


def _is_past(first: datetime, is_paused: bool, now: datetime, punctual: timedelta) -> bool:
    """Whether the job has past ticks to decide, or only such as were found when they fell due."""
    return first <= now if is_paused else first <= now - punctual


def first_tick(job: PlannedJob, cache: TickCache, after: datetime) -> tuple[datetime, bool] | None:
    """The job's first tick after ``after``, and whether a pause covers it; None when there is none."""
    if len(job.revisions) == 1 and not job.pauses:
        revision = job.revisions[0]
        tick = cache.next_after(revision.schedule, max(after, revision.since))
        if tick is None or (revision.until is not None and tick > revision.until):
            return None
        return tick, False
    for stretch in stretches(job, after, END_OF_TIME):
        tick = cache.next_after(stretch.revision.schedule, stretch.after)
        if tick is not None and tick <= stretch.upto:
            return tick, stretch.is_paused
    return None


def claim_now(job_id: int, fire: Fire, now: datetime) -> NewClaim:
    """The claim of a fire that waits for no budget: a live one at its own time, a late one at once."""
    if fire.kind is FireKind.LIVE:
        return _live_claim(job_id, fire.scheduled_at, fire.revision)
    return claim_at(job_id, fire, now)


def claim_at(job_id: int, fire: Fire, start: datetime) -> NewClaim:
    """The claim of a late or caught-up fire that may start at ``start``; only a late one can be late again."""
    is_late = fire.kind is FireKind.LATE
    return NewClaim(
        job_id=job_id,
        scheduled_at=fire.scheduled_at,
        revision=fire.revision.revision,
        origin=Origin.SCHEDULE if is_late else Origin.CATCH_UP,
        available_at=start,
        start_by=start + _start_within(fire.revision) if is_late else None,
        jitter=fire.jitter,
        firing=fire.revision.firing,
    )


def _live_ticks(
    job: PlannedJob, cache: TickCache, after: datetime, upto: datetime
) -> Iterator[tuple[datetime, RevisionInForce]]:
    for stretch in stretches(job, after, upto):
        schedule = stretch.revision.schedule
        tick = cache.next_after(schedule, stretch.after)
        if stretch.is_paused and tick is not None and tick <= stretch.upto:
            return
        while tick is not None and tick <= stretch.upto:
            yield tick, stretch.revision
            tick = cache.next_after(schedule, tick)


def _live_claim(job_id: int, tick: datetime, revision: RevisionInForce) -> NewClaim:
    firing = revision.firing
    jitter = firing.jitter_of(tick) if firing.jitter else _NO_TIME
    available_at = tick + jitter if jitter else tick
    start_by = available_at + _start_within(revision)
    return NewClaim(job_id, tick, revision.revision, Origin.SCHEDULE, available_at, start_by, jitter, firing)


def _start_within(revision: RevisionInForce) -> timedelta:
    return max(revision.firing.missed.effective_start_within, LEAST_START_WITHIN)
