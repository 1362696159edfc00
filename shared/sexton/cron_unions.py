"""Counting the ticks that several expressions and intervals have together, each instant once.

A day is a bit set of its 86,400 seconds. Which expressions match changes from day to day, so that a stretch costs one
lookup per day, and one `or` of bit sets per combination that occurs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from sexton.cron_expression import CronExpression
from sexton.cron_readings import DAY_SECONDS
from sexton.cron_ticks import live_readings
from sexton.zone_clock import Span, ZoneClock


class _Pattern(Protocol):
    """Readings that on each day are either none or the same set of times."""

    def matches(self, reading: int) -> bool: ...
    def matches_day(self, day: int) -> bool: ...
    def times(self) -> int: ...
    def count(self, start: int, stop: int) -> int: ...


@dataclass(frozen=True, slots=True)
class DailyPeriod:
    """Every `interval` seconds, a divisor of the day, shifted by `phase`: the same times on each day."""

    interval: int
    phase: int

    def shown_at(self, offset: int) -> "DailyPeriod":
        """These instants as readings of a clock that is `offset` seconds ahead of UTC."""
        return DailyPeriod(self.interval, (self.phase + offset) % self.interval)

    def matches(self, reading: int) -> bool:
        return (reading - self.phase) % self.interval == 0

    def matches_day(self, day: int) -> bool:
        return True

    def times(self) -> int:
        return _times_every(self.interval, self.phase % self.interval)

    def count(self, start: int, stop: int) -> int:
        return (stop - 1 - self.phase) // self.interval - (start - 1 - self.phase) // self.interval


@lru_cache(maxsize=64)
def _times_every(interval: int, phase: int) -> int:
    return sum(1 << time for time in range(phase, DAY_SECONDS, interval))


class _Live(NamedTuple):
    pattern: _Pattern
    made_up_from: int
    first: int


def count_together(
    crons: Sequence[CronExpression], periods: Sequence[DailyPeriod], clock: ZoneClock, start: int, stop: int
) -> int:
    """How many instants in [start, stop) (Unix seconds) are a tick of at least one expression or period."""
    total = 0
    while start < stop:
        span = clock.span_at(start)
        live = _live(crons, periods, span)
        low, high = start + span.offset, min(stop, span.end) + span.offset
        for cut, following in pairwise(sorted({low, high, *(one.first for one in live if low < one.first < high)})):
            total += _count([one.pattern for one in live if one.first <= cut], cut, following)
        if span.start >= start:
            total += _is_only_made_up(live, span.start + span.offset)
        start = span.end
    return total


def _live(crons: Sequence[CronExpression], periods: Sequence[DailyPeriod], span: Span) -> list[_Live]:
    shown_from = span.start + span.offset
    return [
        *(_Live(cron.readings, *live_readings(span, cron.follows_elapsed_time)[:2]) for cron in crons),
        *(_Live(period.shown_at(span.offset), shown_from, shown_from) for period in periods),
    ]


def _is_only_made_up(live: Sequence[_Live], shown: int) -> bool:
    """Whether jumped-over readings fire at this first reading after the jump, and nothing fires there anyway."""
    if any(one.first <= shown and one.pattern.matches(shown) for one in live):
        return False
    return any(one.made_up_from < one.first and one.pattern.count(one.made_up_from, one.first) > 0 for one in live)


def _count(patterns: Sequence[_Pattern], low: int, high: int) -> int:
    first_day, first_time = divmod(low, DAY_SECONDS)
    last_day, last_time = divmod(high, DAY_SECONDS)
    per_day: dict[tuple[bool, ...], int] = {}
    total = 0
    for day in range(first_day, last_day + 1):
        matching = tuple([pattern.matches_day(day) for pattern in patterns])
        if matching not in per_day:
            per_day[matching] = _times_of(patterns, matching).bit_count()
        total += per_day[matching]
        if day == first_day and first_time:
            total -= (_times_of(patterns, matching) & (1 << first_time) - 1).bit_count()
        if day == last_day:
            total -= (_times_of(patterns, matching) >> last_time).bit_count()
    return total


def _times_of(patterns: Sequence[_Pattern], matching: Sequence[bool]) -> int:
    times = 0
    for pattern, matches in zip(patterns, matching, strict=True):
        if matches:
            times |= pattern.times()
    return times
