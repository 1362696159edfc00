"""From wall-clock readings to instants: what becomes of readings that match when a zone's clock changes.

A job follows one of these rules (docs/architecture.md, schedules):

- R1, elapsed time: it fires at every instant whose reading matches. A reading that was jumped over never fires, one
  that is shown twice fires twice. So do expressions whose minute or hour field starts with `*`, as with Debian's cron.
- R2, fixed times, by default: a matching reading that was jumped over fires at the first instant after the jump,
  several of them once; a reading that is shown twice fires the first time only. A job may choose otherwise (`dst`):
  `gap: skip` leaves jumped-over readings out, `overlap: second` or `both` takes the other showing, or both.

`live_readings` is the rule; everything else here applies it span by span. Instants are Unix seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sexton.cron_readings import DAY_SECONDS, LAST_YEAR, SEARCH_YEARS
from sexton.zone_clock import Span, ZoneClock

_YEAR_SECONDS = 31_556_952
_LAST_INSTANT = (LAST_YEAR - 1970) * _YEAR_SECONDS
_FIRST_INSTANT = (10 - 1970) * _YEAR_SECONDS
_SEARCH_SECONDS = SEARCH_YEARS * _YEAR_SECONDS
_LONGEST_CHANGE = 2 * DAY_SECONDS
"""No clock has changed by more (a date line is a day): spans nearer than this to a search's start or to what it found
are looked at one by one, those between cannot hold anything and are stepped over."""


class GapRule(StrEnum):
    """What becomes of a time that the clock jumps over."""

    SHIFT = "shift"  # it fires at the first instant after the jump
    SKIP = "skip"


class OverlapRule(StrEnum):
    """Which showing counts of a time that the clock shows twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """What a job does when the clock changes. ``gap`` and ``overlap`` say nothing where it follows elapsed time."""

    gap: GapRule = GapRule.SHIFT
    overlap: OverlapRule = OverlapRule.FIRST
    follows_elapsed_time: bool = False


class WallClockReadings(Protocol):
    """A set of wall-clock readings (``sexton.cron_readings``)."""

    def first_from(self, reading: int) -> int | None: ...
    def last_upto(self, reading: int) -> int | None: ...
    def matches(self, reading: int) -> bool: ...
    def count(self, start: int, stop: int) -> int: ...


def live_readings(span: Span, rule: ChangeRule) -> tuple[int, int, int]:
    """(made_up_from, first, stop) for a span.

    Matching readings in [first, stop) fire at their instant in the span; one or more in [made_up_from, first) fire
    together at the span's start.
    """
    shown_from = span.start + span.offset
    stop = span.end + span.offset
    if rule.follows_elapsed_time:
        return shown_from, shown_from, stop
    if rule.overlap is OverlapRule.SECOND and span.ahead < stop:
        stop = max(span.ahead, shown_from)
    if span.frontier <= shown_from:
        return shown_from if rule.gap is GapRule.SKIP else span.frontier, shown_from, stop
    if rule.overlap is OverlapRule.FIRST:
        return stop, min(span.frontier, stop), stop
    return shown_from, shown_from, stop


class WallClockTicks:
    """The ticks of one set of readings in one zone. A tick is a whole second."""

    __slots__ = ("_clock", "_readings", "_rule")

    def __init__(self, readings: WallClockReadings, rule: ChangeRule, clock: ZoneClock) -> None:
        self._readings = readings
        self._rule = rule
        self._clock = clock

    def first_from(self, instant: int) -> int | None:
        """The first tick at or after `instant`; None when there is none within 100 years."""
        if not _FIRST_INSTANT <= instant < _LAST_INSTANT:
            return self.first_from(_FIRST_INSTANT) if instant < _FIRST_INSTANT else None
        readings, span_at = self._readings, self._clock.span_at
        span = span_at(instant)
        searched = found = None
        while span.start <= instant + _SEARCH_SECONDS:
            made_up_from, first, stop = live_readings(span, self._rule)
            start = max(first, instant + span.offset)
            if made_up_from < first and span.start >= instant:
                start = made_up_from
            if searched is None or found is None or not searched <= start <= found:
                searched, found = start, readings.first_from(start)
                if found is None:
                    return None
            if found < first:
                return span.start
            if found < stop:
                return found - span.offset
            ahead = span.end
            if ahead - instant > _LONGEST_CHANGE:
                ahead = max(ahead, found - span.offset - _LONGEST_CHANGE)
            span = span_at(ahead)
        return None

    def last_upto(self, instant: int) -> int | None:
        """The last tick at or before `instant`; None when there is none within 100 years."""
        if not _FIRST_INSTANT <= instant < _LAST_INSTANT:
            return self.last_upto(_LAST_INSTANT - 1) if instant >= _LAST_INSTANT else None
        readings, span_at = self._readings, self._clock.span_at
        span = span_at(instant)
        searched = found = None
        while span.end >= instant - _SEARCH_SECONDS:
            made_up_from, first, stop = live_readings(span, self._rule)
            end = min(stop - 1, instant + span.offset)
            if searched is None or found is None or not found <= end <= searched:
                searched, found = end, readings.last_upto(end)
                if found is None:
                    return None
            if found >= first:
                return found - span.offset
            if made_up_from < first and found >= made_up_from:
                return span.start
            behind = span.start - 1
            if instant - behind > _LONGEST_CHANGE:
                behind = min(behind, found - span.offset + _LONGEST_CHANGE)
            span = span_at(behind)
        return None

    def contains(self, instant: int) -> bool:
        span = self._clock.span_at(instant)
        made_up_from, first, stop = live_readings(span, self._rule)
        reading = instant + span.offset
        if first <= reading < stop and self._readings.matches(reading):
            return True
        return instant == span.start and made_up_from < first and self._readings.count(made_up_from, first) > 0

    def count(self, start: int, stop: int) -> int:
        """How many ticks lie in [start, stop), by arithmetic."""
        readings = self._readings
        total = 0
        while start < stop:
            span = self._clock.span_at(start)
            made_up_from, first, end = live_readings(span, self._rule)
            total += readings.count(max(first, start + span.offset), min(end, stop + span.offset))
            if span.start >= start and made_up_from < first and not (first < end and readings.matches(first)):
                total += readings.count(made_up_from, first) > 0
            start = span.end
        return total

    def ascending(self, start: int, stop: int) -> Iterator[int]:
        """The ticks in [start, stop)."""
        tick = self.first_from(start)
        while tick is not None and tick < stop:
            yield tick
            tick = self.first_from(tick + 1)

    def descending(self, start: int, stop: int) -> Iterator[int]:
        """The ticks in [start, stop), newest first."""
        tick = self.last_upto(stop - 1)
        while tick is not None and tick >= start:
            yield tick
            tick = self.last_upto(tick - 1)
