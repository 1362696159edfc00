"""Which part of a proposal, or stretch of a job, is meant by what was typed: ``newest 3``, ``02:00 to 02:30``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sexton.errors import InvalidInput
from sexton.hold_views import HoldDetail
from sexton.holds import ALL, HeldTick, Part
from sexton_tui.console.core.hold_words import count_text
from sexton_tui.console.core.words import instant

PARTS_HINT = "all, newest N, or FROM to BEFORE"
_NEWEST = re.compile(r"(?:newest )?([0-9]{1,9})")
_READING = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{2}:\d{2}(?::\d{2})?)(Z)?")


def parse_part(text: str, near: datetime, now: datetime) -> Part:
    """The part that `text` names. A clock reading is of the zone of `now` (of UTC with a ``Z``), and without a date of
    the day of `near`. Raises ``InvalidInput`` with what to write."""
    text = " ".join(text.split())
    if text in ("", "all"):
        return ALL
    if (newest := _NEWEST.fullmatch(text)) is not None and int(newest[1]):
        return Part(newest=int(newest[1]))
    begin, end = parse_range(text, near, now, hint=f"write {PARTS_HINT}")
    return Part(begin=begin, end=end)


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
    UTC. Raises ``InvalidInput``."""
    found = _READING.fullmatch(text.strip())
    zone = UTC if found is not None and found[3] else now.tzinfo
    try:
        if found is None:
            raise ValueError
        day = found[1] or f"{near.astimezone(zone):%Y-%m-%d}"
        return datetime.fromisoformat(f"{day}T{found[2]}").replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no instant", hint="write 02:30, 02:30:00 or 2026-03-29 02:30") from None


def would_run_words(found: HoldDetail, ticks: Sequence[HeldTick], now: datetime) -> str:
    """What approving these ticks would do: how many run, when they could start, and what becomes of the others."""
    if found.ticks is None:
        return "it is answered already"
    starts = [start for _, start in found.pace.starts(found.ticks.firing, ticks)]
    spread = instant(starts[0], now)
    if starts[-1] - starts[0] >= timedelta(seconds=1):
        spread += f" to {instant(starts[-1], now)}"
    if found.hold.is_paused:
        spread = "once the job is resumed"
    rest = found.hold.count - len(ticks)
    others = f"; the other {rest:,} would be rejected" if rest else ""
    first, last = ticks[0].scheduled_at, ticks[-1].scheduled_at
    span = instant(first, now) if first == last else f"{instant(first, now)} to {instant(last, now)}"
    return f"{count_text(len(ticks))} ({span}) would run, starting {spread}{others}"
