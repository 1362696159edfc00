"""Ticks on the clock of a zone, in a few words: their local time, and what a change of that clock does to them."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sexton.settings import format_duration
from sexton.tick_marks import ClockChange, Showing, TickMarks


def change_text(change: ClockChange) -> str:
    """``the clock goes from 02:00 to 03:00 (+01:00 to +02:00)``; with dates where it leaves the day."""
    before, after = (change.at + offset for offset in (change.before, change.after))
    texts = [clock_text(reading) for reading in (before, after)]
    if before.date() != after.date():
        texts = [f"{reading:%m-%d} {text}" for reading, text in zip((before, after), texts, strict=True)]
    return f"the clock goes from {texts[0]} to {texts[1]} ({offset_text(change.before)} to {offset_text(change.after)})"


def offset_text(offset: timedelta) -> str:
    """``+01:00``; with seconds where a zone had them."""
    sign = "-" if offset < timedelta(0) else "+"
    minutes, seconds = divmod(abs(offset) // timedelta(seconds=1), 60)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")


def mark_text(tick: datetime, marks: TickMarks, zone: ZoneInfo) -> str:
    """What there is to say about a tick, in a few words."""
    local = tick.astimezone(zone)
    time = clock_text(local)
    if marks.shifted_from is not None:
        jumped = clock_text(marks.shifted_from)
        if marks.has_own_reading:
            return f"{time} stands for {jumped} too, which does not exist"
        return f"{jumped} does not exist: fires at {time}"
    if marks.showing is not None:
        which = "first" if marks.showing is Showing.FIRST else "second"
        return f"{time} comes twice: the {which}, {local:%Z}"
    return ""


def short_mark_text(marks: TickMarks) -> str:
    """The same, for a table that shows the tick's local time; at most 19 characters."""
    if marks.shifted_from is not None:
        return f"{'also for' if marks.has_own_reading else 'instead of'} {clock_text(marks.shifted_from)}"
    return "" if marks.showing is None else f"{marks.showing} of two"


def short_change_text(change: ClockChange) -> str:
    """``clock +1h today``."""
    return f"clock {'-' if change.skips < timedelta(0) else '+'}{format_duration(abs(change.skips))} today"


def local_text(tick: datetime, zone: ZoneInfo) -> str:
    """``Sun 2026-03-29 03:00:00 CEST``; with milliseconds where the tick has some."""
    local = tick.astimezone(zone)
    fraction = f".{local.microsecond // 1000:03}" if local.microsecond else ""
    return f"{local:%a %Y-%m-%d %H:%M:%S}{fraction} {local:%Z}"


def available_text(tick: datetime, delay: timedelta, zone: ZoneInfo) -> str:
    """When a tick's claim becomes available, on the zone's clock to the second; with its date where that is another."""
    local, available = tick.astimezone(zone), (tick + delay).astimezone(zone)
    return f"{available:%H:%M:%S}" if available.date() == local.date() else f"{available:%m-%d %H:%M:%S}"


def clock_text(reading: datetime) -> str:
    """``02:30``; with seconds where there are some."""
    return f"{reading:%H:%M:%S}".removesuffix(":00")
