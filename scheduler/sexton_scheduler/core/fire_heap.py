"""A heap of ``(tick, job)`` in which each job stands at most once.

Entries that were replaced or removed stay in the heap until they surface; what
counts is the dictionary beside it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime


class FireHeap:
    """The next tick of each job, earliest first; equal ticks by job id."""

    def __init__(self) -> None:
        self._entries: list[tuple[datetime, int]] = []
        self._next: dict[int, datetime] = {}

    def __len__(self) -> int:
        return len(self._next)

    def __contains__(self, job_id: int) -> bool:
        return job_id in self._next

    def push(self, job_id: int, tick: datetime) -> None:
        """``tick`` is the job's next one from now on, whatever stood there."""
        if self._next.get(job_id) == tick:
            return
        self._next[job_id] = tick
        heapq.heappush(self._entries, (tick, job_id))
        if len(self._entries) > 2 * len(self._next) + 1000:
            self.rebuild(self._next.items())

    def place(self, job_id: int, tick: datetime) -> None:
        """As ``push``, for many jobs at once: the heap is in order again after ``settle``."""
        self._next[job_id] = tick

    def settle(self) -> None:
        """Put the heap in order after ``place``."""
        self.rebuild(self._next.items())

    def rebuild(self, ticks: Iterable[tuple[int, datetime]]) -> None:
        """These jobs and no others, in one go."""
        self._next = dict(ticks)
        self._entries = [(tick, job_id) for job_id, tick in self._next.items()]
        heapq.heapify(self._entries)

    def remove(self, job_id: int) -> None:
        """The job has no next tick; it need not have had one."""
        self._next.pop(job_id, None)

    def peek(self) -> datetime | None:
        """The earliest tick of all."""
        while self._entries:
            tick, job_id = self._entries[0]
            if self._next.get(job_id) == tick:
                return tick
            heapq.heappop(self._entries)
        return None

    def pop(self, upto: datetime) -> int | None:
        """Take out the job with the earliest tick, if that is not after ``upto``."""
        tick = self.peek()
        if tick is None or tick > upto:
            return None
        _, job_id = heapq.heappop(self._entries)
        del self._next[job_id]
        return job_id

    def due(self, upto: datetime) -> list[int]:
        """The jobs whose next tick is not after ``upto``, earliest first; they stay in."""
        return [job_id for _, job_id in sorted((tick, job_id) for job_id, tick in self._next.items() if tick <= upto)]
