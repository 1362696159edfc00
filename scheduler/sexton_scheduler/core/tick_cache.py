"""Next ticks, computed once for all jobs that share a schedule.

A window is a run of consecutive ticks of one schedule: a job whose cursor lies in
it gets its next tick by bisection. Schedules are told apart by identity: equal
texts are read into one object by whoever reads the jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime

from sexton.schedules import Schedule

_WINDOW = 2048
_REACH = 64


class EndlessSchedule(ValueError):
    """A schedule whose next tick is not after the instant it was asked for: planning it would never end."""


class _Window:
    """All ticks of a schedule in ``(base, ticks[-1]]``."""

    __slots__ = ("_base", "_is_last", "_schedule", "_ticks")

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._base: datetime | None = None
        self._ticks: list[datetime] = []
        self._is_last = False  # there is no tick after the window

    def next_after(self, instant: datetime) -> datetime | None:
        ticks = self._ticks
        if self._base is not None and instant >= self._base:
            if ticks and instant < ticks[-1]:
                return ticks[bisect_right(ticks, instant)]
            if self._is_last:
                return None
            if ticks and instant == ticks[-1]:
                return self._extend(instant)
        return self._restart(instant)

    def _extend(self, instant: datetime) -> datetime | None:
        tick = self._ask(instant)
        if tick is None:
            self._is_last = True
            return None
        if len(self._ticks) >= _WINDOW:
            self._base = self._ticks[_WINDOW // 2 - 1]
            del self._ticks[: _WINDOW // 2]
        self._ticks.append(tick)
        return tick

    def _restart(self, instant: datetime) -> datetime | None:
        tick = self._ask(instant)
        if self._base is None or instant > self._base:
            self._base = instant
            self._ticks = [] if tick is None else [tick]
            self._is_last = tick is None
        elif tick is not None:
            self._reach_back(instant, tick, self._base)
        return tick

    def _reach_back(self, instant: datetime, tick: datetime, base: datetime) -> None:
        """Begin the window at ``instant`` instead, where few ticks lie between: cursors are near one another."""
        between: list[datetime] = []
        following: datetime | None = tick
        while following is not None and following <= base:
            between.append(following)
            if len(between) > _REACH:
                return
            following = self._ask(following)
        self._ticks[:0] = between
        self._base = instant

    def _ask(self, instant: datetime) -> datetime | None:
        tick = self._schedule.next_after(instant)
        if tick is not None and tick <= instant:
            raise EndlessSchedule(f"the schedule's next tick after {instant.isoformat()} is {tick.isoformat()}")
        return tick


class TickCache:
    """The windows of all schedules in use."""

    def __init__(self) -> None:
        self._windows: dict[int, tuple[Schedule, _Window]] = {}

    def next_after(self, schedule: Schedule, instant: datetime) -> datetime | None:
        """What ``schedule.next_after`` says; raises what it raises, and ``EndlessSchedule``."""
        key = id(schedule)
        entry = self._windows.get(key)
        if entry is None:
            entry = self._windows[key] = (schedule, _Window(schedule))  # the schedule is kept: its id stays its own
        return entry[1].next_after(instant)

    def __len__(self) -> int:
        return len(self._windows)

    def clear(self) -> None:
        """Forget all windows; they are computed again when asked for."""
        self._windows.clear()
