"""Which part of a proposal is meant by what was typed, and what approving it would do: ``newest 3``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sexton.hold_views import HoldDetail
from sexton.holds import ALL, HeldTick, Part
from sexton_tui.console.core.hold_words import part_text
from sexton_tui.console.core.typed_instants import parse_range, parse_reading
from sexton_tui.console.core.words import instant

PARTS_HINT = "all, newest N, a tick (02:05), or FROM to BEFORE"
_READ = timedelta(seconds=1)  # a reading names what lies within its second
_NEWEST = re.compile(r"(?:newest )?([0-9]{1,9})")


def parse_part(text: str, near: datetime, now: datetime) -> Part:
    """The part that `text` names. A clock reading is of the zone of `now` (of UTC with a ``Z``), and without a date of
    the day of `near`. Raises ``InvalidInput`` with what to write."""
    text = " ".join(text.split())
    if text in ("", "all"):
        return ALL
    if (newest := _NEWEST.fullmatch(text)) is not None and int(newest[1]):
        return Part(newest=int(newest[1]))
    if " to " not in text and ":" in text:
        at = parse_reading(text, near, now)
        return Part(begin=at, end=at + _READ)
    begin, end = parse_range(text, near, now, hint=f"write {PARTS_HINT}")
    return Part(begin=begin, end=end)


def typed_tick(tick: datetime, near: datetime, now: datetime) -> str:
    """A tick as ``parse_part`` reads it."""
    shown, day = tick.astimezone(now.tzinfo), near.astimezone(now.tzinfo).date()
    return f"{shown:%H:%M:%S}" if shown.date() == day else f"{shown:%Y-%m-%d %H:%M:%S}"


def would_run_words(found: HoldDetail, ticks: Sequence[HeldTick], now: datetime) -> str:
    """What approving these ticks would do: how many run, when they could start from now on, and what becomes of the
    others."""
    if found.ticks is None:
        return "it is answered already"
    pace = replace(found.pace, now=now)
    starts = [start for _, start in pace.starts(found.ticks.firing, ticks)]
    spread = instant(starts[0], now)
    if starts[-1] - starts[0] >= timedelta(seconds=1):
        spread += f" to {instant(starts[-1], now)}"
    if found.hold.is_paused:
        spread = "once the job is resumed"
    first, last = ticks[0].scheduled_at, ticks[-1].scheduled_at
    span = instant(first, now) if first == last else f"{instant(first, now)} to {instant(last, now)}"
    return f"{part_text(found.hold, len(ticks))}: {span}, starting {spread}"
