"""What a takeover costs: the difference between the jobs a follower kept warm and the cursors as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sexton.decisions import PlannedJob


@dataclass(frozen=True, slots=True)
class Reconciled:
    """``advanced``: known jobs whose cursor alone has moved. ``to_read``: edited or paused, to be read anew."""

    advanced: list[PlannedJob]
    to_read: list[int]


def reconcile(warm: Mapping[int, PlannedJob], cursors: Iterable[tuple[int, int, datetime]]) -> Reconciled:
    """Compare warm jobs with ``(job_id, seq, at)`` rows; jobs that have not changed appear in neither list.

    The caller has read all edits just before, so that a cursor without a job belongs to one retired or in
    quarantine. A job with pauses or a growing skip record is read anew whenever its cursor moved: the record that
    grew is known to the database alone.
    """
    advanced: list[PlannedJob] = []
    to_read: list[int] = []
    for job_id, seq, at in cursors:
        job = warm.get(job_id)
        if job is None:
            continue
        if job.seq != seq:
            to_read.append(job_id)
        elif job.at != at:
            if job.pauses or job.growing is not None:
                to_read.append(job_id)
            else:
                advanced.append(at_cursor(job, at))
    return Reconciled(advanced, to_read)


def at_cursor(job: PlannedJob, at: datetime) -> PlannedJob:
    """The job with its cursor at ``at`` and without the revisions and pauses that ended there or before."""
    revisions = job.revisions
    if revisions and revisions[0].until is not None:
        revisions = tuple(r for r in revisions if r.until is None or r.until > at)
    pauses = job.pauses
    if pauses:
        pauses = tuple(pause for pause in pauses if pause.until is None or pause.until > at)
    return PlannedJob(job.job_id, job.name, job.seq, at, revisions, pauses, job.pause_detail)
