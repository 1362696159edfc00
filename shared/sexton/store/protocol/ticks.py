"""The leader's ledger: jobs and cursors as stored, and the writes that decide ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.claims import Origin
    from sexton.decisions import CommitResult, GrowingSkip, Interval, LatePlan, TickBatch, UnfinishedPass


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One revision in force after the job's cursor; texts as ``JobDefinition`` wrote them."""

    revision: int
    schedule: str
    firing: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as stored: what ``PlannedJob`` is made from."""

    job_id: int
    name: str
    seq: int
    at: datetime
    revisions: tuple[RevisionRow, ...]  # oldest first
    pauses: tuple[Interval, ...]
    pause_detail: str
    growing: GrowingSkip | None
    is_quarantined: bool


@dataclass(frozen=True, slots=True)
class JobsRead:
    """Jobs that changed after a mark, and the new mark. ``gone``: retired and fully decided, or unknown now."""

    jobs: tuple[JobRow, ...]
    gone: tuple[int, ...]
    mark: int


@dataclass(frozen=True, slots=True)
class JobsPage:
    """Jobs of neighbouring ids. ``upto``: the id after which the next page begins; None after the last one.

    ``mark``: as in ``JobsRead``; that of the first page of all is the one to go on from.
    """

    jobs: tuple[JobRow, ...]
    upto: int | None
    mark: int


@dataclass(frozen=True, slots=True)
class CursorsRead:
    """``(job_id, seq, at)`` of cursors that were written after a mark, in no order, and the new mark."""

    rows: Sequence[tuple[int, int, datetime]]
    mark: int


@dataclass(frozen=True, slots=True)
class LateClaimRow:
    scheduled_at: datetime
    origin: Origin
    jitter: timedelta
    revision: int


@dataclass(frozen=True, slots=True)
class LateJobRow:
    """A job with late claims, its row, and the revision (text) of the newest of them."""

    job: JobRow
    revision: RevisionRow
    claims: tuple[LateClaimRow, ...]  # oldest first


class TickStore(Protocol):
    """The leader's writes. All are conditional on the term in the same statement (invariant 3)."""

    def load_jobs(self, changed_after: int | None = None) -> JobsRead:
        """All jobs that can have undecided ticks (None), or those edited since the mark."""
        ...

    def read_jobs(self, job_ids: Sequence[int]) -> tuple[JobRow, ...]:
        """These jobs as they stand now."""
        ...

    def job_page(self, after: int, limit: int) -> JobsPage:
        """Those of the next ``limit`` jobs by id, from ``after`` on, that can have undecided ticks.

        All pages together are not one moment: what was edited meanwhile comes with ``load_jobs`` from the first
        page's mark on, and what a leader moved with ``moved_cursors`` from a mark taken before.
        """
        ...

    def cursor_mark(self) -> int:
        """A mark for ``moved_cursors``: nothing that is written from now on lies before it."""
        ...

    def moved_cursors(self, since: int) -> CursorsRead:
        """At least the cursors written since the mark: what a warm follower has to read, at a takeover too."""
        ...

    def commit(self, batch: TickBatch) -> CommitResult:
        """Write a batch: per job all or nothing. A stale term, a halted cluster or an old batch writes nothing."""
        ...

    def reserve_budget(self, term: int, count: int, rate: float) -> datetime | None:
        """The instant at which the first of ``count`` caught-up ticks may start; the rest follow at ``1/rate`` s.

        None, and nothing is reserved, under a stale term or in a halted cluster.
        """
        ...

    def waiting_catch_up(self, limit: int) -> int:
        """How many claims of origin `catch_up` wait, not paused and never granted; counted up to ``limit``."""
        ...

    def unfinished_pass(self) -> UnfinishedPass:
        """What a pass that begins now goes on with; nothing where the last one was finished."""
        ...

    def note_pass(self, term: int, *, holds: bool, gap_from: datetime | None = None) -> bool:
        """From now on ``unfinished_pass`` tells of the pass of this term, also where no takeover began it: that it
        ``holds``, and what it fires. Ends with ``finish_pass``. False, and nothing is noted, under a stale term or in
        a halted cluster.

        ``gap_from``: since when the leader, which leads on, wrote no claims. With the pass begins the record of the
        gap, an event that screens read beside the takeovers.
        """
        ...

    def finish_pass(self, term: int, planning: timedelta, jobs: int) -> None:
        """The pass over undecided ticks is done: a takeover's ``gap_until`` becomes now."""
        ...

    def late_jobs(self, limit: int = 100) -> tuple[LateJobRow, ...]:
        """Jobs with ready claims whose ``start_by`` has passed without a grant."""
        ...

    def decide_late(self, plan: LatePlan) -> int:
        """Carry out a plan over late claims; how many claims it decided (0: term, cursor or claims had moved)."""
        ...

    def quarantine(self, term: int, job_id: int, reason: str) -> bool:
        """Take a job out of planning until it is resumed or revised; recorded as an event."""
        ...
