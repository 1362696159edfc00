"""What a cron expression should do, found by brute force and sharing no code with Sexton.

Two ways of thinking that must agree:

- `walk` is a clock on a wall. It goes through every real minute (or second), reads the clock, remembers every reading
  that it has ever shown, and fires as a cron daemon would that never sleeps and never restarts.
- `map_readings` lists the wall-clock readings of every day that matches, asks the zone for the instants at which each
  is shown, and applies the rule to none, one or two of them.

Fields are judged value by value from their text, days as dates. Only well-formed expressions are given to it.
"""

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MONTHS = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
LONGEST_REPETITION = timedelta(hours=26)


def _number(text: str) -> int:
    for names in (MONTHS, WEEKDAYS):
        if text in names:
            return names.index(text)
    return int(text)


def _term_has(term: str, value: int, low: int, high: int) -> bool:
    body, _, step = term.partition("/")
    if body == "*":
        first, last = low, high
    elif "-" in body:
        first, last = (_number(end) for end in body.split("-"))
    else:
        first = _number(body)
        last = high if step else first
    return first <= value <= last and (value - first) % int(step or 1) == 0


def _field_has(field: str, value: int, low: int, high: int) -> bool:
    return any(_term_has(term, value, low, high) for term in field.split(","))


def _workdays_of(day: date) -> list[date]:
    length = monthrange(day.year, day.month)[1]
    return [on for n in range(1, length + 1) if (on := day.replace(day=n)).weekday() < 5]


def _date_has(term: str, day: date) -> bool:
    length = monthrange(day.year, day.month)[1]
    if term == "LW":
        return day == _workdays_of(day)[-1]
    if term.startswith("L"):
        return day.day == length - int(term[2:] or 0)
    if term.endswith("W"):
        wanted = int(term[:-1])
        return wanted <= length and day == min(_workdays_of(day), key=lambda on: abs(on.day - wanted))
    return _term_has(term, day.day, 1, 31)


def _weekday_has(term: str, day: date) -> bool:
    weekday = day.isoweekday() % 7
    if "#" in term:
        name, _, nth = term.partition("#")
        same = [n for n in range(1, day.day + 1) if day.replace(day=n).isoweekday() % 7 == _number(name) % 7]
        return len(same) == int(nth) and same[-1] == day.day
    if term.endswith("L"):
        return weekday == _number(term[:-1]) % 7 and (day + 7 * DAY).month != day.month
    return _term_has(term, weekday, 0, 7) or (weekday == 0 and _term_has(term, 7, 0, 7))


class Oracle:
    """One expression of five or six fields, judged by its text."""

    def __init__(self, text: str) -> None:
        fields = text.upper().split()
        self.has_seconds = len(fields) == 6
        self.second, self.minute, self.hour, self.date, self.month, self.weekday = (
            fields if self.has_seconds else ["0", *fields]
        )
        self.both = self.date[0] in "*?" or self.weekday[0] in "*?"
        self.is_wild = self.minute[0] == "*" or self.hour[0] == "*"
        self.day_matches: Callable[[date], bool] = lru_cache(maxsize=None)(self._day_matches)
        self.seconds = [s for s in range(60) if _field_has(self.second, s, 0, 59)]
        self.minutes = {(h, m) for h in range(24) for m in range(60) if self._minute_matches(h, m)}

    def _minute_matches(self, hour: int, minute: int) -> bool:
        return _field_has(self.hour, hour, 0, 23) and _field_has(self.minute, minute, 0, 59)

    def _day_matches(self, day: date) -> bool:
        if not _field_has(self.month, day.month, 1, 12):
            return False
        by_date = self.date == "?" or any(_date_has(term, day) for term in self.date.split(","))
        by_weekday = self.weekday == "?" or any(_weekday_has(term, day) for term in self.weekday.split(","))
        return (by_date and by_weekday) if self.both else (by_date or by_weekday)

    def matches(self, reading: datetime) -> bool:
        return (
            (reading.hour, reading.minute) in self.minutes
            and reading.second in self.seconds
            and self.day_matches(reading.date())
        )

    def ever_matches(self) -> bool:
        """28 years without an exception to the leap rule hold every kind of year."""
        day = date(1904, 1, 1)
        while day.year < 1932:
            if self.day_matches(day):
                return True
            day += DAY
        return False

    def walk(
        self,
        zone: ZoneInfo,
        after: datetime,
        upto: datetime,
        step: timedelta = MINUTE,
        gap: str = "shift",
        overlap: str = "first",
    ) -> list[datetime]:
        """The ticks in (after, upto]. `step` divides every offset of the zone in that time."""
        instant = after.replace(second=0, microsecond=0) - LONGEST_REPETITION
        shown: set[datetime] = set()
        last_shown = _last_showings(zone, instant, upto, step) if overlap == "second" else {}
        before = (instant - step).astimezone(zone).replace(tzinfo=None)
        ticks = []
        while instant <= upto:
            reading = instant.astimezone(zone).replace(tzinfo=None, fold=0)
            is_due = self.matches(reading) and (
                self.is_wild
                or overlap == "both"
                or (last_shown[reading] == instant if overlap == "second" else reading not in shown)
            )
            jumped_over = before + step
            while jumped_over < reading and not self.is_wild and not is_due and gap == "shift":
                is_due = self.matches(jumped_over) and jumped_over not in shown
                jumped_over += step
            if is_due and instant > after:
                ticks.append(instant)
            shown.add(reading)
            before = reading
            instant += step
        return ticks

    def map_readings(self, zone: ZoneInfo, after: datetime, upto: datetime) -> list[datetime]:
        """The ticks in (after, upto], for zones whose clocks change on whole minutes."""
        ticks = set()
        day = after.date() - 2 * DAY
        while day <= upto.date() + 2 * DAY:
            for hour, minute in self.minutes if self.day_matches(day) else ():
                for second in self.seconds:
                    ticks |= self._instants_of(datetime(day.year, day.month, day.day, hour, minute, second), zone)  # noqa: DTZ001  a wall-clock reading has no zone
            day += DAY
        return sorted(tick for tick in ticks if after < tick <= upto)

    def _instants_of(self, reading: datetime, zone: ZoneInfo) -> set[datetime]:
        shown_at = sorted(_shown_at(reading, zone))
        if shown_at:
            return set(shown_at if self.is_wild else shown_at[:1])
        if self.is_wild:
            return set()
        later = reading.replace(second=0)
        while not (first := _shown_at(later, zone)):
            later += MINUTE
        return {min(first)}


def _last_showings(zone: ZoneInfo, first: datetime, upto: datetime, step: timedelta) -> dict[datetime, datetime]:
    """When each reading is shown for the last time, for all that are shown in [first, upto]."""
    showings: dict[datetime, datetime] = {}
    instant = first
    while instant <= upto + LONGEST_REPETITION:
        showings[instant.astimezone(zone).replace(tzinfo=None, fold=0)] = instant
        instant += step
    return showings


def _shown_at(reading: datetime, zone: ZoneInfo) -> set[datetime]:
    instants = {reading.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return {instant for instant in instants if instant.astimezone(zone).replace(tzinfo=None, fold=0) == reading}
