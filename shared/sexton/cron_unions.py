"""Counting the ticks that several cron expressions of one zone have together, each instant once.

A day is a bit set of its 86,400 seconds. Which expressions match changes from day to day, so that a stretch costs one
lookup per day, and one `or` of bit sets per combination of expressions that occurs.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from sexton.cron_expression import CronExpression
from sexton.cron_readings import DAY_SECONDS, Readings
from sexton.cron_ticks import live_readings
from sexton.zone_clock import ZoneClock


def count_together(crons: Sequence[CronExpression], clock: ZoneClock, start: int, stop: int) -> int:
    """How many instants in [start, stop) (Unix seconds) are a tick of at least one expression."""
    total = 0
    while start < stop:
        span = clock.span_at(start)
        live = [(cron.readings, *live_readings(span, cron.follows_elapsed_time)) for cron in crons]
        low, high = start + span.offset, min(stop, span.end) + span.offset
        cuts = sorted({low, high, *(first for _, _, first, _ in live if low < first < high)})
        for cut, following in pairwise(cuts):
            total += _count([readings for readings, _, first, _ in live if first <= cut], cut, following)
        if span.start >= start:
            total += _is_only_made_up(live, span.start + span.offset)
        start = span.end
    return total


def _is_only_made_up(live: Sequence[tuple[Readings, int, int, int]], shown: int) -> bool:
    """Whether jumped-over readings fire at this first reading after the jump, and no expression fires there anyway."""
    if any(first <= shown and readings.matches(shown) for readings, _, first, _ in live):
        return False
    return any(
        made_up_from < first and readings.count(made_up_from, first) for readings, made_up_from, first, _ in live
    )


def _count(sets: Sequence[Readings], low: int, high: int) -> int:
    first_day, first_time = divmod(low, DAY_SECONDS)
    last_day, last_time = divmod(high, DAY_SECONDS)
    per_day: dict[tuple[bool, ...], int] = {}
    total = 0
    for day in range(first_day, last_day + 1):
        matching = tuple([readings.matches_day(day) for readings in sets])
        if matching not in per_day:
            per_day[matching] = _times_of(sets, matching).bit_count()
        total += per_day[matching]
        if day == first_day and first_time:
            total -= (_times_of(sets, matching) & (1 << first_time) - 1).bit_count()
        if day == last_day:
            total -= (_times_of(sets, matching) >> last_time).bit_count()
    return total


def _times_of(sets: Sequence[Readings], matching: Sequence[bool]) -> int:
    times = 0
    for readings, matches in zip(sets, matching, strict=True):
        if matches:
            times |= _bits_of_day(readings.hours, readings.minutes, readings.seconds)
    return times


@lru_cache(maxsize=512)
def _bits_of_day(hours: int, minutes: int, seconds: int) -> int:
    hour = sum(seconds << 60 * minute for minute in range(60) if minutes >> minute & 1)
    return sum(hour << 3600 * number for number in range(24) if hours >> number & 1)
