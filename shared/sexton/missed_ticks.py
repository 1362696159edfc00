"""What becomes of ticks found undecided after they fell due: one pure function over one job.

The cause does not matter to it: a takeover, a database outage, a machine that
slept, a cluster that was down. Ages count from ``scheduled_at + jitter``; the rules:

1. older than ``within``: expired.
2. policy ``latest``: only the newest undecided tick fires, in grace or not; the others are merged into it.
3. otherwise, not older than ``grace``: fires late, with origin ``schedule``. Older: ``skip`` skips it, ``all``
   fires it with origin ``catch_up``, ``hold`` holds it in a proposal.
4. of all that would fire, the oldest beyond ``max`` expire. Several late fires of a job are paced, and so is all
   catch-up; a tick whose ``scheduled_at + jitter`` is still ahead is live.
5. ``force_hold`` (the pass would fire more than ``catch_up.hold_above`` ticks): all that would fire is held.

Every tick in ``(at, now]`` gets exactly one decision (invariant 2), by the rules of
the revision that was in force at it; paused ticks become one growing skip record.
The skip records and the fires form a chain: each record begins at the tick decided
before it. What is not fired is counted by arithmetic and never listed: a minutely
job that slept a year costs one record.

Where several revisions have undecided ticks, ``latest`` merges its own into the
newest fire of a later one, and ``max`` counts the fires of later ones too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from sexton.decisions import Cause, JobDecision, NewProposal, NewSkip, PlannedJob, RevisionInForce, SkipReason
from sexton.job_rules import CatchUpOrder, MissedPolicy
from sexton.missed_reasons import ReasonNumbers, reason_sentence
from sexton.settings import format_duration
from sexton.tick_view import MICROSECOND, Stretch, stretches

DEFAULT_WITHIN = timedelta(days=1)
HOLD_ABOVE_DETAIL = "held: the pass would fire more ticks than catch_up.hold_above"


class FireKind(StrEnum):
    """How an undecided tick fires."""

    LIVE = "live"  # on time: still ahead, or so little late that nothing was missed
    LATE = "late"  # in grace: origin schedule
    CATCH_UP = "catch_up"


@dataclass(frozen=True, slots=True)
class Fire:
    """A tick that will run. ``is_paced``: it starts when the cluster's catch-up budget says so."""

    scheduled_at: datetime
    jitter: timedelta
    kind: FireKind
    revision: RevisionInForce
    is_paced: bool


@dataclass(frozen=True, slots=True)
class MissedPlan:
    """The decisions over one job's ticks up to ``upto``. ``fires`` stand in the order in which they should start."""

    job_id: int
    upto: datetime  # the last tick decided, or the cursor where there was none
    fires: tuple[Fire, ...] = ()
    skips: tuple[NewSkip, ...] = ()
    proposals: tuple[NewProposal, ...] = ()
    decision: JobDecision | None = None  # None: nothing was missed

    @property
    def fired(self) -> int:
        """The ticks that count against ``catch_up.hold_above``."""
        return 0 if self.decision is None else self.decision.fired


class _Age(IntEnum):
    """The classes of ticks, oldest last."""

    LIVE = 0
    GRACE = 1
    OLD = 2
    EXPIRED = 3
    PAUSED = 4


@dataclass(frozen=True, slots=True)
class _Piece:
    """``count`` ticks in ``(after, upto]`` of a stretch, all of one age."""

    stretch: Stretch
    after: datetime
    upto: datetime
    count: int
    age: _Age
    within: timedelta


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of ticks of a piece: fired one by one, or counted together under a reason."""

    piece: _Piece
    last: datetime
    count: int
    reason: SkipReason | None = None
    detail: str = ""
    ticks: tuple[datetime, ...] = ()


def decide_missed(
    job: PlannedJob,
    now: datetime,
    *,
    cause: Cause,
    force_hold: bool = False,
    punctual: timedelta = timedelta(0),
    hold_detail: str = HOLD_ABOVE_DETAIL,
) -> MissedPlan:
    """Decide every undecided tick of ``job`` up to ``now`` (database time).

    ``punctual``: where no undecided tick is older than this, none was missed, and all are live. ``hold_detail``: the
    reason of ``force_hold``. Raises what the job's schedule raises.
    """
    pieces = list(_pieces(job, now, punctual))
    if not pieces:
        return MissedPlan(job.job_id, job.at)
    outcomes = _outcomes(pieces, hold_detail if force_hold else "")
    skips = _chain(job, outcomes)
    return MissedPlan(
        job_id=job.job_id,
        upto=outcomes[-1].last,
        fires=_fires(job, outcomes),
        skips=skips,
        proposals=tuple(_proposals(outcomes, skips, now)),
        decision=_decision(job, outcomes, now, cause, force_hold),
    )


def effective_within(revision: RevisionInForce, newest_before: datetime) -> timedelta:
    """``within`` with its default: 1 day, and under ``latest`` at least one period of the schedule there."""
    rules = revision.firing.missed
    if rules.within is not None:
        return rules.within
    if rules.policy is not MissedPolicy.LATEST:
        return DEFAULT_WITHIN
    newest = revision.schedule.previous_before(newest_before + MICROSECOND)
    if newest is None:
        return DEFAULT_WITHIN
    following = revision.schedule.next_after(newest)
    if following is not None:
        return max(DEFAULT_WITHIN, following - newest)
    previous = revision.schedule.previous_before(newest)
    return DEFAULT_WITHIN if previous is None else max(DEFAULT_WITHIN, newest - previous)


# --- ages -----------------------------------------------------------------------------------------


def _pieces(job: PlannedJob, now: datetime, punctual: timedelta) -> Iterator[_Piece]:
    cuts = list(stretches(job, job.at, now))
    live_after = now - punctual if punctual and not _any_older(job, cuts, now - punctual) else now
    for stretch in cuts:
        if stretch.is_paused:
            count = stretch.count(stretch.after, stretch.upto)
            if count:
                yield _Piece(stretch, stretch.after, stretch.upto, count, _Age.PAUSED, timedelta(0))
        else:
            yield from _aged(stretch, now, live_after)


def _any_older(job: PlannedJob, cuts: Iterable[Stretch], than: datetime) -> bool:
    """Whether any tick that is not paused fell due at or before ``than``."""
    for stretch in cuts:
        if not stretch.is_paused:
            for tick in stretch.ticks(stretch.after, than):
                if tick + stretch.revision.firing.jitter_of(tick) <= than:
                    return True
    return False


def _aged(stretch: Stretch, now: datetime, live_after: datetime) -> Iterator[_Piece]:
    """Cut a stretch by age. With jitter, ticks near a limit are asked one by one, the rest goes by arithmetic."""
    revision = stretch.revision
    jitter = revision.firing.jitter
    within = effective_within(revision, now if revision.until is None else min(now, revision.until))
    expired_before = min(now - within, live_after)
    old_before = min(max(now - revision.firing.missed.grace, expired_before), live_after)

    def age_of(tick: datetime) -> _Age:
        due = tick + revision.firing.jitter_of(tick)
        if due > live_after:
            return _Age.LIVE
        if due < expired_before:
            return _Age.EXPIRED
        return _Age.OLD if due < old_before else _Age.GRACE

    position = stretch.after
    for end, age in (
        (expired_before - jitter - MICROSECOND, _Age.EXPIRED),
        (expired_before - MICROSECOND, None),
        (old_before - jitter - MICROSECOND, _Age.OLD),
        (old_before - MICROSECOND, None),
        (live_after - jitter, _Age.GRACE),
        (live_after, None),
        (stretch.upto, _Age.LIVE),
    ):
        end = min(end, stretch.upto)
        if end <= position:
            continue
        if age is None:
            for tick in stretch.ticks(position, end):
                yield _Piece(stretch, tick - MICROSECOND, tick, 1, age_of(tick), within)
        elif count := stretch.count(position, end):
            yield _Piece(stretch, position, end, count, age, within)
        position = end


# --- rules ----------------------------------------------------------------------------------------


def _outcomes(pieces: list[_Piece], held: str) -> list[_Outcome]:
    """Apply the rules from the newest tick to the oldest; the result is oldest first. ``held``: why nothing fires."""
    newest_first: list[_Outcome] = []
    fired = 0
    newest_fire: datetime | None = None
    for piece in reversed(pieces):
        decided = _settled(piece)
        if decided is not None:
            newest_first.append(decided)
            continue
        rules = piece.stretch.revision.firing.missed
        is_latest = rules.policy is MissedPolicy.LATEST
        room = (0 if fired else 1) if is_latest else max(0, rules.max - fired)
        ticks = tuple(piece.stretch.newest(piece.after, piece.upto, min(room, piece.count)))
        if ticks:
            fired += len(ticks)
            newest_fire = newest_fire or ticks[-1]
            reason, detail = (SkipReason.HELD, held) if held else (None, "")
            newest_first.append(_Outcome(piece, ticks[-1], len(ticks), reason, detail, ticks))
        if rest := piece.count - len(ticks):
            end = ticks[0] - MICROSECOND if ticks else piece.upto
            if is_latest and newest_fire is not None:
                newest_first.append(_counted(piece, end, rest, SkipReason.MERGED, f"merged into {_iso(newest_fire)}"))
            else:
                newest_first.append(_counted(piece, end, rest, SkipReason.EXPIRED, f"expired: beyond max {rules.max}"))
    newest_first.reverse()
    return newest_first


def _settled(piece: _Piece) -> _Outcome | None:
    """The outcome of a piece that does not depend on what newer ticks do; None where it would fire."""
    rules = piece.stretch.revision.firing.missed
    whole = (piece, piece.upto, piece.count)
    if piece.age is _Age.PAUSED:
        return _counted(*whole, SkipReason.PAUSED, "")
    if piece.age is _Age.EXPIRED:
        return _counted(*whole, SkipReason.EXPIRED, f"expired: older than within {format_duration(piece.within)}")
    if piece.age is _Age.LIVE:
        ticks = tuple(piece.stretch.ticks(piece.after, piece.upto))
        return _Outcome(piece, ticks[-1], len(ticks), ticks=ticks)
    if piece.age is _Age.OLD and rules.policy is MissedPolicy.SKIP:
        return _counted(*whole, SkipReason.SKIPPED, f"policy skip: older than grace {format_duration(rules.grace)}")
    if piece.age is _Age.OLD and rules.policy is MissedPolicy.HOLD:
        return _counted(*whole, SkipReason.HELD, f"policy hold: older than grace {format_duration(rules.grace)}")
    return None


def _counted(piece: _Piece, upto: datetime, count: int, reason: SkipReason, detail: str) -> _Outcome:
    last = piece.stretch.newest(piece.after, upto, 1)[-1]
    return _Outcome(piece, last, count, reason, detail)


# --- records --------------------------------------------------------------------------------------


def _chain(job: PlannedJob, outcomes: list[_Outcome]) -> tuple[NewSkip, ...]:
    """Skip records, each from the tick decided before it; neighbours of one reason are one record."""
    skips: list[NewSkip] = []
    position = job.at
    for outcome in outcomes:
        if outcome.reason is not None:
            skip = NewSkip(
                job_id=job.job_id,
                after=position,
                upto=outcome.last,
                count=outcome.count,
                reason=outcome.reason,
                detail=outcome.detail or job.why_paused(outcome.last),
                revision=outcome.piece.stretch.revision.revision,
            )
            before = skips[-1] if skips else None
            if before is not None and before.upto == position and _may_join(before, skip):
                skips[-1] = _joined(before, skip)
            elif before is None and position == job.at and skip.reason is SkipReason.PAUSED and _grows(job):
                skips.append(_grown(job, skip))
            else:
                skips.append(skip)
        position = outcome.last
    return tuple(skips)


def _may_join(before: NewSkip, skip: NewSkip) -> bool:
    return (before.reason, before.detail, before.revision) == (skip.reason, skip.detail, skip.revision)


def _joined(before: NewSkip, skip: NewSkip) -> NewSkip:
    count = before.count + skip.count
    return NewSkip(skip.job_id, before.after, skip.upto, count, skip.reason, skip.detail, skip.revision)


def _grows(job: PlannedJob) -> bool:
    return job.growing is not None and job.growing.reason is SkipReason.PAUSED


def _grown(job: PlannedJob, skip: NewSkip) -> NewSkip:
    assert job.growing is not None  # noqa: S101 - _grows said so
    count = job.growing.count + skip.count
    return NewSkip(skip.job_id, job.growing.after, skip.upto, count, skip.reason, skip.detail, skip.revision)


def _fires(job: PlannedJob, outcomes: list[_Outcome]) -> tuple[Fire, ...]:
    firing = [outcome for outcome in outcomes if outcome.reason is None]
    late = sum(outcome.count for outcome in firing if outcome.piece.age is not _Age.LIVE)
    fires = [
        Fire(
            scheduled_at=tick,
            jitter=outcome.piece.stretch.revision.firing.jitter_of(tick),
            kind=(kind := _KINDS[outcome.piece.age]),
            revision=outcome.piece.stretch.revision,
            is_paced=kind is FireKind.CATCH_UP or (kind is FireKind.LATE and late > 1),
        )
        for outcome in firing
        for tick in outcome.ticks
    ]
    if firing and firing[-1].piece.stretch.revision.firing.missed.order is CatchUpOrder.NEWEST:
        fires.reverse()
    return tuple(fires)


_KINDS = {_Age.LIVE: FireKind.LIVE, _Age.GRACE: FireKind.LATE, _Age.OLD: FireKind.CATCH_UP}


def _proposals(outcomes: list[_Outcome], skips: tuple[NewSkip, ...], now: datetime) -> Iterator[NewProposal]:
    """One proposal for each held record; a pass has one, unless a pause or an edit cuts it."""
    for skip in skips:
        if skip.reason is SkipReason.HELD:
            piece = next(o.piece for o in outcomes if o.reason is SkipReason.HELD and skip.after < o.last <= skip.upto)
            yield NewProposal(
                job_id=skip.job_id,
                revision=skip.revision,
                after=skip.after,
                upto=skip.upto,
                count=skip.count,
                within_from=now - piece.within,
                lapses_at=now + piece.stretch.revision.firing.missed.hold_for,
                reason=skip.detail,
            )


def _decision(
    job: PlannedJob, outcomes: list[_Outcome], now: datetime, cause: Cause, force_hold: bool
) -> JobDecision | None:
    missed = [outcome for outcome in outcomes if outcome.piece.age not in (_Age.LIVE, _Age.PAUSED)]
    if not missed:
        return None
    counts = dict.fromkeys((None, *SkipReason), 0)
    for outcome in missed:
        counts[outcome.reason] += outcome.count
    fired = [tick for outcome in missed if outcome.reason is None for tick in outcome.ticks]
    last = missed[-1]
    revision = last.piece.stretch.revision
    numbers = ReasonNumbers(
        now=now,
        fired_first=min(fired, default=None),
        fired_last=max(fired, default=None),
        lateness=now - max(fired) - revision.firing.jitter_of(max(fired)) if fired else None,
        fired=counts[None],
        skipped=tuple((o.reason, o.count, o.detail) for o in missed if o.reason is not None),
        is_forced=force_hold,
    )
    return JobDecision(
        job_id=job.job_id,
        revision=revision.revision,
        cause=cause,
        after=job.at,
        upto=last.last,
        policy=revision.firing.missed.policy.value,
        missed=sum(counts.values()),
        fired=counts[None],
        merged=counts[SkipReason.MERGED],
        skipped=counts[SkipReason.SKIPPED],
        expired=counts[SkipReason.EXPIRED],
        held=counts[SkipReason.HELD],
        reason=reason_sentence(numbers, revision.schedule, last.last),
    )


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
