"""Schedules: sets of ticks, asked for what comes next, what came before, and how many lie between.

A schedule is a pure function of its specification, the zone data version and the tick engine version (invariant 8): no
clock, no chance, no host zone. Its ticks are UTC instants on whole milliseconds, strictly increasing; a schedule of
several parts is one set, in which parts that fall on one instant make one tick. `next_after` and `previous_before` are
strict, and no call lists what it can count. Schedules are values: equal when they say the same, so that jobs which
share one can share its computation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

from sexton.errors import InvalidSchedule
from sexton.progressions import Progression

TICK_ENGINE_VERSION: int = 1
"""Raised only when the arithmetic changes, so that equal specifications may mean other ticks (invariant 8)."""

MIN_INTERVAL = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Schedule(Protocol):
    """One set of ticks. Instants are timezone-aware; naive ones raise TypeError."""

    __slots__ = ()

    def next_after(self, instant: datetime) -> datetime | None:
        """The first tick strictly after `instant`; None when there is none ever (or within 100 years)."""
        ...

    def previous_before(self, instant: datetime) -> datetime | None:
        """The last tick strictly before `instant`; None when there is none."""
        ...

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        """How many ticks lie in (after, upto]; at most `limit`, if that is given."""
        ...

    def between(self, after: datetime, upto: datetime, limit: int | None = None) -> Iterator[datetime]:
        """The ticks in (after, upto], ascending, computed as they are taken; the first `limit`, if that is given."""
        taken = 0
        tick = self.next_after(after) if limit is None or limit > 0 else None
        while tick is not None and tick <= upto:
            yield tick
            taken += 1
            tick = self.next_after(tick) if taken != limit else None

    def newest_between(self, after: datetime, upto: datetime, count: int) -> list[datetime]:
        """The newest `count` ticks in (after, upto], ascending; older ones are not computed."""
        newest = list(islice(self._descending(after, upto), max(count, 0)))
        newest.reverse()
        return newest

    def contains(self, instant: datetime) -> bool:
        """Whether `instant` is a tick."""
        ...

    def _descending(self, after: datetime, upto: datetime) -> Iterator[datetime]:
        tick = upto if self.contains(upto) else self.previous_before(upto)
        while tick is not None and tick > after:
            yield tick
            tick = self.previous_before(tick)


@dataclass(frozen=True, slots=True)
class EverySchedule(Schedule):
    """Fixed elapsed time: every instant that is a whole number of intervals from the anchor, before it as well as
    after it (`start` says from when a job runs; the anchor only sets the phase)."""

    interval: timedelta
    anchor: datetime = EPOCH
    _interval_ms: int = field(init=False, repr=False, compare=False)
    _anchor_ms: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.interval < MIN_INTERVAL or self.interval % MILLISECOND:
            raise InvalidSchedule(
                f"every: {self.interval} is not at least 1s in whole milliseconds; write such as 'every: 15m'"
            )
        object.__setattr__(self, "_interval_ms", self.interval // MILLISECOND)
        object.__setattr__(self, "_anchor_ms", (on_grid(self.anchor, "anchor") - EPOCH) // MILLISECOND)

    @property
    def milliseconds(self) -> Progression:
        """The ticks in milliseconds since 1970."""
        return Progression(self._interval_ms, self._anchor_ms % self._interval_ms)

    def _steps(self, instant: datetime) -> int:
        """Whole intervals from the anchor to `instant`, rounded down."""
        return ((instant - EPOCH) // MILLISECOND - self._anchor_ms) // self._interval_ms

    def _at(self, steps: int) -> datetime | None:
        try:
            return EPOCH + timedelta(milliseconds=self._anchor_ms + steps * self._interval_ms)
        except OverflowError:
            return None

    def next_after(self, instant: datetime) -> datetime | None:
        return self._at(self._steps(instant) + 1)

    def previous_before(self, instant: datetime) -> datetime | None:
        before_ms = -((EPOCH - instant) // MILLISECOND) - 1  # the last millisecond before `instant`
        return self._at((before_ms - self._anchor_ms) // self._interval_ms)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = max(self._steps(upto) - self._steps(after), 0)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        milliseconds, rest = divmod(instant - EPOCH, MILLISECOND)
        return not rest and (milliseconds - self._anchor_ms) % self._interval_ms == 0


@dataclass(frozen=True, slots=True)
class InstantsSchedule(Schedule):
    """Listed instants, kept in order and once each."""

    instants: tuple[datetime, ...]

    def __post_init__(self) -> None:
        listed = {on_grid(instant, "at").astimezone(UTC) for instant in self.instants}
        object.__setattr__(self, "instants", tuple(sorted(listed)))

    def next_after(self, instant: datetime) -> datetime | None:
        position = bisect_right(self.instants, instant)
        return self.instants[position] if position < len(self.instants) else None

    def previous_before(self, instant: datetime) -> datetime | None:
        position = bisect_left(self.instants, instant)
        return self.instants[position - 1] if position else None

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = max(bisect_right(self.instants, upto) - bisect_right(self.instants, after), 0)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        position = bisect_left(self.instants, instant)
        return position < len(self.instants) and self.instants[position] == instant


@dataclass(frozen=True, slots=True)
class BoundedSchedule(Schedule):
    """`inner` from `start` on (a tick at `start` counts) and before `end` (a tick at `end` does not)."""

    inner: Schedule
    start: datetime | None
    end: datetime | None

    def next_after(self, instant: datetime) -> datetime | None:
        if self.start is not None and instant < self.start:
            tick = self.start if self.inner.contains(self.start) else self.inner.next_after(self.start)
        else:
            tick = self.inner.next_after(instant)
        return tick if tick is not None and self._is_inside(tick) else None

    def previous_before(self, instant: datetime) -> datetime | None:
        tick = self.inner.previous_before(instant if self.end is None else min(instant, self.end))
        return tick if tick is not None and self._is_inside(tick) else None

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        at_the_edges = 0
        if self.start is not None and after < self.start:
            after = self.start
            at_the_edges += after <= upto and self.contains(after)
        if self.end is not None and upto >= self.end:
            upto = self.end
            at_the_edges -= after < upto and self.inner.contains(upto)
        count = max(self.inner.count_between(after, upto) + at_the_edges, 0)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        return self._is_inside(instant) and self.inner.contains(instant)

    def _is_inside(self, instant: datetime) -> bool:
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)


def on_grid(instant: datetime, key: str) -> datetime:
    """The instant itself; raises InvalidSchedule where it has no offset or is finer than a millisecond."""
    if instant.tzinfo is None:
        raise InvalidSchedule(f"{key}: {instant.isoformat()} has no offset; write such as 2026-12-24T17:00:00Z")
    if instant.microsecond % 1000:
        raise InvalidSchedule(f"{key}: {instant.isoformat()} is finer than a millisecond; schedules fall on whole ones")
    return instant
