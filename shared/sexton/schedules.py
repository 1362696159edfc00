"""Schedules: sets of ticks, asked for what comes next, what came before, and how many lie between.

A schedule is a pure function of its specification, the zone data version and the tick engine version (invariant 8): no
clock, no chance, no host zone. Its ticks are UTC instants on whole milliseconds, strictly increasing; a schedule of
several parts is one set, in which parts that fall on one instant make one tick. `next_after` and `previous_before` are
strict, and no call lists what it can count. Schedules are values: equal when they say the same, so that jobs which
share one can share its computation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

from sexton.cron_expression import CronExpression
from sexton.cron_unions import count_together
from sexton.errors import InvalidSchedule
from sexton.progressions import Progression
from sexton.wall_clock_ticks import ChangeRule, GapRule, OverlapRule, WallClockTicks
from sexton.zone_clock import clock_of

TICK_ENGINE_VERSION: int = 1
"""Raised only when the arithmetic changes, so that equal specifications may mean other ticks (invariant 8)."""

MIN_INTERVAL = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_SECONDS = 86_400
_MAX_INTERVAL_MS = 36_525 * _DAY_SECONDS * 1_000


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

    def between(self, after: datetime, upto: datetime) -> Iterator[datetime]:
        """The ticks in (after, upto], ascending, computed as they are taken."""
        tick = self.next_after(after)
        while tick is not None and tick <= upto:
            yield tick
            tick = self.next_after(tick)

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


def _seconds_floor(instant: datetime) -> int:
    since = instant - _EPOCH
    return since.days * _DAY_SECONDS + since.seconds


def _seconds_ceiling(instant: datetime) -> int:
    since = instant - _EPOCH
    return since.days * _DAY_SECONDS + since.seconds + (since.microseconds > 0)


def _from_seconds(seconds: int) -> datetime:
    return _EPOCH + timedelta(0, seconds)


@dataclass(frozen=True, slots=True)
class CronSchedule(Schedule):
    """A cron expression on the wall clock of a zone. ``gap`` and ``overlap`` choose for fixed times (R2) alone; an
    expression that follows elapsed time (R1) takes no other than the defaults (InvalidSchedule)."""

    cron: CronExpression
    zone: str
    gap: GapRule = GapRule.SHIFT
    overlap: OverlapRule = OverlapRule.FIRST
    _ticks: WallClockTicks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.cron.follows_elapsed_time and (self.gap, self.overlap) != (GapRule.SHIFT, OverlapRule.FIRST):
            raise InvalidSchedule(
                f"cron expression {self.cron.text!r} follows elapsed time, because its minute or hour field starts "
                "with *: dst has no choice there; remove dst, or list the minutes and hours (such as 0-23)"
            )
        object.__setattr__(self, "_ticks", WallClockTicks(self.cron.readings, self.rule, clock_of(self.zone)))

    @property
    def rule(self) -> ChangeRule:
        return ChangeRule(self.gap, self.overlap, self.cron.follows_elapsed_time)

    def next_after(self, instant: datetime) -> datetime | None:
        tick = self._ticks.first_from(_seconds_floor(instant) + 1)
        return None if tick is None else _from_seconds(tick)

    def previous_before(self, instant: datetime) -> datetime | None:
        tick = self._ticks.last_upto(_seconds_ceiling(instant) - 1)
        return None if tick is None else _from_seconds(tick)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = self._ticks.count(_seconds_floor(after) + 1, _seconds_floor(upto) + 1)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        return not instant.microsecond and self._ticks.contains(_seconds_floor(instant))


@dataclass(frozen=True, slots=True)
class EverySchedule(Schedule):
    """Fixed elapsed time: every instant that is a whole number of intervals from the anchor, before it as well as
    after it (`start` says from when a job runs; the anchor only sets the phase)."""

    interval: timedelta
    anchor: datetime = _EPOCH
    _interval_ms: int = field(init=False, repr=False, compare=False)
    _anchor_ms: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.interval < MIN_INTERVAL or self.interval % _MILLISECOND:
            raise InvalidSchedule(
                f"every: {self.interval} is not at least 1s in whole milliseconds; write such as 'every: 15m'"
            )
        object.__setattr__(self, "_interval_ms", self.interval // _MILLISECOND)
        object.__setattr__(self, "_anchor_ms", (_on_grid(self.anchor, "anchor") - _EPOCH) // _MILLISECOND)

    @property
    def milliseconds(self) -> Progression:
        """The ticks in milliseconds since 1970."""
        return Progression(self._interval_ms, self._anchor_ms % self._interval_ms)

    def _steps(self, instant: datetime) -> int:
        """Whole intervals from the anchor to `instant`, rounded down."""
        return ((instant - _EPOCH) // _MILLISECOND - self._anchor_ms) // self._interval_ms

    def _at(self, steps: int) -> datetime | None:
        try:
            return _EPOCH + timedelta(milliseconds=self._anchor_ms + steps * self._interval_ms)
        except OverflowError:
            return None

    def next_after(self, instant: datetime) -> datetime | None:
        return self._at(self._steps(instant) + 1)

    def previous_before(self, instant: datetime) -> datetime | None:
        before_ms = -((_EPOCH - instant) // _MILLISECOND) - 1  # the last millisecond before `instant`
        return self._at((before_ms - self._anchor_ms) // self._interval_ms)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = max(self._steps(upto) - self._steps(after), 0)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        milliseconds, rest = divmod(instant - _EPOCH, _MILLISECOND)
        return not rest and (milliseconds - self._anchor_ms) % self._interval_ms == 0


@dataclass(frozen=True, slots=True)
class InstantsSchedule(Schedule):
    """Listed instants, kept in order and once each."""

    instants: tuple[datetime, ...]

    def __post_init__(self) -> None:
        listed = {_on_grid(instant, "at").astimezone(UTC) for instant in self.instants}
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
class UnionSchedule(Schedule):
    """Several parts as one set of ticks."""

    parts: tuple[Schedule, ...]

    def next_after(self, instant: datetime) -> datetime | None:
        ticks = [tick for part in self.parts if (tick := part.next_after(instant)) is not None]
        return min(ticks, default=None)

    def previous_before(self, instant: datetime) -> datetime | None:
        ticks = [tick for part in self.parts if (tick := part.previous_before(instant)) is not None]
        return max(ticks, default=None)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        """Cron parts of one zone and intervals are counted together by arithmetic. Where other parts are mixed in
        (listed instants, a second zone), the most frequent kind is counted, and of the others the ticks that it lacks,
        one by one."""
        groups = self._groups()
        counts = [_count_group(group, after, upto) for group in groups]
        by_count = sorted(range(len(groups)), key=lambda i: counts[i], reverse=True)
        total = max(counts, default=0)
        counted = [part for i in by_count[:1] for part in groups[i]]
        for i in by_count[1:]:
            for tick in UnionSchedule(groups[i]).between(after, upto):
                if limit is not None and total >= limit:
                    return limit
                total += not any(part.contains(tick) for part in counted)
            counted.extend(groups[i])
        return total if limit is None else min(total, limit)

    def _groups(self) -> list[tuple[Schedule, ...]]:
        """The parts, put together as far as they can be counted together."""
        crons: dict[str, list[Schedule]] = {}
        intervals: list[Schedule] = []
        others: list[Schedule] = []
        for part in self.parts:
            if isinstance(part, CronSchedule):
                crons.setdefault(part.zone, []).append(part)
            elif isinstance(part, EverySchedule):
                intervals.append(part)
            else:
                others.append(part)
        together = list(crons.values()) or [[]]
        together[0].extend(intervals)
        return [tuple(group) for group in [*together, *([part] for part in others)] if group]

    def contains(self, instant: datetime) -> bool:
        return any(part.contains(instant) for part in self.parts)


def _count_group(group: tuple[Schedule, ...], after: datetime, upto: datetime) -> int:
    if len(group) == 1:
        return group[0].count_between(after, upto)
    crons = [part for part in group if isinstance(part, CronSchedule)]
    intervals = [part.milliseconds for part in group if isinstance(part, EverySchedule)]
    clock = clock_of(crons[0].zone if crons else "UTC")
    start, stop = ((instant - _EPOCH) // _MILLISECOND + 1 for instant in (after, upto))
    return count_together([(part.cron.readings, part.rule) for part in crons], intervals, clock, start, stop)


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


def schedule_from_spec(spec: Mapping[str, object]) -> Schedule:
    """The schedule that a revision's stored specification describes.

    `{"parts": [{"cron": "0 2 * * *"} | {"every_ms": 900000, "anchor": "1970-01-01T00:00:00Z"} | {"at": [...]}],
    "timezone": "Europe/Berlin", "start": null, "end": null, "hash_seed": "name"}`; instants are ISO 8601 with offset,
    `hash_seed` matters only where a cron part uses H. Raises InvalidSchedule.
    """
    parts = spec.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise InvalidSchedule("schedule has no parts; give at least one of cron, every or at")
    zone, seed = str(spec.get("timezone") or "UTC"), str(spec.get("hash_seed") or "")
    clock_of(zone)  # a wrong zone is refused even where no part asks for it
    schedules = tuple(_part_from_spec(part, zone, seed) for part in parts)
    schedule = schedules[0] if len(schedules) == 1 else UnionSchedule(schedules)
    start, end = _optional_instant(spec, "start"), _optional_instant(spec, "end")
    if start is None and end is None:
        return schedule
    if start is not None and end is not None and start >= end:
        raise InvalidSchedule(
            f"schedule ends at {end.isoformat()}, not after its start {start.isoformat()}: it never fires"
        )
    return BoundedSchedule(schedule, start, end)


def _part_from_spec(part: object, zone: str, seed: str) -> Schedule:
    if not isinstance(part, Mapping):
        raise InvalidSchedule(f"schedule part {part!r} is not a mapping; give cron, every or at")
    if "cron" in part:
        return CronSchedule(CronExpression.parse(str(part["cron"]), hash_seed=seed), zone)
    if "every_ms" in part:
        anchor = _instant(part["anchor"], "anchor") if part.get("anchor") else _EPOCH
        return EverySchedule(_milliseconds(part["every_ms"]), anchor)
    if "at" in part:
        listed = part["at"]
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise InvalidSchedule(f"at: {listed!r} is not a list of instants; write such as [2026-12-24T17:00:00Z]")
        return InstantsSchedule(tuple(_instant(text, "at") for text in listed))
    raise InvalidSchedule(f"schedule part with {', '.join(map(str, part)) or 'no keys'} is not one of cron, every, at")


def _milliseconds(value: object) -> timedelta:
    if not isinstance(value, int) or abs(value) > _MAX_INTERVAL_MS:
        raise InvalidSchedule(f"every_ms: {value!r} is not a whole number of milliseconds up to 100 years")
    return timedelta(milliseconds=value)


def _optional_instant(spec: Mapping[str, object], key: str) -> datetime | None:
    value = spec.get(key)
    return None if value is None else _instant(value, key)


def _instant(text: object, key: str) -> datetime:
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError:
        raise InvalidSchedule(f"{key}: {text!r} is not an instant; write such as 2026-12-24T17:00:00Z") from None
    return _on_grid(instant, key).astimezone(UTC)


def _on_grid(instant: datetime, key: str) -> datetime:
    if instant.tzinfo is None:
        raise InvalidSchedule(f"{key}: {instant.isoformat()} has no offset; write such as 2026-12-24T17:00:00Z")
    if instant.microsecond % 1000:
        raise InvalidSchedule(f"{key}: {instant.isoformat()} is finer than a millisecond; schedules fall on whole ones")
    return instant
