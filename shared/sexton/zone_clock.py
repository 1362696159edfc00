"""A zone's wall clock as spans of constant offset, found once and kept.

ZoneInfo answers for one instant at a time; tick arithmetic wants to know how long an answer holds and what the clock
jumped over or repeated when it changed. Offsets are sampled every six days and changes found by bisection, to the
second (zones have changed at odd seconds), for a block of 2^25 seconds (388 days) at a time.
"""

from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sexton.zones import load_zone

BLOCK_BITS = 25
_SAMPLE_SECONDS = 1 << 19  # no zone has ever changed and changed back within six days; a test compares with tzdata
_LOOK_AROUND_SECONDS = 4 * 86_400  # more than the longest repetition, the day that Alaska and Kwajalein lived twice
_FIRST_INSTANT = int(datetime(2, 1, 1, tzinfo=UTC).timestamp())
_LAST_INSTANT = int(datetime(9998, 1, 1, tzinfo=UTC).timestamp())


class Span(NamedTuple):
    """The instants [start, end), in Unix seconds, during which local time is UTC + `offset`.

    `frontier` is the latest reading that the clock had reached before `start`. Below `start + offset`, the readings
    between were jumped over; above it, those between are shown again. `ahead` is its mirror: the earliest reading that
    the clock will show from `end` on. Below `end + offset`, the readings between will be shown again. Blocks cut spans
    without changing any clock: there both are the reading at the cut.
    """

    start: int
    end: int
    offset: int
    frontier: int
    ahead: int


class ZoneClock:
    """What the clocks of one zone show. Pure: a function of the zone's data, with a memory."""

    __slots__ = ("_blocks", "_zone")

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._blocks: dict[int, tuple[Span, ...]] = {}

    def span_at(self, instant: int) -> Span:
        """The span that holds this instant."""
        for span in self.block_at(instant):
            if instant < span.end:
                return span
        raise AssertionError("the spans of a block cover it")

    def block_at(self, instant: int) -> tuple[Span, ...]:
        """The spans of the block that holds this instant: few, in order, and the same whenever they are asked for."""
        number = instant >> BLOCK_BITS
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._find_spans(number << BLOCK_BITS, (number + 1) << BLOCK_BITS)
        return block

    def offset_at(self, instant: int) -> int:
        instant = min(max(instant, _FIRST_INSTANT), _LAST_INSTANT)
        offset = datetime.fromtimestamp(instant, self._zone).utcoffset()
        if offset is None:
            raise AssertionError("a ZoneInfo always knows its offset")
        return offset.days * 86_400 + offset.seconds

    def changes_between(self, after: int, upto: int) -> list[tuple[int, int]]:
        """Every (instant, new offset) in (after, upto]."""
        changes = []
        left, offset = after, self.offset_at(after)
        while left < upto:
            right = min(left + _SAMPLE_SECONDS, upto)
            while (ahead := self.offset_at(right)) != offset:
                change = self._first_other_offset(left, right, offset)
                left, offset = change, self.offset_at(change)
                changes.append((change, offset))
                if offset == ahead:
                    break
            left = right
        return changes

    def _first_other_offset(self, left: int, right: int, offset: int) -> int:
        while right - left > 1:
            middle = (left + right) // 2
            if self.offset_at(middle) == offset:
                left = middle
            else:
                right = middle
        return right

    def _find_spans(self, block_start: int, block_end: int) -> tuple[Span, ...]:
        start, stop = block_start - _LOOK_AROUND_SECONDS, block_end + _LOOK_AROUND_SECONDS
        offset = self.offset_at(start)
        stretches = []
        for change, next_offset in [*self.changes_between(start, stop - 1), (stop, offset)]:
            stretches.append((start, change, offset))
            start, offset = change, next_offset
        frontiers = accumulate((end + offset for _, end, offset in stretches), max)
        aheads = [*accumulate((start + offset for start, _, offset in reversed(stretches)), min)][::-1]
        first, last = stretches[0], stretches[-1]
        reached_before = [first[0] + first[2], *frontiers]
        shown_after = [*aheads[1:], last[1] + last[2]]
        return tuple(
            Span(
                max(start, block_start),
                min(end, block_end),
                offset,
                reached if start >= block_start else max(reached, block_start + offset),
                shown if end <= block_end else min(shown, block_end + offset),
            )
            for (start, end, offset), reached, shown in zip(stretches, reached_before, shown_after, strict=False)
            if end > block_start and start < block_end
        )


@cache
def clock_of(zone: str) -> ZoneClock:
    """The clock of a zone by its IANA name, shared by all schedules in it. Raises InvalidSchedule."""
    return ZoneClock(load_zone(zone))
