"""Ticks that fall on an excluded day do not exist: by date, weekday or public holiday, in the job's own zone.

A day is what the clock on the wall calls it when the tick comes. Days are looked at one by one and their ticks counted
by arithmetic: a year of a minutely job without its weekends costs fifty counts.

A search passes over a bounded number of excluded stretches, each in one step, and then says that there is no tick: a
tick a week for a hundred years, and two for each excluded date. Ticks that come more often than that, all of them on
excluded days, are none for ever: every weekday meets every date of every month within that many days.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from sexton.public_holidays import is_holiday
from sexton.schedules import EPOCH, Schedule
from sexton.zone_clock import ZoneClock, clock_of

_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = 4  # a Thursday; 0 is Sunday
_EVERY_WEEKDAY = 0b1111111
_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_SEARCH = timedelta(days=36_525)
_MOST_STRETCHES = 5_300


@dataclass(frozen=True, slots=True)
class ExcludedDays:
    """``weekdays`` has bit n for weekday n, 0 = Sunday; ``regions`` are codes of ``sexton.public_holidays``."""

    dates: frozenset[date] = frozenset()
    weekdays: int = 0
    regions: tuple[str, ...] = ()

    def has(self, day: int) -> bool:
        """Whether this day, counted from 1970-01-01, is excluded."""
        if self.weekdays >> ((day + _EPOCH_WEEKDAY) % 7) & 1:
            return True
        if not self.dates and not self.regions:
            return False
        on = date.fromordinal(day + _EPOCH_ORDINAL)
        return on in self.dates or any(is_holiday(region, on) for region in self.regions)


@dataclass(frozen=True, slots=True)
class ExcludedSchedule(Schedule):
    """``inner`` without its ticks on ``days``, as dated by the clock of ``zone``."""

    inner: Schedule
    zone: str
    days: ExcludedDays
    _clock: ZoneClock = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_clock", clock_of(self.zone))

    def next_after(self, instant: datetime) -> datetime | None:
        tick = self.inner.next_after(instant)
        for _ in range(self._most_stretches()):
            if tick is None or tick - instant > _SEARCH:
                return None
            stretch = self._excluded_around(tick)
            if stretch is None:
                return tick
            tick = self.inner.next_after(EPOCH + timedelta(0, stretch[1] - 1, 999_999))
        return None

    def previous_before(self, instant: datetime) -> datetime | None:
        tick = self.inner.previous_before(instant)
        for _ in range(self._most_stretches()):
            if tick is None or instant - tick > _SEARCH:
                return None
            stretch = self._excluded_around(tick)
            if stretch is None:
                return tick
            tick = self.inner.previous_before(EPOCH + timedelta(0, stretch[0]))
        return None

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = self.inner.count_between(after, upto)
        for start, end in self.excluded_between(after + _MICROSECOND, upto + _MICROSECOND):
            count -= self.inner.count_between(start - _MICROSECOND, end - _MICROSECOND)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        return self.inner.contains(instant) and self._excluded_around(instant) is None

    def _most_stretches(self) -> int:
        return 0 if self.days.weekdays == _EVERY_WEEKDAY else _MOST_STRETCHES + 2 * len(self.days.dates)

    def _excluded_around(self, instant: datetime) -> tuple[int, int] | None:
        """The excluded stretch [start, end) that holds this instant, in Unix seconds: at most the day as one offset
        shows it."""
        since = instant - EPOCH
        span = self._clock.span_at(since.days * _DAY_SECONDS + since.seconds)
        day = (since.days * _DAY_SECONDS + since.seconds + span.offset) // _DAY_SECONDS
        if not self.days.has(day):
            return None
        midnight = day * _DAY_SECONDS - span.offset
        return max(span.start, midnight), min(span.end, midnight + _DAY_SECONDS)

    def excluded_between(self, start: datetime, stop: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The excluded stretches in [start, stop), in order, those that touch put together."""
        open_from = open_to = None
        at = start
        while at < stop:
            second = (at - EPOCH) // _SECOND
            span = self._clock.span_at(second)
            day = (second + span.offset) // _DAY_SECONDS
            end = min(_instant(min(span.end, (day + 1) * _DAY_SECONDS - span.offset)), stop)
            if self.days.has(day):
                open_from, open_to = (at if open_from is None else open_from), end
            elif open_from is not None and open_to is not None:
                yield open_from, open_to
                open_from = None
            at = end
        if open_from is not None and open_to is not None:
            yield open_from, open_to


def _instant(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)
