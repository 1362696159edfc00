"""Jobs as the leader reads them: `JobRow` values from the rows that both databases give, instants already decoded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sexton.decisions import GrowingSkip, Interval, SkipReason
from sexton.store.protocol import JobRow, RevisionRow


class RevisionRead(NamedTuple):
    """A job joined with one of its revisions in force after the cursor; ordered by job, then ``since``."""

    job_id: int
    name: str
    seq: int
    at: datetime
    paused_by: str | None
    pause_reason: str | None
    is_quarantined: bool
    revision: int
    schedule: str
    firing: str
    since: datetime
    until: datetime | None


class PauseRead(NamedTuple):
    """A pause that reaches beyond the cursor; ordered by job, then ``since``."""

    job_id: int
    since: datetime
    until: datetime | None
    who: str
    why: str


class GrowingRead(NamedTuple):
    """A paused stretch that ends at the cursor."""

    job_id: int
    after: datetime
    ticks: int


def job_rows(
    revisions: Iterable[RevisionRead], pauses: Iterable[PauseRead], growing: Iterable[GrowingRead]
) -> tuple[JobRow, ...]:
    """One ``JobRow`` a job, in the order of ``revisions``; equal texts are one object."""
    pauses_of: dict[int, list[Interval]] = {}
    for pause in pauses:
        pauses_of.setdefault(pause.job_id, []).append(
            Interval(pause.since, pause.until, pause_detail(pause.who, pause.why))
        )
    growing_of = {one.job_id: GrowingSkip(one.after, one.ticks, SkipReason.PAUSED) for one in growing}
    texts: dict[str, str] = {}
    by_job: dict[int, tuple[RevisionRead, list[RevisionRow]]] = {}
    for read in revisions:
        row = RevisionRow(
            read.revision,
            texts.setdefault(read.schedule, read.schedule),
            texts.setdefault(read.firing, read.firing),
            read.since,
            read.until,
        )
        known = by_job.get(read.job_id)
        if known is None:
            by_job[read.job_id] = (read, [row])
        else:
            known[1].append(row)
    return tuple(
        JobRow(
            job_id=job_id,
            name=read.name,
            seq=read.seq,
            at=read.at,
            revisions=tuple(rows),
            pauses=tuple(pauses_of.get(job_id, ())),
            pause_detail=pause_detail(read.paused_by, read.pause_reason),
            growing=growing_of.get(job_id),
            is_quarantined=read.is_quarantined,
        )
        for job_id, (read, rows) in by_job.items()
    )


def pause_detail(who: str | None, why: str | None) -> str:
    """Who paused a job and why, for the skip record of the pause."""
    if who is None:
        return ""
    return f"{who}: {why}" if why else who
