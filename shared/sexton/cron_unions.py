"""Counting the ticks that several expressions and intervals have together, each instant once.

A day is a bit set of its 86,400 seconds. Which expressions match, and where in the day an interval falls, changes from
day to day, so that a stretch costs one lookup per day, and one `or` of bit sets per combination that occurs.

Milliseconds between the seconds are met by intervals alone. Intervals of whole seconds keep to one millisecond of the
second: they are counted as the seconds are, each such millisecond for itself; so are many that have few such
milliseconds. The others are counted by inclusion and exclusion. 30 days cost some milliseconds for a schedule as people
write them; 30 intervals off the second that share next to no divisor cost half a second to three, 50 cost five.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple, Protocol

from sexton.cron_readings import DAY_SECONDS, Readings
from sexton.progressions import Progression, count_union
from sexton.wall_clock_ticks import ChangeRule, live_readings
from sexton.zone_clock import Span, ZoneClock

CronPart = tuple[Readings, ChangeRule]

_FEW, _COARSE = 8, 50
_ALL_TIMES = (1 << DAY_SECONDS) - 1


class _Pattern(Protocol):
    """Readings of which each day has one of a few sets of times, told apart by a number."""

    def matches(self, reading: int) -> bool: ...
    def kind_of(self, day: int) -> int: ...
    def times_of(self, kind: int) -> int: ...
    def count(self, start: int, stop: int) -> int: ...


@dataclass(frozen=True, slots=True)
class _Expression:
    """The readings of an expression: each day has all of its times (1) or none (0)."""

    readings: Readings

    def matches(self, reading: int) -> bool:
        return self.readings.matches(reading)

    def kind_of(self, day: int) -> int:
        return int(self.readings.matches_day(day))

    def times_of(self, kind: int) -> int:
        return self.readings.times() if kind else 0

    def count(self, start: int, stop: int) -> int:
        return self.readings.count(start, stop)


@dataclass(frozen=True, slots=True)
class _Interval:
    """The readings of an interval: a day's kind is the first of its times, at most one past the day."""

    readings: Progression

    def matches(self, reading: int) -> bool:
        return self.readings.matches(reading)

    def kind_of(self, day: int) -> int:
        return min((self.readings.phase - day * DAY_SECONDS) % self.readings.interval, DAY_SECONDS)

    def times_of(self, kind: int) -> int:
        return _times_every(self.readings.interval) << kind & _ALL_TIMES

    def count(self, start: int, stop: int) -> int:
        return self.readings.count(start, stop)


@lru_cache(maxsize=64)
def _times_every(interval: int) -> int:
    times = 1
    while interval < DAY_SECONDS:
        times |= times << interval
        interval *= 2
    return times & _ALL_TIMES


class _Live(NamedTuple):
    pattern: _Pattern
    made_up_from: int
    first: int
    stop: int


def count_together(
    crons: Sequence[CronPart], intervals: Sequence[Progression], clock: ZoneClock, start: int, stop: int
) -> int:
    """How many instants in [start, stop) are a tick of at least one expression or interval.

    `start`, `stop` and the intervals are in milliseconds since 1970.
    """
    others = {each for each in intervals if each.interval % 1000}
    counted = {0, *(each.phase % 1000 for each in intervals if not each.interval % 1000)}
    if len(others) > _FEW:
        for each in others:
            if (apart := gcd(each.interval, 1000)) >= _COARSE:
                counted.update(range(each.phase % apart, 1000, apart))
        others = {each for each in others if gcd(each.interval, 1000) < _COARSE}
    total = count_union(others, start, stop)
    for residue in counted:
        low, high = -((residue - start) // 1000), -((residue - stop) // 1000)
        seconds = [Progression(each.interval // 1000, each.phase // 1000) for each in _at(residue, intervals)]
        total += _count_seconds([] if residue else crons, seconds, clock, low, high)
        total -= count_union(_at(residue, others), start, stop)
    return total


def _at(residue: int, intervals: Iterable[Progression]) -> list[Progression]:
    """What the intervals have at this millisecond of the second."""
    one = Progression(1000, residue)
    return [shared for each in intervals if (shared := each.meeting(one)) is not None]


def _count_seconds(
    crons: Sequence[CronPart], intervals: Sequence[Progression], clock: ZoneClock, start: int, stop: int
) -> int:
    """`count_together` of what falls on one millisecond of the second; all in seconds."""
    total = 0
    while start < stop:
        span = clock.span_at(start)
        live = _live(crons, intervals, span)
        low, high = start + span.offset, min(stop, span.end) + span.offset
        edges = {edge for one in live for edge in (one.first, one.stop) if low < edge < high}
        for cut, following in pairwise(sorted({low, high, *edges})):
            total += _count([one.pattern for one in live if one.first <= cut < one.stop], cut, following)
        if span.start >= start:
            total += _is_only_made_up(live, span.start + span.offset)
        start = span.end
    return total


def _live(crons: Sequence[CronPart], intervals: Sequence[Progression], span: Span) -> list[_Live]:
    shown_from, stop = span.start + span.offset, span.end + span.offset
    return [
        *(_Live(_Expression(readings), *live_readings(span, rule)) for readings, rule in crons),
        *(_Live(_shown_at(span.offset, interval), shown_from, shown_from, stop) for interval in intervals),
    ]


def _shown_at(offset: int, interval: Progression) -> _Interval:
    """These instants as readings of a clock that is `offset` seconds ahead of UTC."""
    return _Interval(Progression(interval.interval, (interval.phase + offset) % interval.interval))


def _is_only_made_up(live: Sequence[_Live], shown: int) -> bool:
    """Whether jumped-over readings fire at this first reading after the jump, and nothing fires there anyway."""
    if any(one.first <= shown < one.stop and one.pattern.matches(shown) for one in live):
        return False
    return any(one.made_up_from < one.first and one.pattern.count(one.made_up_from, one.first) > 0 for one in live)


def _count(patterns: Sequence[_Pattern], low: int, high: int) -> int:
    first_day, first_time = divmod(low, DAY_SECONDS)
    last_day, last_time = divmod(high, DAY_SECONDS)
    per_kinds: dict[tuple[int, ...], int] = {}
    total = 0
    for day in range(first_day, last_day + 1):
        kinds = tuple([pattern.kind_of(day) for pattern in patterns])
        if kinds not in per_kinds:
            per_kinds[kinds] = _times_of(patterns, kinds).bit_count()
        total += per_kinds[kinds]
        if day == first_day and first_time:
            total -= (_times_of(patterns, kinds) & (1 << first_time) - 1).bit_count()
        if day == last_day:
            total -= (_times_of(patterns, kinds) >> last_time).bit_count()
    return total


def _times_of(patterns: Sequence[_Pattern], kinds: Sequence[int]) -> int:
    times = 0
    for pattern, kind in zip(patterns, kinds, strict=True):
        times |= pattern.times_of(kind)
    return times
