"""Ticks that an operator names, ahead of their time, not to run (skip-next); pure.

Their decision is made at once: the cursor moves over the named ticks, what lies before them is claimed, and each named
tick has a skip record of its own, ahead of now. A later edit of the job takes all of it back, as it takes back claims
that were written ahead; one that names further ticks keeps those that were named before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.claims import Origin
from sexton.decisions import NewClaim
from sexton.errors import NotFound, Refused
from sexton.resolutions import JobStretch

MOST_AHEAD = 1_000
"""Ticks up to the last one that may be named: all before it are claimed at once."""

_LEAST_START_WITHIN = timedelta(seconds=1)  # as the leader's claims have it


@dataclass(frozen=True, slots=True)
class Named:
    """One tick that is not to run: who named it, and what its skip record says."""

    tick: datetime
    who: str
    detail: str


@dataclass(frozen=True, slots=True)
class AheadPlan:
    """What to write after E, if the job is still at ``seq``: ``ticks`` are all from ``begin`` to the last named one.

    E lies between ``begin`` and the first of ``named``, or the named tick is not ahead any more.
    """

    job_id: int
    name: str
    seq: int
    begin: datetime
    ticks: tuple[datetime, ...]
    named: Mapping[datetime, Named]
    claims: Mapping[datetime, NewClaim]
    changed: datetime
    is_named: bool


@dataclass(frozen=True, slots=True)
class AheadRows:
    """What an edit at E writes: claims, and skip records ``(after, tick]``. ``at``: the cursor, None: it stays at E."""

    claims: tuple[NewClaim, ...]
    skips: tuple[tuple[datetime, Named], ...]
    at: datetime | None


def named_ahead(stretch: JobStretch) -> dict[datetime, Named]:
    """The named ticks that are still ahead of now."""
    return {
        skip.upto: Named(skip.upto, skip.named_by, skip.detail)
        for skip in stretch.skips
        if skip.named_by is not None and skip.upto > stretch.now
    }


def plan_naming(stretch: JobStretch, tick: datetime | None, actor: str, why: str) -> AheadPlan:
    """Name ``tick``, or the job's next one that is not named yet. ``stretch`` reaches from now on.

    Raises ``Refused`` where the job is paused, or the tick is not to come, is named already, or lies too far ahead;
    ``NotFound`` where the job has no such tick.
    """
    _check_running(stretch)
    before = named_ahead(stretch)
    if tick is None:
        tick = next((one for one in _ahead(stretch) if one not in before), None)
        if tick is None:
            raise NotFound(f"{stretch.name} has no tick to come", hint="`sexton next --job` lists what is to come")
    elif tick in before:
        raise Refused(
            f"{_iso(tick)} of {stretch.name} is skipped already: {before[tick].detail}",
            hint="`--undo` takes that back",
        )
    _check_tick(stretch, tick)
    detail = f"skip-next by {actor}" + (f": {why}" if why else "")
    named = {**before, tick: Named(tick, actor, detail)}
    return _plan(stretch, named, tick, is_named=True)


def plan_unnaming(stretch: JobStretch, tick: datetime | None, expected: Named | None = None) -> AheadPlan:
    """Take back the naming of ``tick``, or of the nearest one; of the ``expected`` one only as it stands there.

    Raises ``NotFound`` where none is named, ``Refused`` where it is named otherwise.
    """
    named = named_ahead(stretch)
    if tick is None:
        tick = min(named, default=None)
    if tick is None or tick not in named:
        raise NotFound(
            f"no tick to come of {stretch.name} is skipped" if tick is None else f"{_iso(tick)} is not skipped",
            hint=f"`sexton ticks {stretch.name}` lists what is decided, and what is to come",
        )
    if expected is not None and named[tick] != expected:
        raise Refused(f"{_iso(tick)} of {stretch.name} is skipped anew: {named[tick].detail}", hint="it stays skipped")
    del named[tick]
    return _plan(stretch, named, tick, is_named=False)


def rows_after(plan: AheadPlan, effective: datetime, cursor: datetime) -> AheadRows | None:
    """What to write where the edit counts from E = ``effective`` on and the cursor stands at ``cursor``, not after E.

    None where a tick between the two is undecided: it is for the leader to decide first.
    """
    if any(cursor < tick <= effective for tick in plan.ticks):
        return None
    claims: list[NewClaim] = []
    skips: list[tuple[datetime, Named]] = []
    position = effective
    ticks = [tick for tick in plan.ticks if tick > effective]
    last = max((tick for tick in ticks if tick in plan.named), default=None)
    if last is None:
        return AheadRows((), (), None)
    for tick in ticks:
        if tick > last:
            break
        if tick in plan.named:
            skips.append((position, plan.named[tick]))
        else:
            claims.append(plan.claims[tick])
        position = tick
    return AheadRows(tuple(claims), tuple(skips), last)


def _check_running(stretch: JobStretch) -> None:
    name = stretch.name
    if stretch.is_retired:
        raise Refused(f"the job {name} is retired", hint="apply a job file that has it, to have it again")
    if stretch.pause is not None:
        raise Refused(f"{name} is paused: no tick of it runs", hint=f"resume it first: `sexton resume {name}`")


def _check_tick(stretch: JobStretch, tick: datetime) -> None:
    name = stretch.name
    if tick <= stretch.now:
        raise Refused(
            f"{_iso(tick)} is past", hint=f"`sexton ticks {name}` says what became of it; `sexton cancel` stops a run"
        )
    if not stretch.newest.schedule.contains(tick):
        near = stretch.newest.schedule.next_after(tick)
        raise NotFound(
            f"{_iso(tick)} is no tick of {name}",
            hint=f"the next one after it is {_iso(near)}" if near else "none comes after it",
        )


def _plan(stretch: JobStretch, named: Mapping[datetime, Named], changed: datetime, *, is_named: bool) -> AheadPlan:
    begin = min(stretch.at, stretch.now)
    last = max(named, default=None)
    ticks: list[datetime] = []
    # Without a named tick nothing is written, but what is undecided up to now still must not be stepped over.
    for tick in stretch.newest.schedule.between(begin, stretch.now if last is None else last):
        ticks.append(tick)
        if len(ticks) > MOST_AHEAD:
            raise Refused(
                f"more than {MOST_AHEAD:,} ticks of {stretch.name} lie up to the one to be skipped",
                hint="all before it would be claimed now: name it nearer to its time, or pause the job then",
            )
    return AheadPlan(
        job_id=stretch.job_id,
        name=stretch.name,
        seq=stretch.seq,
        begin=begin,
        ticks=tuple(ticks),
        named=named,
        claims={tick: _claim(stretch, tick) for tick in ticks if tick not in named},
        changed=changed,
        is_named=is_named,
    )


def _claim(stretch: JobStretch, tick: datetime) -> NewClaim:
    """The claim that a leader would write ahead."""
    firing = stretch.newest.firing
    jitter = firing.jitter_of(tick)
    available = tick + jitter
    allowance = max(firing.missed.effective_start_within, _LEAST_START_WITHIN)
    return NewClaim(
        stretch.job_id,
        tick,
        stretch.newest.revision,
        Origin.SCHEDULE,
        available,
        available + allowance,
        jitter,
        firing,
    )


def _ahead(stretch: JobStretch) -> Iterable[datetime]:
    tick = stretch.newest.schedule.next_after(stretch.now)
    for _ in itertools.repeat(None, MOST_AHEAD + 1):
        if tick is None:
            return
        yield tick
        tick = stretch.newest.schedule.next_after(tick)


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
