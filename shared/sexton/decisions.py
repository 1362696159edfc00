"""Decisions as values: what the planner read, and what it wants committed.

Every due tick gets exactly one decision (invariant 2): a claim, or a place in a
skip record with its reason. A batch of them goes to the store as one value and
takes effect per job or not at all: a job whose cursor moved meanwhile keeps
nothing of the batch and comes back in ``CommitResult.not_moved``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.claims import Origin
from sexton.job_rules import FiringRules
from sexton.races import PassShare
from sexton.schedules import Schedule


class SkipReason(StrEnum):
    """Why the ticks of a stretch were decided not to run."""

    SKIPPED = "skipped"  # policy skip: older than grace
    MERGED = "merged"  # policy latest: a newer tick stands for them
    EXPIRED = "expired"  # older than within, or beyond max
    HELD = "held"  # waits in a proposal for an operator
    PAUSED = "paused"
    RETIRED = "retired"


class Cause(StrEnum):
    """Why a pass over undecided past ticks happened."""

    TAKEOVER = "takeover"
    LATE_LEADER = "late leader"  # database outage, sleeping machine, long pause of the same leader
    NOT_STARTED = "claimed but not started"
    RESUMED = "resumed"  # what fell due in a pause, on request
    RACE = "race"  # racers found ticks that had fallen due undecided


@dataclass(frozen=True, slots=True)
class RevisionInForce:
    """One revision and the interval ``(since, until]`` in which its ticks count. ``until`` None: still in force."""

    revision: int
    schedule: Schedule
    firing: FiringRules
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Interval:
    """``(since, until]``; ``until`` None: open. ``detail``: of a pause, who and why."""

    since: datetime
    until: datetime | None
    detail: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class GrowingSkip:
    """The job's last skip record, where it ends at the cursor and may grow (a pause)."""

    after: datetime
    count: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job as the planner knows it. ``at`` is the cursor: every tick up to and including it is decided.

    ``seq`` changes with every edit; a commit that carries another one moves nothing.
    ``revisions`` are those in force after the cursor, oldest first; the last may
    have ended (a retired job with undecided ticks). ``pauses`` likewise.
    """

    job_id: int
    name: str
    seq: int
    at: datetime
    revisions: tuple[RevisionInForce, ...]
    pauses: tuple[Interval, ...] = ()
    pause_detail: str = ""  # who and why, for the skip record of an open pause
    growing: GrowingSkip | None = None
    is_quarantined: bool = False

    def why_paused(self, tick: datetime) -> str:
        """Who paused the job over this tick, and why; also where that pause has ended."""
        over = (one for one in self.pauses if one.since < tick and (one.until is None or tick <= one.until))
        return next((one.detail for one in over), "") or self.pause_detail


@dataclass(frozen=True, slots=True)
class CursorMove:
    """Move the cursor of a job from ``was`` to ``upto`` if its ``seq`` and place are still these."""

    job_id: int
    seq: int
    was: datetime
    upto: datetime


@dataclass(frozen=True, slots=True)
class NewClaim:
    """A tick that will run. ``start_by`` None: waits as long as it takes."""

    job_id: int
    scheduled_at: datetime
    revision: int
    origin: Origin
    available_at: datetime
    start_by: datetime | None
    jitter: timedelta
    firing: FiringRules


@dataclass(frozen=True, slots=True)
class NewSkip:
    """``count`` ticks in ``(after, upto]`` decided not to run. A row with the same ``after`` grows to this one."""

    job_id: int
    after: datetime
    upto: datetime
    count: int
    reason: SkipReason
    detail: str
    revision: int


@dataclass(frozen=True, slots=True)
class NewProposal:
    """Missed ticks held for an operator; goes with a ``NewSkip`` of reason ``HELD`` and the same ``after``, or with
    claims that a ``LatePlan`` holds."""

    job_id: int
    revision: int
    after: datetime
    upto: datetime
    count: int
    within_from: datetime  # ticks before this had expired when the proposal was made
    lapses_at: datetime
    reason: str = ""  # why they are held


@dataclass(frozen=True, slots=True)
class JobDecision:
    """One job's part of a pass over missed ticks: counts, the rule, and a sentence of reason with numbers."""

    job_id: int
    revision: int
    cause: Cause
    after: datetime
    upto: datetime
    policy: str
    missed: int
    fired: int
    merged: int
    skipped: int
    expired: int
    held: int
    reason: str


@dataclass(frozen=True, slots=True)
class TickBatch:
    """One commit of a leader or a racer. At most one ``CursorMove`` a job; all else belongs to a moved job.

    ``share``: what makes it part of a race's pass over missed ticks; None where it fires none, or a leader's.
    """

    term: int
    planned_at: datetime  # database time; a batch older than 5 s writes nothing
    moves: tuple[CursorMove, ...]
    claims: tuple[NewClaim, ...] = ()
    skips: tuple[NewSkip, ...] = ()
    proposals: tuple[NewProposal, ...] = ()
    decisions: tuple[JobDecision, ...] = ()
    share: PassShare | None = None

    def within(self, share: PassShare) -> TickBatch:
        """The same as part of a race's pass."""
        return replace(self, share=share)


@dataclass(frozen=True, slots=True)
class UnfinishedPass:
    """The passes over missed ticks that nobody lived to finish. ``fired``: by all of them; ``holds``: what is left of
    them is to be held."""

    fired: int = 0
    holds: bool = False


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What one commit did. A stale term or a batch grown old wrote nothing at all."""

    is_current: bool  # the term was current in the statement (invariant 3)
    is_fresh: bool
    moved: int
    swallowed: int  # cursor moved, but the claim row existed: never expected, alarmed (invariant 6)
    not_moved: tuple[int, ...] = field(default=())  # changed or locked meanwhile: read again, plan again
    is_within: bool = True  # False: the race's pass was over, full, or locked by another racer; nothing was written


@dataclass(frozen=True, slots=True)
class LateClaim:
    """A ready claim never granted: a live one past its ``start_by``, or one that was turned ``catch_up`` for that."""

    scheduled_at: datetime
    origin: Origin
    jitter: timedelta


@dataclass(frozen=True, slots=True)
class LateJob:
    """All late claims of one job together, oldest first, with the cursor they were read under."""

    job_id: int
    name: str
    seq: int
    at: datetime
    revision: RevisionInForce
    claims: tuple[LateClaim, ...]


@dataclass(frozen=True, slots=True)
class LateVerdict:
    """What becomes of one late claim."""

    scheduled_at: datetime
    becomes: str  # "fires" | a SkipReason value
    origin: Origin = Origin.CATCH_UP
    available_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LatePlan:
    """The decision over one job's late claims; conditional on term, cursor and every claim still being late."""

    term: int
    job_id: int
    seq: int
    verdicts: tuple[LateVerdict, ...]
    decision: JobDecision
    proposal: NewProposal | None = None
    share: PassShare | None = None  # as in `TickBatch`; nothing of it is paced
