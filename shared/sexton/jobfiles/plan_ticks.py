"""What a change of a job means in time: which ticks of a window appear, vanish, move or stay.

The window is (since, until]; ``since`` is the moment the change would count from, so that no tick of the past is in it.
With the ticks of before and after as two sets, those in both are *kept*. Of the others, an old one and a new one that
replaces it are a *move*; what is left *vanishes* or *appears*. Pairs are found by these rules, in this order:

1. Same day: where a local date (of each side's own zone) has as many old ticks as new ones, they pair in their order.
2. Nearest: of what is left, in order and never crossing, an old and a new tick pair where they lie no farther apart
   than half the shorter of the two schedules' periods. A schedule with one tick only may pair at any distance.

A replacement may lie a little beyond the window's end: then the old tick is a move and no loss. So every old-only tick
of the window either vanishes or moves, and every new-only one appears or is moved to, each exactly once.

Windows with more than ``LISTED_AT_MOST`` ticks are counted by arithmetic, never listed: there nothing is paired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import islice

from sexton.job_rules import FiringRules
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EverySchedule, Schedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.zones import load_zone

LISTED_AT_MOST = 1_000
_COMPARED_AT_MOST = 50_000
_WALKED_FOR_EXAMPLES = 3_000
_BEYOND = timedelta(days=4)  # a weekly job that moves by up to half a week finds its pair


@dataclass(frozen=True, slots=True)
class Firing:
    """When a job fires: its ticks, the zone they are read in, and how a tick becomes a claim. ``schedule`` None: it
    fires nothing, because it is not there, or for the reason in ``silent``."""

    schedule: Schedule | None
    zone: str = "UTC"
    rules: FiringRules = field(default_factory=FiringRules)
    silent: str = ""


NOTHING = Firing(None)


@dataclass(frozen=True, slots=True)
class MovedTick:
    old: datetime
    new: datetime


@dataclass(frozen=True, slots=True)
class DelayedTick:
    """A tick that stays, with its jitter before and after: only what it waits for changes."""

    tick: datetime
    before: timedelta
    after: timedelta


@dataclass(frozen=True, slots=True)
class TickChange:
    """A job's ticks in (since, until], before and after. The tuples hold the first few of what the numbers count.

    ``pairs_sought``: False where the ticks were counted only, so that none of them is told to move. ``until`` is
    earlier than asked for where even comparing them one by one would have been too much.
    """

    since: datetime
    until: datetime
    before: int
    after: int
    appear: int
    vanish: int
    move: int
    keep: int
    appearing: tuple[datetime, ...] = ()
    vanishing: tuple[datetime, ...] = ()
    moves: tuple[MovedTick, ...] = ()
    delays: tuple[DelayedTick, ...] = ()
    shifts: tuple[timedelta, timedelta] | None = None  # by how much its moves are later: the least and the most
    has_other_jitter: bool = False
    pairs_sought: bool = True

    @property
    def is_none(self) -> bool:
        """Nothing changes in time within the window."""
        return not (self.appear or self.vanish or self.move or self.has_other_jitter)


def change_of_ticks(before: Firing, after: Firing, since: datetime, until: datetime, *, shown: int = 3) -> TickChange:
    """How the ticks in (since, until] change from ``before`` to ``after``, naming ``shown`` of each kind."""
    return with_jitter(change_of_schedules(before, after, since, until, shown=shown), before, after, shown=shown)


def change_of_schedules(
    before: Firing, after: Firing, since: datetime, until: datetime, *, shown: int = 3
) -> TickChange:
    """The same without a word about jitter: a function of the schedules and zones alone."""
    old, new = before.schedule, after.schedule
    if old == new:
        count = 0 if old is None else old.count_between(since, until)
        return TickChange(since, until, count, count, 0, 0, 0, count)
    counts = tuple(0 if one is None else one.count_between(since, until) for one in (old, new))
    if sum(counts) <= LISTED_AT_MOST:
        return _listed(before, after, since, until, shown)
    return counted(old, new, since, until, shown)


# --- listed: every tick is known, and pairs are sought -------------------------------------------


def _listed(before: Firing, after: Firing, since: datetime, until: datetime, shown: int) -> TickChange:
    beyond = until + min(_BEYOND, until - since)
    olds = [] if before.schedule is None else list(before.schedule.between(since, beyond))
    news = [] if after.schedule is None else list(after.schedule.between(since, beyond))
    old_set, new_set = set(olds), set(news)
    only_old = [tick for tick in olds if tick not in new_set]
    only_new = [tick for tick in news if tick not in old_set]
    pairs = _pairs(only_old, only_new, before, after) if only_old and only_new else []
    moves = sorted((pair for pair in pairs if min(pair.old, pair.new) <= until), key=lambda pair: (pair.old, pair.new))
    gone, come = {pair.old for pair in moves}, {pair.new for pair in moves}
    shifts = [pair.new - pair.old for pair in moves]
    vanishing = [tick for tick in only_old if tick <= until and tick not in gone]
    appearing = [tick for tick in only_new if tick <= until and tick not in come]
    return TickChange(
        since=since,
        until=until,
        before=sum(tick <= until for tick in olds),
        after=sum(tick <= until for tick in news),
        appear=len(appearing),
        vanish=len(vanishing),
        move=len(moves),
        keep=sum(tick <= until and tick in new_set for tick in olds),
        appearing=tuple(appearing[:shown]),
        vanishing=tuple(vanishing[:shown]),
        moves=tuple(moves[:shown]),
        shifts=(min(shifts), max(shifts)) if shifts else None,
    )


def _pairs(
    only_old: Sequence[datetime], only_new: Sequence[datetime], before: Firing, after: Firing
) -> list[MovedTick]:
    pairs: list[MovedTick] = []
    olds, news = _by_local_date(only_old, before.zone), _by_local_date(only_new, after.zone)
    left_old: list[datetime] = []
    left_new: list[datetime] = []
    for day in sorted(olds.keys() | news.keys()):
        old, new = olds.get(day, []), news.get(day, [])
        if len(old) == len(new):
            pairs.extend(map(MovedTick, old, new))
        else:
            left_old.extend(old)
            left_new.extend(new)
    pairs.extend(_nearest(sorted(left_old), sorted(left_new), _farthest(before, after, only_old[0], only_new[0])))
    return pairs


def _by_local_date(ticks: Iterable[datetime], zone: str) -> dict[date, list[datetime]]:
    place = load_zone(zone)
    days: dict[date, list[datetime]] = defaultdict(list)
    for tick in ticks:
        days[tick.astimezone(place).date()].append(tick)
    return days


def _nearest(olds: Sequence[datetime], news: Sequence[datetime], farthest: timedelta) -> Iterator[MovedTick]:
    """Pairs in order: the earlier of the two ticks in front goes without a pair where they lie too far apart."""
    at_old = at_new = 0
    while at_old < len(olds) and at_new < len(news):
        old, new = olds[at_old], news[at_new]
        if abs(new - old) <= farthest:
            yield MovedTick(old, new)
            at_old, at_new = at_old + 1, at_new + 1
        elif old < new:
            at_old += 1
        else:
            at_new += 1


def _farthest(before: Firing, after: Firing, old: datetime, new: datetime) -> timedelta:
    periods = [_period(before.schedule, old), _period(after.schedule, new)]
    return min((period for period in periods if period is not None), default=timedelta.max // 2) // 2


def _period(schedule: Schedule | None, tick: datetime) -> timedelta | None:
    """From this tick to the next, or from the one before it where it is the last; None for a single tick."""
    if schedule is None:
        return None
    if (following := schedule.next_after(tick)) is not None:
        return following - tick
    previous = schedule.previous_before(tick)
    return None if previous is None else tick - previous


# --- counted: too many to list ------------------------------------------------------------------


def counted(old: Schedule | None, new: Schedule | None, since: datetime, until: datetime, shown: int) -> TickChange:
    """The change without pairs, however many ticks there are."""
    if old is None or new is None:
        one = old or new
        count = 0 if one is None else one.count_between(since, until)
        first = () if one is None else tuple(islice(one.between(since, until), shown))
        if old is None:
            return TickChange(since, until, 0, count, count, 0, 0, 0, appearing=first, pairs_sought=False)
        return TickChange(since, until, count, 0, 0, count, 0, 0, vanishing=first, pairs_sought=False)
    until = _comparable_until(old, new, since, until)
    before, after = old.count_between(since, until), new.count_between(since, until)
    keep = before + after - UnionSchedule((old, new)).count_between(since, until)
    vanishing, appearing = _first_differences(old, new, since, until, shown)
    return TickChange(
        since=since,
        until=until,
        before=before,
        after=after,
        appear=after - keep,
        vanish=before - keep,
        move=0,
        keep=keep,
        appearing=tuple(appearing),
        vanishing=tuple(vanishing),
        pairs_sought=False,
    )


def _comparable_until(old: Schedule, new: Schedule, since: datetime, until: datetime) -> datetime:
    """``until``, or earlier where arithmetic cannot tell what two schedules share and both have too many ticks."""
    parts = [part for one in (old, new) for part in (one.parts if isinstance(one, UnionSchedule) else (one,))]
    zones = {part.zone for part in parts if isinstance(part, CronSchedule)}
    if len(zones) <= 1 and all(isinstance(part, CronSchedule | EverySchedule) for part in parts):
        return until
    fewer = min(old.count_between(since, until), new.count_between(since, until))
    return until if fewer <= _COMPARED_AT_MOST else since + (until - since) * _COMPARED_AT_MOST / fewer


def _first_differences(
    old: Schedule, new: Schedule, since: datetime, until: datetime, shown: int
) -> tuple[list[datetime], list[datetime]]:
    """The first ticks that only one of the schedules has, as far as a short walk finds them."""
    vanishing: list[datetime] = []
    appearing: list[datetime] = []
    alike_until = _alike_until(old, new, since, until)
    left, right = old.next_after(alike_until), new.next_after(alike_until)
    for _ in range(_WALKED_FOR_EXAMPLES):
        ahead = [tick for tick in (left, right) if tick is not None and tick <= until]
        if not ahead or (len(vanishing) >= shown and len(appearing) >= shown):
            break
        tick = min(ahead)
        if left != right:
            (vanishing if tick == left else appearing).append(tick)
        if tick == left:
            left = old.next_after(tick)
        if tick == right:
            right = new.next_after(tick)
    return vanishing[:shown], appearing[:shown]


def _alike_until(old: Schedule, new: Schedule, since: datetime, until: datetime) -> datetime:
    """An instant up to which both have the same ticks, less than an hour before they part; by counting halves."""
    either = UnionSchedule((old, new))
    while until - since > timedelta(hours=1):
        middle = since + (until - since) / 2
        if old.count_between(since, middle) == new.count_between(since, middle) == either.count_between(since, middle):
            since = middle
        else:
            until = middle
    return since


# --- jitter ---------------------------------------------------------------------------------------


def with_jitter(change: TickChange, before: Firing, after: Firing, *, shown: int = 3) -> TickChange:
    """The change with the delays of ticks that stay, where the jitter of before is not that of after."""
    old, new = before.rules, after.rules
    is_same = old.jitter == new.jitter and (old.jitter_seed == new.jitter_seed or not old.jitter)
    if is_same or not change.keep or before.schedule is None or after.schedule is None:
        return change
    kept = (tick for tick in after.schedule.between(change.since, change.until) if before.schedule.contains(tick))
    delays = tuple(DelayedTick(tick, old.jitter_of(tick), new.jitter_of(tick)) for tick in islice(kept, shown))
    return replace(change, delays=delays, has_other_jitter=True)
