"""In which turn the runs begin that wait in a worker: by priority, and those of one priority as they came.

A worker takes short runs ahead, some hundreds of them: an urgent one does not wait behind those.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeVar

_CLASS = 1 << 48  # more runs than ever come to one worker


class Waiting(Protocol):
    """``arrival``: its turn."""

    @property
    def arrival(self) -> int: ...


_W = TypeVar("_W", bound=Waiting)


def turn(count: int, priority: int) -> int:
    """The turn of the ``count``-th run that came; the lowest is the next."""
    return count - priority * _CLASS


def enter(line: deque[_W], one: _W) -> None:
    """Put it behind those whose turn is sooner."""
    if not line or line[-1].arrival <= one.arrival:
        line.append(one)  # as nearly always
        return
    place = next(number for number, other in enumerate(line) if other.arrival > one.arrival)
    line.insert(place, one)
