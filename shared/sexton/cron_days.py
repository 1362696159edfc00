"""Which days of a month a cron expression names.

A day rule answers for a whole month at once, as a bit set (bit d = day d), from the month's length and the weekday of
its first day. Those two are all that the day fields can depend on, so that whether a rule can ever match is settled by
looking at the 7 weekdays and the lengths its months can have: no search, and sparse is never mistaken for never.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_DAY, _EVERY_MONTH = (1 << 32) - 2, (1 << 13) - 2
_SUNDAY, _SATURDAY = 0, 6


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def length_of(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else MONTH_LENGTHS[month]


@cache
def _days_on(weekdays: int) -> tuple[int, ...]:
    """Per weekday of the first of the month (0 = Sunday): the days (1 to 31) that fall on one of `weekdays`."""
    return tuple(sum(1 << day for day in range(1, 32) if weekdays >> ((first + day - 1) % 7) & 1) for first in range(7))


@lru_cache(maxsize=65_536)
def _plain_days(days: int, weekdays: int, both_must_match: bool) -> tuple[int, ...]:
    """Per weekday of the first of the month: what dates and weekdays without L, W and # name together."""
    return tuple(days & on if both_must_match else days | on for on in _days_on(weekdays))


@dataclass(frozen=True, slots=True)
class DayRule:
    """Month, day-of-month and weekday fields taken together.

    `both_must_match` is the Vixie rule: true where one of the two day fields starts with `*` or is `?`; otherwise
    either of them suffices. Weekdays count from 0 = Sunday.
    """

    months: int
    days: int = _EVERY_DAY
    weekdays: int = 0b1111111
    both_must_match: bool = True
    last_day_offsets: tuple[int, ...] = ()  # L is 0, L-3 is 3
    last_workday: bool = False  # LW
    nearest_workdays: tuple[int, ...] = ()  # 15W
    nth_weekdays: tuple[tuple[int, int], ...] = ()  # MON#2 is (1, 2)
    last_weekdays: int = 0  # 5L
    only_weekdays: int = field(init=False, repr=False, compare=False)
    """The weekdays, where nothing else is asked of a day; 0 elsewhere."""
    plain_days: tuple[int, ...] | None = field(init=False, repr=False, compare=False)
    """Without L, W and #: `days_of` by the first weekday, before the month's length is asked."""

    def __post_init__(self) -> None:
        specials = (self.last_day_offsets, self.last_workday, self.nearest_workdays)
        has_specials = any((*specials, self.nth_weekdays, self.last_weekdays))
        plain = _plain_days(self.days, self.weekdays, self.both_must_match)
        names_days = self.days != _EVERY_DAY or not self.both_must_match
        depends_on_month = has_specials or names_days or self.months != _EVERY_MONTH
        object.__setattr__(self, "plain_days", None if has_specials else plain)
        object.__setattr__(self, "only_weekdays", 0 if depends_on_month else self.weekdays)

    def days_of(self, first_weekday: int, length: int) -> int:
        """The matching days (bits 1 to `length`) of a month that the month field names."""
        if self.plain_days is not None:
            return self.plain_days[first_weekday] & ((2 << length) - 2)
        by_date = self.days | self._special_dates(first_weekday, length)
        by_weekday = _days_on(self.weekdays)[first_weekday] | self._special_weekdays(first_weekday, length)
        matching = by_date & by_weekday if self.both_must_match else by_date | by_weekday
        return matching & ((2 << length) - 2)

    def can_match(self) -> bool:
        """Whether any month of any year has a matching day. Exact: every weekday begins every kind of month."""
        return any(
            self.days_of(first_weekday, length)
            for month in range(1, 13)
            if self.months >> month & 1
            for length in ({28, 29} if month == 2 else {MONTH_LENGTHS[month]})
            for first_weekday in range(7)
        )

    def _special_dates(self, first_weekday: int, length: int) -> int:
        dates = 0
        for offset in self.last_day_offsets:
            if offset < length:
                dates |= 1 << (length - offset)
        if self.last_workday:
            dates |= 1 << _nearest_workday(length, first_weekday, length)
        for day in self.nearest_workdays:
            if day <= length:  # 31W says nothing about a month of 30 days
                dates |= 1 << _nearest_workday(day, first_weekday, length)
        return dates

    def _special_weekdays(self, first_weekday: int, length: int) -> int:
        days = 0
        for weekday, nth in self.nth_weekdays:
            days |= 1 << (1 + (weekday - first_weekday) % 7 + 7 * (nth - 1))
        for weekday in _members(self.last_weekdays):
            last_of_month = (first_weekday + length - 1) % 7
            days |= 1 << (length - (last_of_month - weekday) % 7)
        return days


def _nearest_workday(day: int, first_weekday: int, length: int) -> int:
    """The Monday to Friday nearest to `day` without leaving the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
