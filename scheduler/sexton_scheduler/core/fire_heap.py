"""A heap of ``(tick, job)`` in which each job stands at most once.

An entry is one integer, the tick's microseconds above the job's id: a million of them are a third of what tuples take,
and are compared twice as fast. Entries that were replaced or removed stay in the heap until they surface; what counts
is the table beside it.
"""

from __future__ import annotations

import heapq
from datetime import datetime

from sexton_scheduler.core.instant_table import ABSENT, InstantTable, instant_of, micros

_SHIFT = 63
_JOB = (1 << _SHIFT) - 1


class FireHeap:
    """The next tick of each job, earliest first; equal ticks by job id."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._next = InstantTable()

    def __len__(self) -> int:
        return len(self._next)

    def __contains__(self, job_id: int) -> bool:
        return self._next.get(job_id) != ABSENT

    def push(self, job_id: int, tick: datetime) -> None:
        """``tick`` is the job's next one from now on, whatever stood there."""
        number = micros(tick)
        if self._next.put(job_id, number) == number:
            return
        heapq.heappush(self._entries, number << _SHIFT | job_id)
        if len(self._entries) > 2 * len(self._next) + 1000:
            self.settle()

    def place(self, job_id: int, tick: datetime) -> None:
        """As ``push``, for many jobs at once: the heap is in order again after ``settle``."""
        self._next.put(job_id, micros(tick))

    def settle(self) -> None:
        """Put the heap in order after ``place``: one entry for each job."""
        self._entries.clear()  # first, so that the old ones and the new ones are never there together
        self._entries.extend(number << _SHIFT | job_id for job_id, number in self._next.items())
        heapq.heapify(self._entries)

    def remove(self, job_id: int) -> None:
        """The job has no next tick; it need not have had one."""
        self._next.drop(job_id)

    def peek(self) -> datetime | None:
        """The earliest tick of all."""
        entry = self._first()
        return None if entry is None else instant_of(entry >> _SHIFT)

    def pop(self, upto: datetime) -> int | None:
        """Take out the job with the earliest tick, if that is not after ``upto``."""
        entry = self._first()
        if entry is None or entry >> _SHIFT > micros(upto):
            return None
        heapq.heappop(self._entries)
        job_id = entry & _JOB
        self._next.drop(job_id)
        return job_id

    def due(self, upto: datetime) -> list[int]:
        """The jobs whose next tick is not after ``upto``, earliest first; they stay in.

        Costs what is due, not what is there: below an entry that is not due, none is.
        """
        entries, last = self._entries, micros(upto)
        found: set[int] = set()
        places = [0]
        while places:
            place = places.pop()
            if place < len(entries) and entries[place] >> _SHIFT <= last:
                if self._is_valid(entries[place]):
                    found.add(entries[place])
                places += (2 * place + 1, 2 * place + 2)
        return [entry & _JOB for entry in sorted(found)]

    def _first(self) -> int | None:
        entries = self._entries
        while entries:
            if self._is_valid(entries[0]):
                return entries[0]
            heapq.heappop(entries)
        return None

    def _is_valid(self, entry: int) -> bool:
        return self._next.get(entry & _JOB) == entry >> _SHIFT
