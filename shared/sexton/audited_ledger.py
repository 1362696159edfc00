"""One job's part of the ledger as the audit reads it: columns of whole numbers, so that a million rows cost little.

Instants in columns are microseconds since 1970 (``sexton.bulk_ticks``); rows are in the order of their ticks.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sexton.bulk_ticks import micros_of
from sexton.claims import Origin
from sexton.schedules import Schedule

ORIGIN_BITS = 3
ORIGIN_MASK = (1 << ORIGIN_BITS) - 1


@dataclass(frozen=True, slots=True)
class AuditedRevision:
    """A revision and the interval ``(since, until]`` in which its ticks count.

    ``schedule`` is None where this release cannot read it: its ticks are not judged.
    """

    revision: int
    schedule: Schedule | None
    since: datetime
    until: datetime | None
    grace: timedelta
    inputs_id: str


@dataclass(frozen=True, slots=True)
class AuditedClaim:
    scheduled_at: datetime
    origin: Origin
    revision: int


@dataclass(frozen=True, slots=True)
class AuditedSkip:
    """A skip record: ``count`` ticks in ``(after, upto]``. ``is_resolved``: an operator has them run after all."""

    after: datetime
    upto: datetime
    count: int
    reason: str
    is_resolved: bool = False


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Claims by tick, oldest first, without those that were triggered beside the schedule.

    ``kinds``: the revision shifted by ``ORIGIN_BITS``, and the origin.
    """

    ticks: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("q"))

    @classmethod
    def of(cls, claims: Iterable[AuditedClaim]) -> ClaimColumns:
        listed = [claim for claim in claims if claim.origin is not Origin.MANUAL]
        ordered = sorted(listed, key=lambda claim: claim.scheduled_at)
        ticks = array("q", (micros_of(claim.scheduled_at) for claim in ordered))
        return cls(ticks, array("q", (kind_of(claim.revision, claim.origin) for claim in ordered)))


@dataclass(frozen=True, slots=True)
class SkipColumns:
    """Skip records by ``after``, oldest first."""

    after: array[int] = field(default_factory=lambda: array("q"))
    upto: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    reasons: Sequence[str] = ()
    resolved: array[int] = field(default_factory=lambda: array("q"))  # 1 where it is

    @classmethod
    def of(cls, skips: Iterable[AuditedSkip]) -> SkipColumns:
        ordered = sorted(skips, key=lambda skip: skip.after)
        return cls(
            array("q", (micros_of(skip.after) for skip in ordered)),
            array("q", (micros_of(skip.upto) for skip in ordered)),
            array("q", (skip.count for skip in ordered)),
            [skip.reason for skip in ordered],
            array("q", (skip.is_resolved for skip in ordered)),
        )


def kind_of(revision: int, origin: Origin) -> int:
    """Revision and origin as one number."""
    return revision << ORIGIN_BITS | origin


def origin_of(kind: int) -> Origin:
    """Raises ValueError for what this release does not know."""
    return Origin(kind & ORIGIN_MASK)


def revision_of(kind: int) -> int:
    return kind >> ORIGIN_BITS


@dataclass(frozen=True, slots=True)
class JobLedger:
    """All that is stored about one job, from one snapshot.

    ``cursor``: None where the job has lost it. ``standing``: what keeps the job's ticks from being decided, in a few
    words (``the job is quarantined``). ``broken``: what else does not fit together, in a few words each.
    """

    job_id: int
    name: str
    cursor: datetime | None
    revisions: tuple[AuditedRevision, ...]
    open_pause_since: datetime | None
    claims: ClaimColumns
    skips: SkipColumns
    standing: str = ""
    broken: tuple[str, ...] = ()
