"""What a backfill of a stretch comes to, tick by tick; pure.

A tick that was decided not to run runs: its skip record is split and resolved, or its claim, which ended without a run,
is opened again. One that ran stays, unless a rerun is asked for; one that waits or runs stays. What runs is the job as
it is now; which ticks there are is for the revisions that were in force.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sexton.claims import ENDED_BY_RUN, Origin, State
from sexton.decisions import NewClaim
from sexton.errors import OtherInputs, Refused
from sexton.holds import became_of
from sexton.inputs import are_same
from sexton.job_rules import CatchUpOrder
from sexton.resolutions import ClaimFound, JobStretch, Resolution, SkipFound, SkipPart, SkipSplit
from sexton.tick_view import MICROSECOND

MOST_TICKS = 10_000
"""Ticks that one backfill may name: it is one transaction, and a person has to read what it would do."""

_NEVER_RAN = frozenset({State.SKIPPED, State.MERGED, State.EXPIRED})


class Does(StrEnum):
    """What a backfill does with a tick."""

    RUNS = "runs"
    RUNS_AGAIN = "runs again"
    STAYS = "stays"


@dataclass(frozen=True, slots=True)
class BackfillTick:
    """One tick of the stretch. ``state``: what became of it so far."""

    scheduled_at: datetime
    state: str
    does: Does


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """All ticks of the stretch, oldest first, and what to write."""

    job_id: int
    job: str
    ticks: tuple[BackfillTick, ...]
    resolution: Resolution

    @property
    def runs(self) -> tuple[datetime, ...]:
        """The ticks that would run, oldest first."""
        return tuple(tick.scheduled_at for tick in self.ticks if tick.does is not Does.STAYS)


def plan_backfill(stretch: JobStretch, inputs_id: str, *, rerun: bool = False) -> BackfillPlan:
    """Decide each tick in the stretch; ``inputs_id``: what ticks are computed with here.

    Raises ``Refused`` where the stretch reaches beyond now, the cursor or what the ledger still holds, into an open
    proposal, or over more than ``MOST_TICKS`` ticks, and where the job is retired; ``OtherInputs`` where this process
    would compute other ticks than the cluster.
    """
    _check(stretch, inputs_id)
    due = _due(stretch)
    claims = {claim.scheduled_at: claim for claim in stretch.claims if claim.origin is not Origin.MANUAL}
    ticks: list[BackfillTick] = []
    new: list[datetime] = []
    opened: list[ClaimFound] = []
    for tick in due:
        claim, skip = claims.get(tick), _covering(stretch.skips, tick)
        if claim is not None:
            does = _does(claim, rerun=rerun)
            ticks.append(BackfillTick(tick, claim.state.word, does))
            if does is not Does.STAYS:
                opened.append(claim)
        elif skip is not None:
            ticks.append(BackfillTick(tick, became_of(skip.reason, skip.detail), Does.RUNS))
            new.append(tick)
        else:
            ticks.append(BackfillTick(tick, "missing", Does.STAYS))
    order = [tick.scheduled_at for tick in ticks if tick.does is not Does.STAYS]
    if stretch.newest.firing.missed.order is CatchUpOrder.NEWEST:
        order.reverse()
    resolution = Resolution(
        job_id=stretch.job_id,
        name=stretch.name,
        seq=stretch.seq,
        at=stretch.at,
        newest=stretch.newest,
        order=tuple(order),
        claims=tuple(_claim(stretch, tick) for tick in new),
        opened=tuple(opened),
        splits=tuple(_splits(stretch, due, new)),
    )
    return BackfillPlan(stretch.job_id, stretch.name, tuple(ticks), resolution)


def _check(stretch: JobStretch, inputs_id: str) -> None:
    name, begin, end = stretch.name, stretch.after + MICROSECOND, stretch.upto + MICROSECOND
    if stretch.is_retired:
        raise Refused(f"the job {name} is retired", hint="apply a job file that has it, to have it again")
    if stretch.inputs_id and not are_same(stretch.inputs_id, inputs_id):
        raise OtherInputs(
            f"the cluster's ticks are computed with {stretch.inputs_id}, and here is {inputs_id}",
            hint="use a Sexton of the cluster's release and zone data",
        )
    if end > stretch.now:
        raise Refused(
            f"{_iso(end)} is ahead of now, and what is to come is the schedule's",
            hint=f"end at {_iso(stretch.now.replace(microsecond=0))} at the latest",
        )
    if stretch.pruned_before is not None and begin < stretch.pruned_before:
        raise Refused(
            f"the ledger goes back to {_iso(stretch.pruned_before)}: what ran before is not known any more",
            hint=f"begin at {_iso(stretch.pruned_before)} at the earliest",
        )
    if stretch.proposals:
        one = stretch.proposals[0]
        raise Refused(
            f"proposal {one.proposal_id} holds ticks of {name} up to {_iso(one.upto)}, and waits for an answer",
            hint=f"answer it first: `sexton holds approve {one.proposal_id}`, or `reject`",
        )


def _due(stretch: JobStretch) -> list[datetime]:
    """The ticks of the stretch, oldest first; all decided."""
    due: list[datetime] = []
    for revision in stretch.revisions:
        after = max(stretch.after, revision.since)
        upto = stretch.upto if revision.until is None else min(stretch.upto, revision.until)
        if after < upto:
            due += itertools.islice(revision.schedule.between(after, upto), MOST_TICKS + 1 - len(due))
        if len(due) > MOST_TICKS:
            raise Refused(
                f"more than {MOST_TICKS:,} ticks of {stretch.name} fell due in there",
                hint=f"do it in parts: the first ends with --to {_iso(due[-1])}",
            )
    undecided = [tick for tick in due if tick > stretch.at]
    if undecided:
        raise Refused(
            f"{stretch.name} is decided up to {_iso(stretch.at)}, and {_iso(undecided[0])} is not",
            hint=f"end at {_iso(undecided[0])}, or look at `sexton status`: a leader decides what fell due",
        )
    return due


def _covering(skips: Sequence[SkipFound], tick: datetime) -> SkipFound | None:
    first = bisect_left(skips, tick, key=lambda skip: skip.upto)
    return skips[first] if first < len(skips) and skips[first].after < tick else None


def _does(claim: ClaimFound, *, rerun: bool) -> Does:
    if claim.state in _NEVER_RAN or (claim.state is State.CANCELLED and claim.attempt == 0):
        return Does.RUNS
    return Does.RUNS_AGAIN if rerun and claim.state in ENDED_BY_RUN else Does.STAYS


def _claim(stretch: JobStretch, tick: datetime) -> NewClaim:
    firing = stretch.newest.firing
    return NewClaim(
        job_id=stretch.job_id,
        scheduled_at=tick,
        revision=stretch.newest.revision,
        origin=Origin.BACKFILL,
        available_at=tick,  # the budget's start takes its place
        start_by=None,
        jitter=firing.jitter_of(tick),
        firing=firing,
    )


def _splits(stretch: JobStretch, due: Sequence[datetime], new: Sequence[datetime]) -> list[SkipSplit]:
    splits = []
    for skip in stretch.skips:
        inside = new[bisect_right(new, skip.after) : bisect_right(new, skip.upto)]
        if inside and not skip.is_resolved:
            count = bisect_right(due, inside[-1]) - bisect_left(due, inside[0])
            splits.append(SkipSplit(skip, split_skip(stretch, skip, inside[0], inside[-1], count)))
    return splits


def split_skip(
    stretch: JobStretch, skip: SkipFound, first: datetime, last: datetime, count: int
) -> tuple[SkipPart, ...]:
    """The record cut around the ``count`` ticks from ``first`` to ``last``, which are resolved."""
    older = ticks_between(stretch, skip.after, first - MICROSECOND)
    newer = max(0, skip.count - older - count)
    begin = first - MICROSECOND if older else skip.after
    end = last if newer else skip.upto
    parts = [SkipPart(begin, end, count, is_resolved=True)]
    if older:
        parts.insert(0, SkipPart(skip.after, begin, older, is_resolved=False))
    if newer:
        parts.append(SkipPart(end, skip.upto, newer, is_resolved=False))
    return tuple(parts)


def ticks_between(stretch: JobStretch, after: datetime, upto: datetime) -> int:
    """How many ticks lie in ``(after, upto]`` by the revisions read with the stretch."""
    count = 0
    for revision in stretch.revisions:
        begin = max(after, revision.since)
        end = upto if revision.until is None else min(upto, revision.until)
        count += revision.schedule.count_between(begin, end) if begin < end else 0
    return count


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
