"""All command runs of a worker: over one zygote, and over a second where there is much to start.

A zygote waits for each command that it starts until its program is there; on a machine that is busy that is mostly
waiting for a processor, and two zygotes wait side by side. The second is not started before it is of use.
"""

from __future__ import annotations

from collections.abc import Callable

from sexton_worker.core.runs import StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.command_runs import CommandRuns

SECOND_FROM = 12  # runs in the hands of the first, most of which wait


class CommandLanes:
    """As one ``CommandRuns``, whose methods it has; ``make`` makes each of them. All methods but ``close`` under the
    lock."""

    def __init__(self, make: Callable[[], CommandRuns]) -> None:
        self._first = make()
        self._second: CommandRuns | None = None
        self._make = make
        self._next = self._first
        self.zygote = self._first.zygote  # which watches over Python processes too

    def _lanes(self) -> tuple[CommandRuns, ...]:
        return (self._first,) if self._second is None else (self._first, self._second)

    def add(self, order: RunOrder, arrival: int) -> None:
        for lane in self._lanes():
            lane.give_way(arrival)
        self._lane_for_one().add(order, arrival)

    def _lane_for_one(self) -> CommandRuns:
        if len(self._first) < SECOND_FROM:
            return self._first
        if self._second is None:
            try:
                self._second = self._make()
            except (OSError, RuntimeError):  # no descriptor, no thread: one lane does it too
                return self._first
        return min(self._first, self._second, key=len)

    def next_arrival(self) -> int | None:
        found = [(arrival, lane) for lane in self._lanes() if (arrival := lane.next_arrival()) is not None]
        if not found:
            return None
        arrival, self._next = min(found, key=lambda one: one[0])
        return arrival

    def begin_next(self) -> None:
        """After ``next_arrival`` has told of it."""
        self._next.begin_next()

    def send_ahead(self, before: int | None) -> None:
        """None is overtaken by one that came after it and waits for the other zygote."""
        lanes = self._lanes()
        for lane in lanes:
            waiting = [one for other in lanes if other is not lane and (one := other.first_waiting) is not None]
            lane.send_ahead(min([*waiting, *([] if before is None else [before])], default=None))

    def flush(self) -> None:
        for lane in self._lanes():
            lane.flush()

    def take_waiting(self) -> list[int]:
        return [token for lane in self._lanes() for token in lane.take_waiting()]

    def stop(self, token: int, reason: StopReason) -> bool:
        return any(lane.stop(token, reason) for lane in self._lanes())

    def look(self, token: int) -> bool:
        return any(lane.look(token) for lane in self._lanes())

    def close(self) -> None:
        for lane in self._lanes():
            lane.close()
