"""The sentence of reason that goes with a decision over missed ticks: numbers first, for an operator at night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.decisions import SkipReason
from sexton.schedules import Schedule
from sexton.settings import format_duration

_RHYTHMS = {
    timedelta(seconds=1): "every second",
    timedelta(minutes=1): "minutely",
    timedelta(hours=1): "hourly",
    timedelta(days=1): "daily",
    timedelta(days=7): "weekly",
}


@dataclass(frozen=True, slots=True)
class ReasonNumbers:
    """What a decision came to. ``skipped``: (reason, count, detail), oldest first."""

    now: datetime
    fired: int
    fired_first: datetime | None
    fired_last: datetime | None
    lateness: timedelta | None  # of the newest that fired, its jitter taken off
    skipped: Sequence[tuple[SkipReason, int, str]]
    is_forced: bool = False


def reason_sentence(numbers: ReasonNumbers, schedule: Schedule, newest: datetime) -> str:
    """E.g. ``minutely, 13 missed: 02:13:00 fired 7s late, 12 merged into it``."""
    counts: dict[tuple[SkipReason, str], int] = {}
    for reason, count, detail in numbers.skipped:
        counts[reason, detail] = counts.get((reason, detail), 0) + count
    missed = numbers.fired + sum(counts.values())
    parts = [*_fired_part(numbers), *(_skipped_part(key, count, numbers) for key, count in counts.items())]
    rhythm = rhythm_word(schedule, newest)
    return f"{rhythm + ', ' if rhythm else ''}{missed:,} missed: {', '.join(parts)}"


def rhythm_word(schedule: Schedule, tick: datetime) -> str:
    """``minutely``, ``daily``, ``every 15m``: only where the ticks around ``tick`` are evenly spaced, else empty."""
    previous, following = schedule.previous_before(tick), schedule.next_after(tick)
    if previous is None or following is None or tick - previous != following - tick:
        return ""
    period = following - tick
    return _RHYTHMS.get(period, f"every {format_duration(period)}")


def short_instant(instant: datetime, now: datetime) -> str:
    """The time of day where the day is today's (UTC), the whole instant otherwise."""
    text = instant.isoformat().replace("+00:00", "Z")
    return text.partition("T")[2].removesuffix("Z") if instant.date() == now.date() else text


def rounded(duration: timedelta) -> str:
    """A duration as precise as is of use: milliseconds under 10 s, seconds above."""
    unit = timedelta(seconds=1) if duration >= timedelta(seconds=10) else timedelta(milliseconds=1)
    return format_duration(duration // unit * unit)


def _fired_part(numbers: ReasonNumbers) -> list[str]:
    if numbers.fired_first is None or numbers.fired_last is None or numbers.lateness is None:
        return []
    last = short_instant(numbers.fired_last, numbers.now)
    if numbers.fired == 1:
        return [f"{last} fired {rounded(numbers.lateness)} late"]
    first = short_instant(numbers.fired_first, numbers.now)
    return [f"{numbers.fired:,} fired ({first} to {last}), the newest {rounded(numbers.lateness)} late"]


def _skipped_part(key: tuple[SkipReason, str], count: int, numbers: ReasonNumbers) -> str:
    reason, detail = key
    if reason is SkipReason.MERGED:
        return f"{count:,} {'merged into it' if numbers.fired == 1 else detail}"
    return f"{count:,} {reason.value} ({detail.removeprefix(reason.value + ': ')})"
