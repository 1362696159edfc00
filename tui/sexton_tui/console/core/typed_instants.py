"""Instants as an operator types them, in the zone that the screen shows: ``02:30``, ``yesterday 02:00 to 02:30``,
``-2h``, ``3h ago``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from sexton.errors import InvalidInput
from sexton.settings import parse_duration

EXAMPLES = "02:00, yesterday 02:00, 2026-03-28 02:00, or 2h ago"
_READING = re.compile(r"(?:(\d{4}-\d{2}-\d{2}|today|yesterday)(?:[T ]|$))?(\d{2}:\d{2}(?::\d{2})?)?(Z)?")
_DISTANCE = re.compile(r"-([0-9a-z ]+)|([0-9a-z ]+) ago")
_DAYS_BACK = {"today": 0, "yesterday": 1}


def parse_range(text: str, near: datetime, now: datetime, *, hint: str) -> tuple[datetime, datetime]:
    """``FROM to BEFORE``, two clock readings, as instants in UTC. Raises ``InvalidInput`` with the hint."""
    first, separator, second = text.partition(" to ")
    if not separator:
        raise InvalidInput(f"{text!r} names no ticks", hint=hint)
    begin, end = parse_reading(first, near, now), parse_reading(second, near, now)
    if begin >= end:
        raise InvalidInput(f"{first} is not before {second}", hint="the part ends before the second")
    return begin, end


def parse_reading(text: str, near: datetime, now: datetime) -> datetime:
    """What was typed, as an instant in UTC: a clock reading of the zone of `now` (of UTC with a ``Z``), without a date
    of the day of `near`; a distance back from `now`; or ISO 8601 with an offset, as commands take it.

    Raises ``InvalidInput``, also where no instant shows that reading, or two do."""
    text = " ".join(text.split())
    try:
        if text == "now" or _DISTANCE.fullmatch(text):
            return _distant(text, now)
        if (found := _READING.fullmatch(text)) is None or not (found[1] or found[2]):
            return _with_offset(text)
        zone = UTC if found[3] else now.tzinfo
        day = _day(found[1], near.astimezone(zone), now.astimezone(zone))
        local = datetime.combine(day, time.fromisoformat(found[2] or "00:00"), zone)
        first, second = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
        is_shown = first.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no instant", hint=f"write {EXAMPLES}") from None
    if first == second:
        return first
    if is_shown:
        both = f"{first:%Y-%m-%d %H:%M}Z or {second:%Y-%m-%d %H:%M}Z"
        raise InvalidInput(f"{text} comes twice there, for the clock is put back", hint=f"write {both}")
    raise InvalidInput(
        f"{text} is left out there, for the clock is put forward", hint="write it in UTC, with a Z behind it"
    )


def _day(word: str | None, near: datetime, now: datetime) -> date:
    """The date that is meant, on the clocks of these two."""
    if word is None:
        return near.date()
    return now.date() - timedelta(days=_DAYS_BACK[word]) if word in _DAYS_BACK else date.fromisoformat(word)


def _distant(text: str, now: datetime) -> datetime:
    at = now.astimezone(UTC)
    if text != "now":
        at -= parse_duration(text.removeprefix("-").removesuffix(" ago").replace(" ", ""))
    return datetime.combine(at.date(), at.timetz())  # `now` says how it is shown; an instant does not


def _with_offset(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at.astimezone(UTC)
