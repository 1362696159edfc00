"""Instants by job id in sixteen bytes each: two arrays, the ids in order.

A node holds a million of them. Ids only grow where jobs are made, so that a new one is appended; where one belongs
between others, what lies behind it moves up once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
ABSENT = -(2**63)
"""Stands for no instant; it is below every instant that there is."""


def micros(instant: datetime) -> int:
    """Whole microseconds since the epoch; the instant's own precision."""
    return (instant - _EPOCH) // _MICROSECOND


def instant_of(number: int) -> datetime:
    """The instant of ``micros``, in UTC."""
    return _EPOCH + timedelta(microseconds=number)


class InstantTable:
    """Microseconds by job id; a job without is ``ABSENT``."""

    __slots__ = ("_count", "_ids", "_instants")

    def __init__(self) -> None:
        self._ids = array("q")
        self._instants = array("q")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, job_id: int) -> int:
        place = bisect_left(self._ids, job_id)
        return self._instants[place] if place < len(self._ids) and self._ids[place] == job_id else ABSENT

    def put(self, job_id: int, number: int) -> int:
        """The job's instant is ``number`` (not ``ABSENT``) from now on; returns what it was."""
        ids = self._ids
        place = len(ids) if not ids or job_id > ids[-1] else bisect_left(ids, job_id)
        if place < len(ids) and ids[place] == job_id:
            before = self._instants[place]
            self._instants[place] = number
        else:
            before = ABSENT
            ids.insert(place, job_id)
            self._instants.insert(place, number)
        self._count += before == ABSENT
        return before

    def drop(self, job_id: int) -> None:
        """The job has no instant; it need not have had one."""
        ids = self._ids
        place = bisect_left(ids, job_id)
        if place == len(ids) or ids[place] != job_id or self._instants[place] == ABSENT:
            return
        self._instants[place] = ABSENT
        self._count -= 1
        self._tidy()

    def items(self) -> Iterator[tuple[int, int]]:
        """Every job that has an instant, in order of ids."""
        return ((job_id, number) for job_id, number in zip(self._ids, self._instants, strict=True) if number != ABSENT)

    def _tidy(self) -> None:
        """Give back the places of jobs without an instant, once they are the larger part."""
        if self._count * 2 + 1000 >= len(self._ids):
            return
        kept = list(self.items())
        self._ids = array("q", (job_id for job_id, _ in kept))
        self._instants = array("q", (number for _, number in kept))
