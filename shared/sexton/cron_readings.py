"""The wall-clock readings that a cron expression names, before any zone is asked.

A reading is a whole number of seconds: what the clock on the wall shows, counted as if the zone were UTC since 1970.
Everything here is arithmetic on such numbers and on bit sets; a year is never walked. Searches end after 100 years
(the longest wait of an expression that can match is 40: a weekday's fifth time in February across 2100).
"""

from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from sexton.cron_days import MONTH_LENGTHS, DayRule, length_of

DAY_SECONDS = 86_400
SEARCH_YEARS = 100
FIRST_YEAR, LAST_YEAR = 2, 9_990  # one step inside what datetime can say, in every zone
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = 4  # a Thursday; 0 is Sunday
_EVERY_WEEKDAY, _TWO_WEEKS = 0b1111111, 0b10000001  # times a set of weekdays: that week and the one after it
_date_of = date.fromordinal


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


@lru_cache(maxsize=1024)
def _spacing(bits: int, size: int) -> int:
    """How far apart the bits are, from the last round to the first as well; 0 where that differs."""
    step, rest = divmod(size, bits.bit_count())
    return 0 if rest or bits != sum(1 << value for value in range(_lowest(bits), size, step)) else step


@dataclass(frozen=True, slots=True)
class Readings:
    """The set {readings whose second, minute, hour and day match}. The masks have bit n for value n; none is 0."""

    seconds: int
    minutes: int
    hours: int
    days: DayRule
    per_day: int = field(init=False, repr=False, compare=False)
    _first_time: int = field(init=False, repr=False, compare=False)
    _last_time: int = field(init=False, repr=False, compare=False)
    _first_in_hour: int = field(init=False, repr=False, compare=False)
    _first_second: int = field(init=False, repr=False, compare=False)
    _period: int = field(init=False, repr=False, compare=False)
    """How far apart, where the readings are evenly spaced for ever (daily, every five minutes); 0 elsewhere."""

    def __post_init__(self) -> None:
        per_day = self.seconds.bit_count() * self.minutes.bit_count() * self.hours.bit_count()
        first = _lowest(self.hours) * 3600 + _lowest(self.minutes) * 60 + _lowest(self.seconds)
        last = self.hours.bit_length() * 3600 + self.minutes.bit_length() * 60 + self.seconds.bit_length() - 3661
        object.__setattr__(self, "per_day", per_day)
        object.__setattr__(self, "_first_time", first)
        object.__setattr__(self, "_last_time", last)
        object.__setattr__(self, "_first_in_hour", first % 3600)
        object.__setattr__(self, "_first_second", first % 60)
        object.__setattr__(self, "_period", self._find_period() if self.days.only_weekdays == _EVERY_WEEKDAY else 0)

    def _find_period(self) -> int:
        seconds, minutes = self.seconds.bit_count(), self.minutes.bit_count()
        if seconds == minutes == 1:
            return _spacing(self.hours, 24) * 3600
        if self.hours.bit_count() == 24 and seconds == 1:
            return _spacing(self.minutes, 60) * 60
        return _spacing(self.seconds, 60) if self.hours.bit_count() == 24 and minutes == 60 else 0

    def first_from(self, reading: int) -> int | None:
        """The first matching reading at or after `reading`; None when there is none within 100 years."""
        if self._period:
            return reading + (self._first_time - reading) % self._period
        day = reading // DAY_SECONDS
        time = reading - day * DAY_SECONDS
        rule = self.days
        if rule.only_weekdays:
            week = _TWO_WEEKS * rule.only_weekdays >> (day + _EPOCH_WEEKDAY) % 7
            if week & 1:
                match = self._time_from(time) if time > self._first_time else self._first_time
                if match >= 0:
                    return day * DAY_SECONDS + match
                week -= 1
            return (day - 1 + (week & -week).bit_length()) * DAY_SECONDS + self._first_time
        on = _date_of(day + _EPOCH_ORDINAL)
        year, month, month_day = on.year, on.month, on.day
        first = day - month_day + 1
        months, plain = rule.months, rule.plain_days
        last_year = min(year + SEARCH_YEARS, LAST_YEAR)
        while year <= last_year:
            if months >> month & 1:
                length = MONTH_LENGTHS[month] if month != 2 else length_of(year, 2)
                weekday = (first + _EPOCH_WEEKDAY) % 7
                left = plain[weekday] & (2 << length) - 1 if plain else rule.days_of(weekday, length)
                left >>= month_day
                if left & 1:
                    match = self._time_from(time) if time > self._first_time else self._first_time
                    if match >= 0:
                        return (first + month_day - 1) * DAY_SECONDS + match
                    left -= 1
                if left:
                    return (first + month_day - 2 + (left & -left).bit_length()) * DAY_SECONDS + self._first_time
            month_day, time = 1, 0
            later = months >> month + 1
            if not later:
                year, month, later = year + 1, -1, months
            month += (later & -later).bit_length()
            first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
        return None

    def last_upto(self, reading: int) -> int | None:
        """The last matching reading at or before `reading`; None when there is none within 100 years."""
        if self._period:
            return reading - (reading - self._first_time) % self._period
        day = reading // DAY_SECONDS
        time = reading - day * DAY_SECONDS
        rule, months = self.days, self.days.months
        if rule.only_weekdays:
            weekday = (day + _EPOCH_WEEKDAY) % 7 + 7
            week = _TWO_WEEKS * rule.only_weekdays & (2 << weekday) - 1
            if week >> weekday and (match := self._time_upto(time)) >= 0:
                return day * DAY_SECONDS + match
            week &= (1 << weekday) - 1
            return (day - weekday + week.bit_length() - 1) * DAY_SECONDS + self._last_time
        on = _date_of(day + _EPOCH_ORDINAL)
        year, month, month_day = on.year, on.month, on.day
        first = day - month_day + 1
        first_year = max(year - SEARCH_YEARS, FIRST_YEAR)
        while year >= first_year:
            if months >> month & 1:
                days = rule.days_of((first + _EPOCH_WEEKDAY) % 7, length_of(year, month))
                if days >> month_day & 1 and (match := self._time_upto(time)) >= 0:
                    return (first + month_day - 1) * DAY_SECONDS + match
                days &= (1 << month_day) - 1
                if days:
                    return (first + days.bit_length() - 2) * DAY_SECONDS + self._last_time
            earlier = months & (1 << month) - 1
            if not earlier:
                year, earlier = year - 1, months
            month = earlier.bit_length() - 1
            month_day, time = length_of(year, month), DAY_SECONDS - 1
            first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
        return None

    def matches(self, reading: int) -> bool:
        day, time = divmod(reading, DAY_SECONDS)
        hour, rest = divmod(time, 3600)
        minute, second = divmod(rest, 60)
        time_matches = self.hours >> hour & self.minutes >> minute & self.seconds >> second & 1
        return bool(time_matches) and self.matches_day(day)

    def times(self) -> int:
        """The matching seconds of a matching day, as a bit set."""
        return _times_of_day(self.hours, self.minutes, self.seconds)

    def count(self, start: int, stop: int) -> int:
        """How many readings in [start, stop) match, without listing them: months times days times times of day."""
        if stop <= start:
            return 0
        start_day, start_time = divmod(start, DAY_SECONDS)
        stop_day, stop_time = divmod(stop, DAY_SECONDS)
        total = self._count_days(start_day, stop_day) * self.per_day
        if start_time and self.matches_day(start_day):
            total -= self._count_times_before(start_time)
        if stop_time and self.matches_day(stop_day):
            total += self._count_times_before(stop_time)
        return total

    def matches_day(self, day: int) -> bool:
        on = _date_of(day + _EPOCH_ORDINAL)
        if not self.days.months >> on.month & 1:
            return False
        first_weekday = (day - on.day + 1 + _EPOCH_WEEKDAY) % 7
        return bool(self.days.days_of(first_weekday, length_of(on.year, on.month)) >> on.day & 1)

    def _count_days(self, start: int, stop: int) -> int:
        """Matching days in [start, stop), both in days since 1970."""
        on = _date_of(start + _EPOCH_ORDINAL)
        year, month = on.year, on.month
        first = start - on.day + 1
        total = 0
        while first < stop:
            length = length_of(year, month)
            if self.days.months >> month & 1:
                days = self.days.days_of((first + _EPOCH_WEEKDAY) % 7, length)
                if first < start:
                    days &= -1 << (start - first + 1)
                if first + length > stop:
                    days &= (2 << (stop - first)) - 1
                total += days.bit_count()
            first += length
            month += 1
            if month > 12:
                year, month = year + 1, 1
        return total

    def _count_times_before(self, time: int) -> int:
        hour, rest = divmod(time, 3600)
        minute, second = divmod(rest, 60)
        per_minute = self.seconds.bit_count()
        count = (self.hours & (1 << hour) - 1).bit_count() * self.minutes.bit_count() * per_minute
        if self.hours >> hour & 1:
            count += (self.minutes & (1 << minute) - 1).bit_count() * per_minute
            if self.minutes >> minute & 1:
                count += (self.seconds & (1 << second) - 1).bit_count()
        return count

    def _time_from(self, time: int) -> int:
        """The first matching second of the day at or after `time`; -1 when there is none."""
        if time > self._last_time:
            return -1
        hour = time // 3600
        hours = self.hours >> hour
        if hours & 1:
            minute = time // 60 - hour * 60
            minutes = self.minutes >> minute
            if minutes & 1 and (seconds := self.seconds >> time % 60):
                return time - 1 + (seconds & -seconds).bit_length()
            minutes >>= 1
            if minutes:
                return (hour * 60 + minute + (minutes & -minutes).bit_length()) * 60 + self._first_second
        hours >>= 1
        return (hour + (hours & -hours).bit_length()) * 3600 + self._first_in_hour

    def _time_upto(self, time: int) -> int:
        """The last matching second of the day at or before `time`; -1 when there is none."""
        hour, rest = divmod(time, 3600)
        minute, second = divmod(rest, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (seconds := self.seconds & (2 << second) - 1):
                return time - second + seconds.bit_length() - 1
            minutes = self.minutes & (1 << minute) - 1
            if minutes:
                return hour * 3600 + (minutes.bit_length() - 1) * 60 + self.seconds.bit_length() - 1
        hours = self.hours & (1 << hour) - 1
        if hours:
            return (hours.bit_length() - 1) * 3600 + self._last_time % 3600
        return -1


@lru_cache(maxsize=512)
def _times_of_day(hours: int, minutes: int, seconds: int) -> int:
    hour = sum(seconds << 60 * minute for minute in range(60) if minutes >> minute & 1)
    return sum(hour << 3600 * number for number in range(24) if hours >> number & 1)
