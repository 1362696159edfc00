"""The ticks of one job between two instants, whatever revisions and pauses lie between.

A job's time line is cut into stretches: half-open intervals ``(after, upto]`` in
which one revision is in force and the job is either paused or not. Within a
stretch the ticks are the revision's schedule, asked by arithmetic: what is not
taken is not computed. Where no revision is in force there is no stretch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sexton.decisions import PlannedJob, RevisionInForce

MICROSECOND = timedelta(microseconds=1)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stretch:
    """``(after, upto]`` of one revision, paused or not."""

    revision: RevisionInForce
    after: datetime
    upto: datetime
    is_paused: bool

    def ticks(self, after: datetime, upto: datetime) -> Iterator[datetime]:
        """The ticks in ``(after, upto]`` that lie in this stretch too, ascending, computed as they are taken."""
        return self.revision.schedule.between(max(after, self.after), min(upto, self.upto))

    def count(self, after: datetime, upto: datetime) -> int:
        """How many ticks lie in ``(after, upto]`` of this stretch."""
        after, upto = max(after, self.after), min(upto, self.upto)
        return self.revision.schedule.count_between(after, upto) if after < upto else 0

    def newest(self, after: datetime, upto: datetime, count: int) -> list[datetime]:
        """The newest ``count`` ticks in ``(after, upto]`` of this stretch, ascending."""
        after, upto = max(after, self.after), min(upto, self.upto)
        return self.revision.schedule.newest_between(after, upto, count) if after < upto else []


def stretches(job: PlannedJob, after: datetime, upto: datetime) -> Iterator[Stretch]:
    """The stretches of ``(after, upto]``, oldest first; none is empty."""
    for revision in job.revisions:
        start = max(after, revision.since)
        end = upto if revision.until is None else min(upto, revision.until)
        position = start
        for pause in job.pauses:
            paused_from = max(position, pause.since)
            paused_until = end if pause.until is None else min(end, pause.until)
            if paused_from >= paused_until:
                continue
            if position < paused_from:
                yield Stretch(revision, position, paused_from, is_paused=False)
            yield Stretch(revision, paused_from, paused_until, is_paused=True)
            position = paused_until
        if position < end:
            yield Stretch(revision, position, end, is_paused=False)


def next_tick(job: PlannedJob, after: datetime) -> tuple[datetime, bool] | None:
    """The job's first tick after ``after``, and whether it lies in a pause; None when there is none."""
    for stretch in stretches(job, after, END_OF_TIME):
        tick = stretch.revision.schedule.next_after(stretch.after)
        if tick is not None and tick <= stretch.upto:
            return tick, stretch.is_paused
    return None
