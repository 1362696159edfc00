"""Instants as an operator types them, in the zone that the screen shows: ``02:30``, ``02:00 to 02:30``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sexton.errors import InvalidInput

_READING = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{2}:\d{2}(?::\d{2})?)(Z)?")


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
    """A clock reading of the zone of `now` (of UTC with a ``Z``), without a date of the day of `near`, as an instant in
    UTC. Raises ``InvalidInput``, also where no instant shows that reading, or two do."""
    found = _READING.fullmatch(text.strip())
    zone = UTC if found is not None and found[3] else now.tzinfo
    try:
        if found is None:
            raise ValueError
        day = found[1] or f"{near.astimezone(zone):%Y-%m-%d}"
        local = datetime.fromisoformat(f"{day}T{found[2]}").replace(tzinfo=zone)
        first, second = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
        is_shown = first.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no instant", hint="write 02:30, 02:30:00 or 2026-03-29 02:30") from None
    if first != second:
        what = "comes twice there" if is_shown else "is left out there"
        raise InvalidInput(f"{text.strip()} {what}: the clock is changed", hint="write it in UTC, with a Z behind it")
    return first
