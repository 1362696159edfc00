"""What fell due in a pause, decided by the job's policy as if nobody had led meanwhile; pure.

The pause's skip records hold those ticks. What fires becomes claims and the record is resolved: with its claims it is
one decision. What the policy holds gets a record and a proposal of its own. Ticks that no leader has recorded yet are
left to the leader: the pause then ends at the cursor, and they are missed ticks like any others; both decide by the
same function over the same ticks, so that ``latest`` fires once and ``max`` is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sexton.backfill_plan import ticks_between
from sexton.claims import Origin
from sexton.decisions import Cause, NewClaim, NewProposal, PlannedJob, RevisionInForce, SkipReason
from sexton.missed_ticks import Fire, FireKind, MissedPlan, decide_missed
from sexton.resolutions import JobStretch, Resolution, SkipFound, SkipPart, SkipSplit


@dataclass(frozen=True, slots=True)
class PausePlan:
    """What to write when the pause ends. ``reason``: the decision in a sentence, empty where nothing fell due."""

    resolution: Resolution
    fired: int
    held: int
    reason: str


def plan_pause(stretch: JobStretch, hold_above: int, fired_before: int = 0) -> PausePlan:
    """Decide what is recorded in the pause that lasts; ``stretch`` reaches from its begin to now.

    Where ``fired_before`` and what would fire here come to more than ``hold_above``, all of it is held. Raises what
    the job's schedule raises.
    """
    records = _records(stretch)
    missed = _decided(stretch)
    if fired_before + missed.fired > hold_above:
        missed = _decided(stretch, force_hold=True)
    fires = [fire for fire in missed.fires if fire.scheduled_at <= stretch.at]
    reason = _reason(missed, fires)
    held = _held(stretch, records, missed)
    is_whole = missed.decision is not None and missed.decision.upto <= stretch.at
    resolution = Resolution(
        job_id=stretch.job_id,
        name=stretch.name,
        seq=stretch.seq,
        at=stretch.at,
        newest=stretch.newest,
        order=tuple(fire.scheduled_at for fire in fires),
        claims=tuple(_claim(stretch, fire) for fire in fires),
        splits=tuple(_split(stretch, record, held, reason) for record in records),
        begin=stretch.after,
        proposals=tuple(held),
        decision=missed.decision if is_whole else None,
    )
    return PausePlan(resolution, len(fires), sum(one.count for one in held), reason)


def _reason(missed: MissedPlan, fires: Sequence[Fire]) -> str:
    """The decision in a sentence; what fell due, but has its jitter ahead, was not missed and runs all the same."""
    ahead = sum(fire.kind is FireKind.LIVE for fire in fires)
    still = f"{ahead:,} with jitter still ahead {'runs' if ahead == 1 else 'run'}" if ahead > 0 else ""
    return "; ".join(part for part in ("" if missed.decision is None else missed.decision.reason, still) if part)


def would_fire(stretch: JobStretch) -> int:
    """How many ticks would fire by the job's policy, if nothing held them. Raises what the job's schedule raises."""
    return _decided(stretch).fired


def _records(stretch: JobStretch) -> list[SkipFound]:
    return [skip for skip in stretch.skips if skip.reason == SkipReason.PAUSED and not skip.is_resolved]


def _decided(stretch: JobStretch, *, force_hold: bool = False) -> MissedPlan:
    pieces = _pieces(stretch, _records(stretch))
    job = PlannedJob(stretch.job_id, stretch.name, stretch.seq, stretch.after, pieces)
    return decide_missed(job, stretch.now, cause=Cause.RESUMED, force_hold=force_hold)


def _pieces(stretch: JobStretch, records: list[SkipFound]) -> tuple[RevisionInForce, ...]:
    """The revisions in force, cut to what is to be decided: each record, and what is not recorded yet."""
    spans = [(record.after, record.upto) for record in records]
    spans.append((max(stretch.at, stretch.after), stretch.upto))
    pieces = []
    for begin, end in spans:
        for revision in stretch.revisions:
            since = max(begin, revision.since)
            until = end if revision.until is None else min(end, revision.until)
            if since < until:
                pieces.append(replace(revision, since=since, until=until))
    return tuple(pieces)


def _held(stretch: JobStretch, records: list[SkipFound], missed: MissedPlan) -> list[NewProposal]:
    """A proposal for what is held of each record. It begins where its part of the record will: with the record, or the
    part before it, where no tick lies between; a pause begins when it may."""
    held = []
    for record in records:
        position = record.after
        for proposal in missed.proposals:
            after, upto = max(position, proposal.after), min(record.upto, proposal.upto)
            count = ticks_between(stretch, after, upto) if after < upto else 0
            if count:
                after = after if ticks_between(stretch, position, after) else position
                held.append(replace(proposal, after=after, upto=upto, count=count))
                position = upto
    return held


def _split(stretch: JobStretch, record: SkipFound, held: list[NewProposal], reason: str) -> SkipSplit:
    """The record's parts: those that are held, and between them what is resolved."""
    detail = f"{record.detail}; {reason}" if record.detail else reason
    parts: list[SkipPart] = []
    position, left = record.after, record.count
    for one in held:
        if not record.after <= one.after < one.upto <= record.upto:
            continue
        if before := ticks_between(stretch, position, one.after):
            parts.append(SkipPart(position, one.after, before, is_resolved=True, detail=detail))
        why = f"paused by {record.detail}; {one.reason}"
        parts.append(
            SkipPart(one.after, one.upto, one.count, is_resolved=False, reason=SkipReason.HELD.value, detail=why)
        )
        position, left = one.upto, left - before - one.count
    if left > 0 or not parts:
        parts.append(SkipPart(position, record.upto, left, is_resolved=True, detail=detail))
    return SkipSplit(record, tuple(parts))


def _claim(stretch: JobStretch, fire: Fire) -> NewClaim:
    return NewClaim(
        job_id=stretch.job_id,
        scheduled_at=fire.scheduled_at,
        revision=stretch.newest.revision,
        origin=Origin.BACKFILL,
        available_at=fire.scheduled_at,  # the budget's start takes its place
        start_by=None,
        jitter=fire.jitter,
        firing=stretch.newest.firing,
    )


def pause_end(resolution: Resolution) -> datetime:
    """Where the pause ends: at the cursor, up to which its ticks were decided, and not before it began."""
    return resolution.at if resolution.begin is None else max(resolution.begin, resolution.at)
