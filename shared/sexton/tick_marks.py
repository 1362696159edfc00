"""What a changed clock does to single ticks: which stand for a time that was jumped over, which show a time twice.

Nothing here decides a tick. It says of a tick that a schedule has how its local time is to be read, and finds those of
a period about which there is something to say without listing the others. Local readings are naive datetimes: what the
clock on the wall of the zone shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from sexton.excluded_days import ExcludedSchedule
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EPOCH, BoundedSchedule, Schedule
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import ChangeRule, WallClockReadings, live_readings
from sexton.zone_clock import ZoneClock, clock_of

_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_LONGEST_REPETITION = 2 * 86_400  # a date line is a day


class Showing(StrEnum):
    """Which of two showings of one local time an instant is."""

    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A zone's clock at ``at`` (UTC): its offset to UTC before it and from it on."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def skips(self) -> timedelta:
        """How much local time is jumped over; negative where that much is shown twice."""
        return self.after - self.before

    @property
    def day(self) -> date:
        """The local date on which the clock changes; of a jump over midnight or a whole day, the date it enters,
        or leaves out."""
        return (self.at + max(self.before, self.after) - _MICROSECOND).date()


@dataclass(frozen=True, slots=True)
class TickMarks:
    """What there is to say about one tick; ``bool(marks)`` is False for an ordinary one.

    ``shifted_from``: the earliest reading of the schedule that the clock jumped over and that fires here, at the first
    instant after the jump. ``has_own_reading``: the schedule also names the reading that the tick itself shows, so that
    it would fire here on any day. ``showing``: the tick's local time occurs twice, and this is which.
    """

    shifted_from: datetime | None = None
    has_own_reading: bool = True
    showing: Showing | None = None

    def __bool__(self) -> bool:
        return self.shifted_from is not None or self.showing is not None


_PLAIN = TickMarks()


def marks_of(schedule: Schedule, tick: datetime, zone: str) -> TickMarks:
    """What is to be said about a tick of ``schedule``, read on the clock of ``zone`` (the job's).

    ``tick`` is one that the schedule has; that is not asked again. Raises InvalidSchedule for an unknown zone.
    """
    showing = showing_of(tick, zone)
    if tick.microsecond:
        return TickMarks(showing=showing) if showing else _PLAIN
    jumped = []
    has_own_reading = False
    for part in _parts_of(schedule):
        reading, own = _made_up_at(part, (tick - EPOCH) // _SECOND)
        has_own_reading = has_own_reading or own or (reading is None and part.contains(tick))
        if reading is not None:
            jumped.append(reading)
    if not jumped:
        return TickMarks(showing=showing) if showing else _PLAIN
    shifted_from = (EPOCH + timedelta(seconds=min(jumped))).replace(tzinfo=None)
    return TickMarks(shifted_from, has_own_reading, showing)


def showing_of(instant: datetime, zone: str) -> Showing | None:
    """Which showing of its local time an instant is, where the clock of ``zone`` shows that time twice; else None."""
    second = (instant - EPOCH) // _SECOND
    clock = clock_of(zone)
    reading = second + clock.span_at(second).offset
    for start, end, offset in _spans(clock, second - _LONGEST_REPETITION, second + _LONGEST_REPETITION):
        other = reading - offset
        if other != second and start <= other < end:
            return Showing.FIRST if other > second else Showing.SECOND
    return None


def clock_changes(zone: str, after: datetime, upto: datetime) -> list[ClockChange]:
    """Every change of the zone's offset in (after, upto], in order."""
    clock = clock_of(zone)
    first, last = (after - EPOCH) // _SECOND, (upto - EPOCH) // _SECOND
    offset = clock.span_at(first).offset
    changes = []
    for start, _, new in _spans(clock, first, last):
        if new != offset:
            at = EPOCH + timedelta(seconds=start)
            changes.append(ClockChange(at, timedelta(seconds=offset), timedelta(seconds=new)))
            offset = new
    return changes


def changes_by_day(zone: str, first: datetime, last: datetime) -> dict[date, ClockChange]:
    """The changes on the local dates from that of ``first`` to that of ``last``; of several on one date the last."""
    return {change.day: change for change in clock_changes(zone, first - 2 * _DAY, last + 2 * _DAY)}


def marked_between(
    schedule: Schedule, zone: str, after: datetime, upto: datetime
) -> Iterator[tuple[datetime, TickMarks]]:
    """The ticks in (after, upto] that have a mark, ascending. Only what lies near a change of the clock is looked at:
    a year of a daily job costs a handful of ticks, of a job of every second two hours of them."""
    done = after
    for change in clock_changes(zone, after - timedelta(seconds=_LONGEST_REPETITION), upto + 2 * _DAY):
        repeated = max(-change.skips, timedelta(0))
        start = max(change.at - repeated - _MICROSECOND, done)
        end = min(change.at + repeated, upto)
        if start >= end:
            continue
        for tick in schedule.between(start, end):
            if marks := marks_of(schedule, tick, zone):
                yield tick, marks
        done = end


def _spans(clock: ZoneClock, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, offset) of the stretches of constant offset from the one that holds ``first`` to that of ``last``.
    A stretch may come in pieces."""
    at = first
    while at <= last:
        span = clock.span_at(at)
        yield span.start, span.end, span.offset
        at = span.end


def _parts_of(schedule: Schedule) -> Iterator[Schedule]:
    if isinstance(schedule, ExcludedSchedule | BoundedSchedule):
        yield from _parts_of(schedule.inner)
    elif isinstance(schedule, UnionSchedule):
        for part in schedule.parts:
            yield from _parts_of(part)
    else:
        yield schedule


def _made_up_at(part: Schedule, second: int) -> tuple[int | None, bool]:
    """The earliest jumped-over reading of the part that fires at this second, and whether its own reading fires too."""
    readings: WallClockReadings
    if isinstance(part, CronSchedule):
        readings, rule, zone = part.cron.readings, part.rule, part.zone
    elif isinstance(part, CalendarSchedule):
        readings, rule, zone = part.readings, ChangeRule(part.gap, part.overlap), part.zone
    else:
        return None, False
    span = clock_of(zone).span_at(second)
    if span.start != second:
        return None, False
    made_up_from, first, stop = live_readings(span, rule)
    if made_up_from >= first:
        return None, False
    jumped = readings.first_from(made_up_from)
    if jumped is None or jumped >= first:
        return None, False
    return jumped, first < stop and readings.matches(first)
