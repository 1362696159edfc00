"""A node's jobs as columns: about a hundred bytes a job where a value each would take five hundred.

A job is read out of it as the ``PlannedJob`` that was put in. What most jobs share (revisions with one schedule and one
beginning) is one object, made so by whoever reads the jobs; what few jobs have (pauses, a growing skip record) lies
apart.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sexton.decisions import GrowingSkip, Interval, PlannedJob, RevisionInForce
from sexton_scheduler.core.instant_table import instant_of, micros


@dataclass(frozen=True, slots=True)
class _Rarities:
    """What few jobs have."""

    pauses: tuple[Interval, ...]
    pause_detail: str
    growing: GrowingSkip | None
    is_quarantined: bool


_NOTHING = _Rarities((), "", None, False)


class JobTable(Mapping[int, PlannedJob]):
    """Jobs by id, in order of ids; ``at`` comes out in UTC."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._cursors = array("q")
        self._seqs = array("q")
        self._revisions: list[tuple[RevisionInForce, ...]] = []
        self._names: list[str | None] = []  # None: dropped, until the table is next put in order
        self._rarities: dict[int, _Rarities] = {}
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._ids) - self._dropped

    def __iter__(self) -> Iterator[int]:
        return (job_id for job_id, name in zip(self._ids, self._names, strict=True) if name is not None)

    def __contains__(self, job_id: object) -> bool:
        return isinstance(job_id, int) and self._find(job_id) is not None

    def __getitem__(self, job_id: int) -> PlannedJob:
        place = self._find(job_id)
        name = None if place is None else self._names[place]
        if place is None or name is None:
            raise KeyError(job_id)
        rare = self._rarities.get(job_id, _NOTHING)
        return PlannedJob(
            job_id,
            name,
            self._seqs[place],
            instant_of(self._cursors[place]),
            self._revisions[place],
            rare.pauses,
            rare.pause_detail,
            rare.growing,
            rare.is_quarantined,
        )

    def put(self, job: PlannedJob) -> None:
        """The job as it stands from now on."""
        ids = self._ids
        place = len(ids) if not ids or job.job_id > ids[-1] else bisect_left(ids, job.job_id)
        if place < len(ids) and ids[place] == job.job_id:
            self._dropped -= self._names[place] is None
            self._cursors[place] = micros(job.at)
            self._seqs[place] = job.seq
            self._revisions[place] = job.revisions
            self._names[place] = job.name
        else:
            ids.insert(place, job.job_id)
            self._cursors.insert(place, micros(job.at))
            self._seqs.insert(place, job.seq)
            self._revisions.insert(place, job.revisions)
            self._names.insert(place, job.name)
        if job.pauses or job.pause_detail or job.growing is not None or job.is_quarantined:
            rare = _Rarities(job.pauses, job.pause_detail, job.growing, job.is_quarantined)
            self._rarities[job.job_id] = rare
        elif self._rarities:
            self._rarities.pop(job.job_id, None)

    def drop(self, job_id: int) -> None:
        """The table does not hold the job; it need not have."""
        place = self._find(job_id)
        if place is None:
            return
        self._names[place] = None
        self._revisions[place] = ()
        self._rarities.pop(job_id, None)
        self._dropped += 1
        if self._dropped * 2 > len(self._ids) + 1000:
            self._forget_dropped()

    def _find(self, job_id: int) -> int | None:
        place = bisect_left(self._ids, job_id)
        if place < len(self._ids) and self._ids[place] == job_id and self._names[place] is not None:
            return place
        return None

    def _forget_dropped(self) -> None:
        kept = [place for place, name in enumerate(self._names) if name is not None]
        self._ids = array("q", (self._ids[place] for place in kept))
        self._cursors = array("q", (self._cursors[place] for place in kept))
        self._seqs = array("q", (self._seqs[place] for place in kept))
        self._revisions = [self._revisions[place] for place in kept]
        self._names = [self._names[place] for place in kept]
        self._dropped = 0
