"""A month of a schedule as a calendar: how many ticks each day has, and what is special about the day.

A day is a date on the clock of a zone. Its ticks are counted by arithmetic, stretch by stretch of constant offset, so
that a day whose midnight is jumped over or comes twice is counted right, and a job of every second costs no more than a
daily one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby

from sexton.excluded_days import ExcludedDays, ExcludedSchedule
from sexton.public_holidays import is_holiday
from sexton.schedules import EPOCH, BoundedSchedule, Schedule
from sexton.tick_marks import ClockChange, clock_changes
from sexton.zone_clock import clock_of

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_WIDEST_OFFSET = 2 * _DAY_SECONDS


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """One date. ``excluded``: why the job has no ticks that day (``a holiday of DE-BE``), empty where it may have
    some. ``changes``: what the clock does that day. ``is_lived``: the zone has this date (Apia has no 2011-12-30)."""

    day: date
    ticks: int
    changes: tuple[ClockChange, ...] = ()
    excluded: str = ""
    is_today: bool = False
    is_lived: bool = True


@dataclass(frozen=True, slots=True)
class CalendarMonth:
    """A month on the clock of ``zone``, day by day."""

    zone: str
    days: tuple[CalendarDay, ...]

    @property
    def first(self) -> date:
        return self.days[0].day

    @property
    def ticks(self) -> int:
        return sum(day.ticks for day in self.days)

    @property
    def weeks(self) -> tuple[tuple[CalendarDay | None, ...], ...]:
        """Seven places each, from Monday; None for the days of other months."""
        placed = [*[None] * self.first.weekday(), *self.days]
        placed += [None] * (-len(placed) % 7)
        return tuple(tuple(placed[start : start + 7]) for start in range(0, len(placed), 7))

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Instants [start, end) between which the whole month lies."""
        return _around(self.first)[0], _around(self.days[-1].day)[1]


def calendar_month(schedule: Schedule, zone: str, month: date, today: date | None = None) -> CalendarMonth:
    """The month in which ``month`` lies. Raises InvalidSchedule for an unknown zone."""
    days = []
    excluded = _excluded_days(schedule)
    day = month.replace(day=1)
    while day.month == month.month:
        stretches = list(_stretches(zone, day))
        ticks = sum(schedule.count_between(start - _MICROSECOND, end - _MICROSECOND) for start, end in stretches)
        reason = "" if excluded is None else why_excluded(excluded, day)
        days.append(CalendarDay(day, ticks, _changes_on(zone, day), reason, day == today, bool(stretches)))
        if day == date.max:
            break
        day += _DAY
    return CalendarMonth(zone, tuple(days))


def _around(day: date) -> tuple[datetime, datetime]:
    midnight = (day.toordinal() - _EPOCH_ORDINAL) * _DAY_SECONDS
    return (
        EPOCH + timedelta(seconds=midnight - _WIDEST_OFFSET),
        EPOCH + timedelta(seconds=midnight + _DAY_SECONDS + _WIDEST_OFFSET),
    )


def _stretches(zone: str, day: date) -> Iterator[tuple[datetime, datetime]]:
    """The stretches [start, end) of instants in which the zone has this date."""
    midnight = (day.toordinal() - _EPOCH_ORDINAL) * _DAY_SECONDS
    clock = clock_of(zone)
    at = midnight - _WIDEST_OFFSET
    while at < midnight + _DAY_SECONDS + _WIDEST_OFFSET:
        span = clock.span_at(at)
        start = max(at, midnight - span.offset)
        end = min(span.end, midnight + _DAY_SECONDS - span.offset)
        if start < end:
            yield EPOCH + timedelta(seconds=start), EPOCH + timedelta(seconds=end)
        at = span.end


def _changes_on(zone: str, day: date) -> tuple[ClockChange, ...]:
    return tuple(change for change in clock_changes(zone, *_around(day)) if change.day == day)


def _excluded_days(schedule: Schedule) -> ExcludedDays | None:
    while isinstance(schedule, BoundedSchedule | ExcludedSchedule):
        if isinstance(schedule, ExcludedSchedule):
            return schedule.days
        schedule = schedule.inner
    return None


def why_excluded(days: ExcludedDays, day: date) -> str:
    """``a holiday of DE-BE``, ``a date to exclude``, ``a Sunday``; empty where the day is not excluded."""
    if not days.has(day.toordinal() - _EPOCH_ORDINAL):
        return ""
    regions = [region for region in days.regions if is_holiday(region, day)]
    if regions:
        return f"a holiday of {' and '.join(regions)}"
    return "a date to exclude" if day in days.dates else f"a {day:%A}"


def runs_of(month: CalendarMonth) -> list[tuple[str, tuple[date, ...]]]:
    """The excluded days of a month by their reason, in the order of their first days."""
    excluded = [day for day in month.days if day.excluded]
    order = {reason: place for place, reason in reversed(list(enumerate(day.excluded for day in excluded)))}
    excluded.sort(key=lambda day: (order[day.excluded], day.day))
    return [(why, tuple(one.day for one in days)) for why, days in groupby(excluded, key=lambda day: day.excluded)]
