"""Which part of a proposal is meant by what was typed, and what approving it would do: ``newest 3``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.hold_views import HoldDetail
from sexton.holds import ALL, HeldTick, Part
from sexton_tui.console.core.hold_words import part_text
from sexton_tui.console.core.typed_instants import parse_range
from sexton_tui.console.core.words import instant

PARTS_HINT = "all, newest N, or FROM to BEFORE"
_NEWEST = re.compile(r"(?:newest )?([0-9]{1,9})")


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
    first, last = ticks[0].scheduled_at, ticks[-1].scheduled_at
    span = instant(first, now) if first == last else f"{instant(first, now)} to {instant(last, now)}"
    return f"{part_text(found.hold, len(ticks))}: {span}, starting {spread}"
