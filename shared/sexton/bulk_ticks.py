"""The ticks of a stretch all at once, as whole microseconds since 1970: what the audit compares a ledger with.

The same ticks as ``Schedule.between`` gives one by one (a test says so for every kind of schedule and around changed
clocks), found a day or an interval at a time: a million cost a tenth of a second. Nothing that decides uses this.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from sexton.cron_readings import DAY_SECONDS, Readings
from sexton.excluded_days import ExcludedSchedule
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EPOCH, BoundedSchedule, EverySchedule, InstantsSchedule, Schedule
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import ChangeRule, WallClockReadings, live_readings
from sexton.zone_clock import ZoneClock, clock_of

_MICROSECOND = timedelta(microseconds=1)
_SECOND_MICROS = 1_000_000
Micros = Sequence[int]


def micros_of(instant: datetime) -> int:
    """Whole microseconds since 1970."""
    return (instant - EPOCH) // _MICROSECOND


def instant_of(micros: int) -> datetime:
    """The instant that ``micros_of`` wrote."""
    return EPOCH + timedelta(microseconds=micros)


def ticks_between(schedule: Schedule, after: int, upto: int) -> Micros:
    """The ticks in ``(after, upto]``, ascending, all of them in memory: who asks bounds the stretch.

    ``after`` and ``upto`` are microseconds since 1970, within the years that schedules are computed for.
    """
    match schedule:
        case EverySchedule():
            every = schedule.milliseconds
            step, phase = every.interval * 1000, every.phase * 1000
            return range(after + 1 + (phase - after - 1) % step, upto + 1, step)
        case CronSchedule():
            return _wall_clock(schedule.cron.readings, schedule.rule, clock_of(schedule.zone), after, upto)
        case CalendarSchedule():
            rule = ChangeRule(schedule.gap, schedule.overlap)
            return _wall_clock(schedule.readings, rule, clock_of(schedule.zone), after, upto)
        case InstantsSchedule():
            listed = [micros_of(instant) for instant in schedule.instants]
            return listed[bisect_right(listed, after) : bisect_right(listed, upto)]
        case UnionSchedule():
            return sorted({tick for part in schedule.parts for tick in ticks_between(part, after, upto)})
        case BoundedSchedule():
            first = after if schedule.start is None else max(after, micros_of(schedule.start) - 1)
            last = upto if schedule.end is None else min(upto, micros_of(schedule.end) - 1)
            return ticks_between(schedule.inner, first, last) if first < last else ()
        case ExcludedSchedule():
            return _without_excluded(schedule, after, upto)
    return [micros_of(tick) for tick in schedule.between(instant_of(after), instant_of(upto))]


def _without_excluded(schedule: ExcludedSchedule, after: int, upto: int) -> Micros:
    ticks = ticks_between(schedule.inner, after, upto)
    kept: list[int] = []
    position = 0
    for start, end in schedule.excluded_between(instant_of(after + 1), instant_of(upto + 1)):
        first = bisect_left(ticks, micros_of(start), position)
        kept.extend(ticks[position:first])
        position = bisect_left(ticks, micros_of(end), first)
    kept.extend(ticks[position:])
    return kept


def _wall_clock(readings: WallClockReadings, rule: ChangeRule, clock: ZoneClock, after: int, upto: int) -> Micros:
    """Span by span of constant offset, as ``live_readings`` says of each."""
    at, stop = after // _SECOND_MICROS + 1, upto // _SECOND_MICROS + 1
    ticks: list[int] = []
    while at < stop:
        span = clock.span_at(at)
        made_up_from, first, end = live_readings(span, rule)
        own = first < end and readings.matches(first)
        if span.start == at and made_up_from < first and not own and readings.count(made_up_from, first):
            ticks.append(at * _SECOND_MICROS)
        low, high = max(first, at + span.offset), min(end, stop + span.offset)
        if low < high:
            shift = -span.offset
            ticks += [(reading + shift) * _SECOND_MICROS for reading in _readings_between(readings, low, high)]
        at = span.end
    return ticks


def _readings_between(readings: WallClockReadings, low: int, high: int) -> Sequence[int]:
    """The matching readings in [low, high)."""
    found: list[int] = []
    if not isinstance(readings, Readings):
        reading = readings.first_from(low)
        while reading is not None and reading < high:
            found.append(reading)
            reading = readings.first_from(reading + 1)
        return found
    times = _times_of_day(readings.hours, readings.minutes, readings.seconds)
    for day in range(low // DAY_SECONDS, (high - 1) // DAY_SECONDS + 1):
        if readings.matches_day(day):
            midnight = day * DAY_SECONDS
            if midnight >= low and midnight + DAY_SECONDS <= high:
                found += [midnight + time for time in times]
            else:
                first, last = bisect_left(times, low - midnight), bisect_left(times, high - midnight)
                found += [midnight + time for time in times[first:last]]
    return found


@lru_cache(maxsize=64)
def _times_of_day(hours: int, minutes: int, seconds: int) -> array[int]:
    return array(
        "l",
        (
            hour * 3600 + minute * 60 + second
            for hour in range(24)
            if hours >> hour & 1
            for minute in range(60)
            if minutes >> minute & 1
            for second in range(60)
            if seconds >> second & 1
        ),
    )
