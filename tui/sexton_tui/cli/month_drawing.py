"""A month of ticks as lines of text with styles: seven columns from Monday, 80 columns wide at most. Pure.

A place is ``[29]`` for today or `` 29 `` for another day, how many ticks it has (``×24``, ``·`` for none), and a mark:
``~`` the clock changes, ``x`` the day is excluded. Colours add how busy the day is; nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sexton.tick_calendar import CalendarDay, CalendarMonth, runs_of
from sexton.tick_marks import TickMarks
from sexton_tui.console.core.clock_words import change_text, clock_text, mark_text

PLACE = 11
MAX_NOTES = 4
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BUSY_STYLES = ("cyan", "green", "bold green", "bold yellow")
_DIM, _TODAY, _CHANGE, _EXCLUDED = "dim", "reverse", "bold magenta", "dim"


class Piece(NamedTuple):
    """Text and its style, as rich names styles; empty for none."""

    text: str
    style: str = ""


Line = list[Piece]


def month_lines(
    month: CalendarMonth, title: str, marked: Sequence[tuple[datetime, TickMarks]], zone: ZoneInfo
) -> list[Line]:
    """The drawing. ``marked``: the month's ticks that a changed clock touches, with what there is to say."""
    busiest = max((day.ticks for day in month.days), default=0)
    head = f"{month.first:%B %Y}, {month.zone}"
    lines = [[Piece(head, "bold"), Piece(f"  {title}" if title else "")], []]
    lines.append([Piece("".join(f" {name:<{PLACE - 1}}" for name in _WEEKDAYS).rstrip(), "bold")])
    for week in month.weeks:
        lines.append([piece for day in week for piece in _place(day, busiest)])
    lines.append([])
    lines += [[Piece(text)] for text in notes(month, marked, zone)]
    return lines


def _place(day: CalendarDay | None, busiest: int) -> Iterator[Piece]:
    if day is None:
        yield Piece(" " * PLACE)
        return
    number = f"[{day.day.day:>2}]" if day.is_today else f" {day.day.day:>2} "
    pieces = [Piece(number, _TODAY if day.is_today else "")]
    pieces.append(Piece(short_count(day.ticks), busy_style(day.ticks, busiest)) if day.is_lived else Piece("-", _DIM))
    if day.changes:
        pieces.append(Piece("~", _CHANGE))
    if day.excluded:
        pieces.append(Piece("x", _EXCLUDED))
    yield from pieces
    yield Piece(" " * (PLACE - sum(len(piece.text) for piece in pieces)))


def short_count(ticks: int) -> str:
    """``·``, ``×24``, ``×1440``, ``×86k``: at most five characters."""
    if not ticks:
        return "·"
    return f"×{ticks}" if ticks < 10_000 else f"×{ticks // 1000}k"


def busy_style(ticks: int, busiest: int) -> str:
    """By quarters of the busiest day; a month whose days are all alike has one calm colour."""
    if not ticks:
        return _DIM
    return _BUSY_STYLES[min((ticks * 4 - 1) // busiest, 3)] if busiest > 1 else _BUSY_STYLES[0]


def notes(month: CalendarMonth, marked: Sequence[tuple[datetime, TickMarks]], zone: ZoneInfo) -> list[str]:
    """What the marks stand for, and how many ticks there are; one sentence a line."""
    days = sum(day.ticks > 0 for day in month.days)
    said = [f"{_counted(month.ticks, 'tick')} on {_counted(days, 'day')}"]
    for day in month.days:
        said += [f"~ {day.day.day:>2}  {change_text(change)}" for change in day.changes]
    said += [f"x     {', '.join(_spans_of_days(dates))}: {why}" for why, dates in runs_of(month)]
    for number, ticks in groupby(marked, key=lambda one: one[0].astimezone(zone).day):
        said += [f"  {number:>2}  {text}" for text in _marked_day(list(ticks), zone)]
    return said


def _marked_day(marked: Sequence[tuple[datetime, TickMarks]], zone: ZoneInfo) -> list[str]:
    if len(marked) <= MAX_NOTES:
        return [mark_text(tick, marks, zone) for tick, marks in marked]
    first, last = (clock_text(tick.astimezone(zone)) for tick in (marked[0][0], marked[-1][0]))
    return [f"{_counted(len(marked), 'tick')} from {first} to {last} at times that come twice"]


def _spans_of_days(dates: Sequence[date]) -> Iterator[str]:
    """``1``, ``3-5``: days of a month, neighbours put together."""
    start = 0
    for place in range(1, len(dates) + 1):
        if place == len(dates) or dates[place].day != dates[place - 1].day + 1:
            first, last = dates[start].day, dates[place - 1].day
            yield str(first) if first == last else f"{first}-{last}"
            start = place


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
