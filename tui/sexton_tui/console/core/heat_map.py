"""A calendar of half a year as a heat map: seven rows from Monday to Sunday, a column of two cells for each week.

How much there was on a day is told by shapes, not colours: `` ░▒▓█``, or `` .:*#`` in ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo

WEEKS = 26
_SHADES = ("  ", "░░", "▒▒", "▓▓", "██")
_ASCII_SHADES = ("  ", "..", "::", "**", "##")
_NOTHING = "· "  # a day without any; what lies ahead is blank
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = timedelta(days=1)


def days_shown(today: date, weeks: int = WEEKS) -> list[date]:
    """The days of the map that ends with the week of `today`; the last is `today`."""
    first = today - timedelta(days=today.weekday()) - (weeks - 1) * 7 * _DAY
    return [first + number * _DAY for number in range((today - first).days + 1)]


def bounds_of(days: list[date], zone: tzinfo | None) -> list[datetime]:
    """Where each day begins on the zone's clock, and where the last one ends: one more than there are days."""
    return [datetime.combine(day, time(), tzinfo=zone) for day in [*days, days[-1] + _DAY]]


def heat_map(counts: Mapping[date, int], today: date, *, weeks: int = WEEKS, ascii_only: bool = False) -> list[str]:
    """The line of months and the seven rows of days; days without a count had none."""
    days = days_shown(today, weeks)
    most = max(counts.values(), default=0)
    rows = [_month_line(days[::7])]
    for weekday, name in enumerate(_DAYS):
        cells = (_cell(counts.get(day, 0), most, ascii_only=ascii_only) for day in days[weekday::7])
        rows.append(f"{name} {''.join(cells)}")
    return rows


def scale_words(most: int, *, ascii_only: bool = False) -> str:
    """What the shades stand for: ``░░ 1-6  ▒▒ 7-12  ▓▓ 13-18  ██ 19-24``."""
    shades = _ASCII_SHADES if ascii_only else _SHADES
    parts, first = [], 1
    for level in range(1, 5):
        last = max((number for number in range(first, most + 1) if _level(number, most) == level), default=0)
        if last >= first:
            parts.append(f"{shades[level]} {first}" + (f"-{last}" if last > first else ""))
            first = last + 1
    return "  ".join(parts)


def _level(count: int, most: int) -> int:
    """By quarters of the busiest day: 1 to 4; 0 for none."""
    return min((count * 4 - 1) // most + 1, 4) if count > 0 else 0


def _cell(count: int, most: int, *, ascii_only: bool) -> str:
    if count <= 0:
        return "- " if ascii_only else _NOTHING
    return (_ASCII_SHADES if ascii_only else _SHADES)[_level(count, most)]


def _month_line(mondays: list[date]) -> str:
    """Each month's name over the first week that begins in it; none over a single week at the edge."""
    cells = [" "] * (4 + 2 * len(mondays))
    changes = [
        column for column, monday in enumerate(mondays) if monday.month != mondays[column - 1].month or not column
    ]
    for column, following in zip(changes, [*changes[1:], len(mondays)], strict=True):
        if following - column >= 2:
            start = 4 + 2 * column
            cells[start : start + 3] = _MONTHS[mondays[column].month - 1]
    return "".join(cells).rstrip()
