"""``OnCalendar=`` of systemd timers (systemd.time(7)) as cron expressions of Sexton's.

    expression = word [zone] | [weekdays] [date] [time] [zone] | "@" seconds
    weekdays   = day [".." day] { "," ... }            Monday first; a range does not wrap
    date       = [years "-"] months ("-" | "~") days   ~ counts from the month's end: ~01 is its last day
    time       = hours ":" minutes [":" seconds]
    each of them: "*", or value [".." value] ["/" step] { "," ... }

Weekday and date must both match; in cron either does. So a restricted weekday beside restricted days becomes `MON#1`
where the days are a whole week of the month, and an exclusion of the other weekdays where they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.jobfiles.importers.findings import shown
from sexton.zones import zone_names

_WORDS = {
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * MON",
    "monthly": "0 0 1 * *",
    "quarterly": "0 0 1 1,4,7,10 *",
    "semiannually": "0 0 1 1,7 *",
    "semi-annually": "0 0 1 1,7 *",
    "biannually": "0 0 1 1,7 *",
    "bi-annually": "0 0 1 1,7 *",
    "yearly": "0 0 1 1 *",
    "annually": "0 0 1 1 *",
}
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_LONG_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATE = re.compile(r"(?:(?P<year>[0-9*./,]+)-)?(?P<month>[0-9*./,]+)(?P<mark>[-~])(?P<day>[0-9*./,]+)")
_TIME = re.compile(r"(?P<hour>[0-9*./,]+):(?P<minute>[0-9*./,]+)(?::(?P<second>[0-9*./,]+))?")
_TERM = re.compile(r"(?P<low>[0-9]{1,6})(?:\.\.(?P<high>[0-9]{1,6}))?(?:/(?P<step>[0-9]{1,6}))?")
_FIRST_YEAR, _LAST_YEAR = 1970, 2199


class NotCalendar(ValueError):
    """Why an expression cannot be carried over, and what to write instead."""


@dataclass(frozen=True, slots=True)
class CalendarPart:
    """One expression: a part of a job's schedule, and what has to be said beside it."""

    schedule: object
    zone: str | None = None
    years: tuple[int, int] | None = None
    excluded_weekdays: tuple[str, ...] = ()

    @property
    def beside(self) -> tuple[object, ...]:
        """Parts that agree in this can stand in one job."""
        return self.zone, self.years, self.excluded_weekdays


def read_on_calendar(text: str) -> CalendarPart:
    """What the expression means. Raises NotCalendar."""
    words = re.sub(r"(?<=[0-9*])T(?=[0-9*])", " ", text).split()
    if not words:
        raise NotCalendar("is empty")
    zone = words.pop() if words[-1] in zone_names() else None
    if not words:
        raise NotCalendar(f"{shown(text)} has a zone and no time")
    if len(words) == 1 and words[0].lower() in _WORDS:
        return CalendarPart(_WORDS[words[0].lower()], zone)
    if len(words) == 1 and (epoch := re.fullmatch(r"@([0-9]{1,10})", words[0])):
        return _instant(int(epoch[1]))
    weekdays = _weekdays(words.pop(0), text) if words[0][0].isalpha() else frozenset(range(7))
    date = _DATE.fullmatch(words[0]) if words else None
    if date is not None:
        words.pop(0)
    time = _TIME.fullmatch(words[0]) if words else None
    if time is not None:
        words.pop(0)
    if words:
        raise NotCalendar(_not_understood(words[0], text))
    return _part(text, weekdays, date, time, zone)


def _not_understood(word: str, text: str) -> str:
    if "*/" in word:
        return f"{shown(text)}: systemd has no step after *; write 0/15 for every 15th (1/2 for days and months)"
    if "-~" in word:
        return f"{shown(text)}: ~ stands in place of the last '-', as in *-*~01 for the last day of the month"
    if re.fullmatch(r"[A-Za-z_+-]+(/[A-Za-z_+-]+)*", word):
        return f"{shown(text)}: {shown(word)} is neither a weekday nor a zone of the IANA database"
    return (
        f"{shown(text)}: {shown(word)} is no date (YYYY-MM-DD), time (HH:MM:SS) or zone that systemd takes "
        "(`systemd-analyze calendar` tells what it makes of it)"
    )


def _instant(seconds: int) -> CalendarPart:
    try:
        instant = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise NotCalendar(f"@{seconds} lies beyond the calendar") from None
    return CalendarPart({"at": [instant.isoformat().replace("+00:00", "Z")]})


def _part(
    text: str,
    weekdays: frozenset[int],
    date: re.Match[str] | None,
    time: re.Match[str] | None,
    zone: str | None,
) -> CalendarPart:
    hour, minute, second = (
        (_field("hour", time["hour"], 0, 23), _field("minute", time["minute"], 0, 59), _second(time["second"]))
        if time is not None
        else ("0", "0", "0")
    )
    years = _years(date["year"], text) if date is not None and date["year"] else None
    month = _field("month", date["month"], 1, 12) if date is not None else "*"
    excluded: tuple[str, ...] = ()
    is_every_day = len(weekdays) == 7
    if date is None or date["day"] == "*":
        day, weekday = "*", "*" if is_every_day else _weekday_field(weekdays)
        if date is not None and date["mark"] == "~":
            raise NotCalendar(f"{shown(text)}: ~ needs days, such as ~01 for the last one")
    else:
        day, days = _days(date["day"], date["mark"] == "~")
        weekday = "*"
        if not is_every_day and (nth := _nth(weekdays, days, from_end=date["mark"] == "~")):
            day, weekday = "*", nth
        elif not is_every_day:
            excluded = tuple(_DAYS[place] for place in range(7) if place not in weekdays)
    cron = " ".join([minute, hour, day, month, weekday])
    if second != "0":
        cron = f"{second} {cron}"
    try:
        CronExpression.parse(cron)
    except InvalidSchedule as error:
        raise NotCalendar(f"{shown(text)}: {error}") from None
    return CalendarPart(cron, zone, years, excluded)


def _weekdays(word: str, text: str) -> frozenset[int]:
    found: set[int] = set()
    for term in word.rstrip(",").split(","):
        low, dots, high = term.replace("-", "..").partition("..")
        first, last = _weekday(low, text), _weekday(high if dots else low, text)
        if first > last:
            raise NotCalendar(
                f"{shown(text)}: {term} runs backwards, which systemd refuses (its week begins on Monday); "
                "write two ranges"
            )
        found.update(range(first, last + 1))
    return frozenset(found)


def _weekday(word: str, text: str) -> int:
    lower = word.lower()
    if lower in _LONG_DAYS:
        return _LONG_DAYS.index(lower)
    if lower.upper() in _DAYS:
        return _DAYS.index(lower.upper())
    raise NotCalendar(_not_understood(word, text))


def _weekday_field(weekdays: frozenset[int]) -> str:
    """MON-FRI,SUN: runs of three and more as ranges, Sunday by itself, because cron's week begins with it."""
    terms: list[str] = []
    run: list[int] = []
    for place in [*sorted(weekdays - {6}), 99]:
        if run and place != run[-1] + 1:
            terms += [f"{_DAYS[run[0]]}-{_DAYS[run[-1]]}"] if len(run) > 2 else [_DAYS[day] for day in run]
            run = []
        run.append(place)
    return ",".join([*terms, *(["SUN"] if 6 in weekdays else [])])


def _terms(what: str, text: str) -> Iterable[tuple[int, int | None, int | None]]:
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            advice = "; systemd has no step after *: write 0/15 or 1/2" if term.startswith("*/") else ""
            raise NotCalendar(f"{what} {shown(text)}: {shown(term)} is not understood{advice}")
        yield int(match["low"]), int(match["high"]) if match["high"] else None, int(match["step"] or 0) or None


def _field(what: str, text: str, least: int, most: int) -> str:
    """A component as a cron field."""
    if text == "*":
        return "*"
    fields: list[str] = []
    for low, high, step in _terms(what, text):
        if not least <= low <= (high if high is not None else low) <= most:
            raise NotCalendar(f"{what} {shown(text)}: values are {least} to {most}, the smaller one first")
        span = f"{low}-{high}" if high is not None else str(low)
        if step is not None and step > (high if high is not None else most) - low:
            span, step = str(low), None  # the next value would lie beyond the end
        fields.append(span if step is None else f"{span}/{step}")
    return ",".join(fields)


def _second(text: str | None) -> str:
    if text is None:
        return "0"
    whole = re.sub(r"(?<=[0-9])(?<!\.)\.0+(?![0-9.])", "", text)
    if re.search(r"[0-9]\.[0-9]", whole.replace("..", " ")):
        raise NotCalendar(f"second {shown(text)}: Sexton fires on whole seconds of the clock; leave the fraction out")
    return _field("second", whole, 0, 59)


def _days(text: str, from_end: bool) -> tuple[str, frozenset[int]]:
    """The day field, and the days it names: 1 is the first, or from the end the last."""
    if not from_end:
        field = _field("day", text, 1, 31)
        named: set[int] = set()
        for low, high, step in _terms("day", text):
            last = high if high is not None else 31 if step else low
            named.update(range(low, last + 1, step or 1))
        return field, frozenset(named)
    counted: set[int] = set()
    for low, high, step in _terms("day", text):
        if high is not None or not 1 <= low <= 31:
            raise NotCalendar(
                f"days ~{text}: write one value of 1 to 31, or one with a step such as ~07/1 for the last week"
            )
        counted.update(range(low, 0, -step) if step else [low])
    return ",".join("L" if day == 1 else f"L-{day - 1}" for day in sorted(counted, reverse=True)), frozenset(counted)


def _nth(weekdays: frozenset[int], days: frozenset[int], *, from_end: bool) -> str | None:
    """MON#1 where the days are the month's first week, MONL where they are its last; else None."""
    names = [_DAYS[place] for place in sorted(weekdays)]
    if from_end:
        return ",".join(f"{name}L" for name in names) if days == frozenset(range(1, 8)) else None
    for nth in range(1, 5):
        if days == frozenset(range(nth * 7 - 6, nth * 7 + 1)):
            return ",".join(f"{name}#{nth}" for name in names)
    return None


def _years(text: str, expression: str) -> tuple[int, int] | None:
    """First and last year; None for every year."""
    if text == "*":
        return None
    named: set[int] = set()
    for low, high, step in _terms("year", text):
        first, last = (_four_digits(year) for year in (low, high if high is not None else low))
        if step is not None and step > 1:
            raise NotCalendar(
                f"{shown(expression)}: Sexton has no steps of years; write schedule: "
                f"{{calendar: {{years: {step}}}, ...}} by hand"
            )
        last = _LAST_YEAR if step == 1 and high is None else last
        if not _FIRST_YEAR <= first <= last <= _LAST_YEAR:
            raise NotCalendar(f"{shown(expression)}: years are {_FIRST_YEAR} to {_LAST_YEAR}")
        named.update(range(first, last + 1))
    if max(named) - min(named) + 1 != len(named):
        raise NotCalendar(f"{shown(expression)}: its years have gaps; write one OnCalendar= line for each stretch")
    return min(named), max(named)


def _four_digits(year: int) -> int:
    return year + 2000 if year < 70 else year + 1900 if year < 100 else year
