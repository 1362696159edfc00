"""Ticks that fall on an excluded day do not exist: by date, weekday or public holiday, in the job's own zone.

A day is what the clock on the wall calls it when the tick comes. Days are looked at one by one and their ticks counted
by arithmetic: a year of a minutely job without its weekends costs fifty counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sexton.public_holidays import is_holiday
from sexton.schedules import EPOCH, Schedule
from sexton.zone_clock import clock_of

_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = 4  # a Thursday; 0 is Sunday
_MICROSECOND = timedelta(microseconds=1)
_SEARCH = timedelta(days=36_525)


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
        on = date.fromordinal(day + _EPOCH_ORDINAL)
        return on in self.dates or any(is_holiday(region, on) for region in self.regions)


@dataclass(frozen=True, slots=True)
class ExcludedSchedule(Schedule):
    """``inner`` without its ticks on ``days``, as dated by the clock of ``zone``."""

    inner: Schedule
    zone: str
    days: ExcludedDays

    def next_after(self, instant: datetime) -> datetime | None:
        tick = self.inner.next_after(instant)
        while tick is not None and tick - instant <= _SEARCH:
            stretch = self._excluded_around(tick)
            if stretch is None:
                return tick
            tick = self.inner.next_after(stretch[1] - _MICROSECOND)
        return None

    def previous_before(self, instant: datetime) -> datetime | None:
        tick = self.inner.previous_before(instant)
        while tick is not None and instant - tick <= _SEARCH:
            stretch = self._excluded_around(tick)
            if stretch is None:
                return tick
            tick = self.inner.previous_before(stretch[0])
        return None

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = self.inner.count_between(after, upto)
        for start, end in self._excluded_between(after + _MICROSECOND, upto + _MICROSECOND):
            count -= self.inner.count_between(start - _MICROSECOND, end - _MICROSECOND)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        return self.inner.contains(instant) and self._excluded_around(instant) is None

    def _excluded_around(self, instant: datetime) -> tuple[datetime, datetime] | None:
        """The excluded stretch [start, end) that holds this instant: at most the day as one offset shows it."""
        second = (instant - EPOCH) // timedelta(seconds=1)
        span = clock_of(self.zone).span_at(second)
        day = (second + span.offset) // _DAY_SECONDS
        if not self.days.has(day):
            return None
        midnight = day * _DAY_SECONDS - span.offset
        return _instant(max(span.start, midnight)), _instant(min(span.end, midnight + _DAY_SECONDS))

    def _excluded_between(self, start: datetime, stop: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The excluded stretches in [start, stop), in order, those that touch put together."""
        open_from = open_to = None
        at = start
        while at < stop:
            second = (at - EPOCH) // timedelta(seconds=1)
            span = clock_of(self.zone).span_at(second)
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
