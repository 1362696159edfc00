"""The wall-clock readings of a calendar interval: every n days, weeks, months or years at one time of day.

Readings are counted as in ``sexton.cron_readings``: whole seconds of what the clock on the wall shows, as if the zone
were UTC since 1970. The start date is the first of them; what lies before it is no reading. All is arithmetic: the
k-th date follows from the start alone (never from the one before it, so that the 31st comes back after February).
"""

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from sexton.cron_days import length_of
from sexton.cron_readings import DAY_SECONDS, LAST_YEAR
from sexton.errors import InvalidSchedule

MONTHS_PER_YEAR = 12
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_DAY = date(LAST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL


class CalendarUnit(StrEnum):
    """The step of a calendar interval."""

    DAYS = "days"
    WEEKS = "weeks"
    MONTHS = "months"
    YEARS = "years"


class MonthEnd(StrEnum):
    """What becomes of a day that a month does not have."""

    CLAMP = "clamp"  # its last day stands in
    SKIP = "skip"  # that month has none


@dataclass(frozen=True, slots=True)
class CalendarReadings:
    """Every ``every`` ``unit`` from the date ``start`` on, at ``time`` (seconds of the day). ``month_end`` speaks of
    months and years alone."""

    unit: CalendarUnit
    every: int
    start: date
    time: int
    month_end: MonthEnd = MonthEnd.CLAMP
    _start_day: int = field(init=False, repr=False, compare=False)
    _step: int = field(init=False, repr=False, compare=False)  # days, or months
    _in_months: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.every <= 10_000:
            raise InvalidSchedule(f"calendar: {self.every} {self.unit} is not a step; use 1 to 10,000")
        in_months = self.unit in (CalendarUnit.MONTHS, CalendarUnit.YEARS)
        factor = {CalendarUnit.WEEKS: 7, CalendarUnit.YEARS: MONTHS_PER_YEAR}.get(self.unit, 1)
        object.__setattr__(self, "_start_day", self.start.toordinal() - _EPOCH_ORDINAL)
        object.__setattr__(self, "_step", self.every * factor)
        object.__setattr__(self, "_in_months", in_months)

    def first_from(self, reading: int) -> int | None:
        """The first reading at or after ``reading``; None when the calendar ends before it."""
        if not self._in_months:
            first, stride = self._at(self._start_day), self._step * DAY_SECONDS
            found = first + max(-((first - reading) // stride), 0) * stride
            return found if found < _LAST_DAY * DAY_SECONDS else None
        number = max(self._number_upto(reading), 0)
        while (day := self._day(number)) is None or (day < _LAST_DAY and self._at(day) < reading):
            number += 1
        return self._at(day) if day < _LAST_DAY else None

    def last_upto(self, reading: int) -> int | None:
        """The last reading at or before ``reading``; None when it lies before the start."""
        if not self._in_months:
            first, stride = self._at(self._start_day), self._step * DAY_SECONDS
            return None if reading < first else reading - (reading - first) % stride
        number = self._number_upto(reading)
        while number >= 0:
            day = self._day(number)
            if day is not None and self._at(day) <= reading:
                return self._at(day)
            number -= 1
        return None

    def matches(self, reading: int) -> bool:
        return self.last_upto(reading) == reading

    def count(self, start: int, stop: int) -> int:
        """How many readings lie in [start, stop)."""
        if stop <= start:
            return 0
        return self._count_before(stop) - self._count_before(start)

    def _count_before(self, reading: int) -> int:
        last = self._number_upto(reading)
        if not self._may_skip and last >= 0:
            day = self._day(last)
            return last + (day is not None and self._at(day) < reading)
        days = (self._day(number) for number in range(last + 1))
        return sum(day is not None and self._at(day) < reading for day in days)

    @property
    def _may_skip(self) -> bool:
        return self._in_months and self.month_end is MonthEnd.SKIP and self.start.day > 28

    def _number_upto(self, reading: int) -> int:
        """The last step whose day (or month) is not after the one in which ``reading`` lies; negative before all."""
        day = reading // DAY_SECONDS
        if not self._in_months:
            return (day - self._start_day) // self._step
        on = date.fromordinal(min(max(day + _EPOCH_ORDINAL, 1), date.max.toordinal()))
        months = (on.year - self.start.year) * MONTHS_PER_YEAR + on.month - self.start.month
        return months // self._step

    def _day(self, number: int) -> int | None:
        """The ``number``-th date in days since 1970; None where its month has no such day and skips. Dates that leave
        the calendar are its end."""
        if not self._in_months:
            return min(self._start_day + number * self._step, _LAST_DAY)
        year, month = divmod(self.start.month - 1 + number * self._step, MONTHS_PER_YEAR)
        year, month = self.start.year + year, month + 1
        if year >= LAST_YEAR:
            return _LAST_DAY
        length = length_of(year, month)
        if self.start.day > length and self.month_end is MonthEnd.SKIP:
            return None
        return date(year, month, min(self.start.day, length)).toordinal() - _EPOCH_ORDINAL

    def _at(self, day: int) -> int:
        return day * DAY_SECONDS + self.time
