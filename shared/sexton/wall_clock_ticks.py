"""From wall-clock readings to instants: what becomes of readings that match when a zone's clock changes.

A job follows one of these rules (docs/architecture.md, schedules):

- R1, elapsed time: it fires at every instant whose reading matches. A reading that was jumped over never fires, one
  that is shown twice fires twice. So do expressions whose minute or hour field starts with `*`, as with Debian's cron.
- R2, fixed times, by default: a matching reading that was jumped over fires at the first instant after the jump,
  several of them once; a reading that is shown twice fires the first time only. A job may choose otherwise (`dst`):
  `gap: skip` leaves jumped-over readings out, `overlap: second` or `both` takes the other showing, or both.

`live_readings` is the rule; everything else here applies it span by span. Instants are Unix seconds.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from sexton.cron_readings import DAY_SECONDS, LAST_YEAR, SEARCH_YEARS
from sexton.zone_clock import BLOCK_BITS, Span, ZoneClock

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


class _Window(NamedTuple):
    """A span as a rule sees it: instants [start, end), and the readings that `live_readings` tells."""

    start: int
    end: int
    offset: int
    made_up_from: int
    first: int
    stop: int


class _Windows:
    """The windows of one clock under one rule, each found once, for all schedules that follow them."""

    __slots__ = ("_blocks", "_clock", "_rule", "latest")

    def __init__(self, clock: ZoneClock, rule: ChangeRule) -> None:
        self._clock = clock
        self._rule = rule
        self._blocks: dict[int, tuple[_Window, ...]] = {}
        self.latest = _Window(0, 0, 0, 0, 0, 0)
        """The one in which a search began last: schedules are mostly asked about the same days."""

    def at(self, instant: int) -> _Window:
        """The window that holds this instant."""
        number = instant >> BLOCK_BITS
        block = self._blocks.get(number)
        if block is None:
            spans = self._clock.block_at(instant)
            windows = (_Window(span.start, span.end, span.offset, *live_readings(span, self._rule)) for span in spans)
            block = self._blocks[number] = tuple(windows)
        for window in block:
            if instant < window.end:
                return window
        raise AssertionError("the spans of a block cover it")


@lru_cache(maxsize=4096)
def _windows_of(clock: ZoneClock, rule: ChangeRule) -> _Windows:
    return _Windows(clock, rule)


class WallClockTicks:
    """The ticks of one set of readings in one zone. A tick is a whole second."""

    __slots__ = ("_readings", "_windows")

    def __init__(self, readings: WallClockReadings, rule: ChangeRule, clock: ZoneClock) -> None:
        self._readings = readings
        self._windows = _windows_of(clock, rule)

    def first_from(self, instant: int) -> int | None:
        """The first tick at or after `instant`; None when there is none within 100 years."""
        start, end, offset, _, first, stop = self._windows.latest
        if start < instant < end and first <= instant + offset:  # nothing is made up in the midst of a span
            found = self._readings.first_from(instant + offset)
            if found is None:
                return None
            if found < stop:
                return found - offset
            return self._search_forward(instant, instant + offset, found)
        return self._search_forward(instant)

    def last_upto(self, instant: int) -> int | None:
        """The last tick at or before `instant`; None when there is none within 100 years."""
        start, end, offset, _, first, stop = self._windows.latest
        if start <= instant < end and instant + offset < stop:
            found = self._readings.last_upto(instant + offset)
            if found is not None and found >= first:
                return found - offset
            return self._search_backward(instant, instant + offset, found)
        return self._search_backward(instant)

    def _search_forward(self, instant: int, searched: int | None = None, found: int | None = None) -> int | None:
        """`first_from`, from one span to the next; `found` is the first matching reading from `searched` on."""
        if not _FIRST_INSTANT <= instant < _LAST_INSTANT:
            return self.first_from(_FIRST_INSTANT) if instant < _FIRST_INSTANT else None
        readings, window_at = self._readings, self._windows.at
        window = self._windows.latest = window_at(instant)
        while window.start <= instant + _SEARCH_SECONDS:
            begins, ends, offset, made_up_from, first, stop = window
            start = max(first, instant + offset)
            if made_up_from < first and begins >= instant:
                start = made_up_from
            if found is None or searched is None or not searched <= start <= found:
                searched, found = start, readings.first_from(start)
                if found is None:
                    return None
            if found < first:
                return begins
            if found < stop:
                return found - offset
            ahead = ends
            if ahead - instant > _LONGEST_CHANGE:
                ahead = max(ahead, found - offset - _LONGEST_CHANGE)
            window = window_at(ahead)
        return None

    def _search_backward(self, instant: int, searched: int | None = None, found: int | None = None) -> int | None:
        """`last_upto`, from one span to the one before; `found` is the last matching reading up to `searched`."""
        if not _FIRST_INSTANT <= instant < _LAST_INSTANT:
            return self.last_upto(_LAST_INSTANT - 1) if instant >= _LAST_INSTANT else None
        readings, window_at = self._readings, self._windows.at
        window = self._windows.latest = window_at(instant)
        while window.end >= instant - _SEARCH_SECONDS:
            begins, _, offset, made_up_from, first, stop = window
            end = min(stop - 1, instant + offset)
            if searched is None or found is None or not found <= end <= searched:
                searched, found = end, readings.last_upto(end)
            if found is None and instant - begins > _LONGEST_CHANGE:
                return None
            behind = begins - 1
            if found is not None:  # else the span before may have shown later readings: calendar intervals have a first
                if found >= first:
                    return found - offset
                if made_up_from < first and found >= made_up_from:
                    return begins
                if instant - behind > _LONGEST_CHANGE:
                    behind = min(behind, found - offset + _LONGEST_CHANGE)
            window = window_at(behind)
        return None

    def contains(self, instant: int) -> bool:
        start, _, offset, made_up_from, first, stop = self._windows.at(instant)
        reading = instant + offset
        if first <= reading < stop and self._readings.matches(reading):
            return True
        return instant == start and made_up_from < first and self._readings.count(made_up_from, first) > 0

    def count(self, start: int, stop: int) -> int:
        """How many ticks lie in [start, stop), by arithmetic."""
        readings = self._readings
        total = 0
        while start < stop:
            begins, ends, offset, made_up_from, first, end = self._windows.at(start)
            total += readings.count(max(first, start + offset), min(end, stop + offset))
            if begins >= start and made_up_from < first and not (first < end and readings.matches(first)):
                total += readings.count(made_up_from, first) > 0
            start = ends
        return total
