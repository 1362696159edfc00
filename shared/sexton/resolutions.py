"""Ticks decided once and run after all, because a person asked: values of ``backfill`` and ``resume --run-missed``.

A skip record may be resolved once; with the claims that resolve it, it still counts as one decision (invariant 2). A
resolution splits the records it answers, so that each part says of all its ticks what became of them, and opens claims
that ended without a run. It never moves a cursor: no tick of the schedule is consumed or shifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sexton.claims import Origin, State
from sexton.decisions import Interval, JobDecision, NewClaim, NewProposal, RevisionInForce


@dataclass(frozen=True, slots=True)
class SkipFound:
    """A skip record as it was read: ``count`` ticks in ``(after, upto]``. ``named_by``: who named its one tick."""

    after: datetime
    upto: datetime
    count: int
    reason: str
    detail: str
    is_resolved: bool
    named_by: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimFound:
    """A claim as it was read. ``attempt``: how often it was granted."""

    scheduled_at: datetime
    state: State
    origin: Origin
    attempt: int


@dataclass(frozen=True, slots=True)
class ProposalFound:
    """A proposal that waits for an answer about ticks in ``(after, upto]``."""

    proposal_id: int
    after: datetime
    upto: datetime


@dataclass(frozen=True, slots=True)
class JobStretch:
    """What the ledger says of one job in ``(after, upto]``, all of one moment; lists oldest first.

    ``at`` is the cursor, ``revisions`` those in force in the stretch, ``newest`` the one in force now. ``pause``: the
    pause that lasts. Of claims and skip records no more than ``limit`` were read, of the oldest.
    """

    job_id: int
    name: str
    seq: int
    at: datetime
    after: datetime
    upto: datetime
    now: datetime
    is_retired: bool
    pause: Interval | None
    pruned_before: datetime | None
    inputs_id: str
    newest: RevisionInForce
    revisions: tuple[RevisionInForce, ...]
    skips: Sequence[SkipFound]
    claims: Sequence[ClaimFound]
    proposals: Sequence[ProposalFound]


@dataclass(frozen=True, slots=True)
class SkipPart:
    """A part of a skip record. ``reason`` and ``detail`` None: as the record has them."""

    after: datetime
    upto: datetime
    count: int
    is_resolved: bool
    reason: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SkipSplit:
    """A skip record and the parts that take its place: they begin where it begins, abut, and end where it ends."""

    found: SkipFound
    parts: tuple[SkipPart, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What to write, if the ledger is still as it was read: ``seq``, each record, each claim.

    ``at``: where the cursor was; it may have moved on since, but not for what fell due in a pause. ``claims`` are new,
    of origin `backfill`; ``opened`` ended without a run, or are to run again; both get the rules of ``newest``.
    ``order``: all ticks that run, as the catch-up budget starts them. ``begin``: since when the job was paused, where
    its pause ends with this.
    """

    job_id: int
    name: str
    seq: int
    at: datetime
    newest: RevisionInForce
    order: tuple[datetime, ...] = ()
    claims: tuple[NewClaim, ...] = ()
    opened: tuple[ClaimFound, ...] = ()
    splits: tuple[SkipSplit, ...] = ()
    begin: datetime | None = None
    proposals: tuple[NewProposal, ...] = ()
    decision: JobDecision | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a resolution wrote. ``first_start`` and ``last_start``: when the budget lets its ticks start; None where
    none runs. ``is_paused``: they wait for the job's resume."""

    job_id: int
    name: str
    count: int
    first_start: datetime | None
    last_start: datetime | None
    is_paused: bool
