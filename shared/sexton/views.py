"""Jobs, ticks, runs and takeovers as screens and listings show them: values, free of SQL and of presentation.

The cluster's are in ``cluster_views``.

Instants are UTC, durations `timedelta`, output raw bytes. Names, reasons, errors and outputs are untrusted text:
whoever draws them cleans them first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.claims import Origin, State
from sexton.decisions import Cause, SkipReason
from sexton.jobs import JobDefinition
from sexton.terms import ElectedBy, EndedBy

# --- jobs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a page lists. `text` is found anywhere in the name, `letters` in their order with others between them;
    `state`: active, paused, quarantined."""

    text: str = ""
    state: str = ""
    queue: str = ""
    owner: str = ""
    tag: str = ""
    include_retired: bool = False
    letters: str = ""


class JobOrder(StrEnum):
    """What a list of jobs goes by."""

    NAME = "name"
    STATE = "state"  # quarantined ones first, then paused ones
    FAILED = "newest failure"  # first, among the newest failures of all jobs

    @property
    def next(self) -> JobOrder:
        """The one that comes after it, round and round."""
        orders = list(JobOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


@dataclass(frozen=True, slots=True)
class RunView:
    """One attempt at a claim by one worker under one token. `outcome` READY: it ended to be tried again."""

    token: int
    job_id: int
    job: str
    scheduled_at: datetime
    attempt: int
    revision: int
    worker: str
    outcome: State
    exit_code: int | None
    error: str
    started_at: datetime | None
    finished_at: datetime
    lateness: timedelta | None
    stdout_bytes: int
    stderr_bytes: int
    output_at: str = ""  # where the whole output is, without its ending .stdout or .stderr

    @property
    def duration(self) -> timedelta | None:
        return None if self.started_at is None else self.finished_at - self.started_at


@dataclass(frozen=True, slots=True)
class EarlierJob:
    """A retired job whose name another one has now: ``address`` (``NAME#ID``) asks for it."""

    address: str
    retired_at: datetime


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a list shows it. `strip`: outcomes of its newest runs, oldest first."""

    job_id: int
    name: str
    revision: int
    state: str  # active | paused | quarantined | retired
    detail: str  # who paused it and why, or why it is quarantined
    schedule: str  # in words
    timezone: str
    queue: str
    owner: str
    tags: tuple[str, ...]
    description: str
    next_ticks: tuple[datetime, ...]  # what it would fire next; none while it is paused or quarantined
    last_run: RunView | None
    strip: tuple[State, ...]
    skipped: tuple[datetime, ...] = ()  # ticks to come that are named not to run (skip-next), not in ``next_ticks``


@dataclass(frozen=True, slots=True)
class RevisionView:
    revision: int
    in_force_since: datetime
    in_force_until: datetime | None
    applied_at: datetime
    applied_by: str
    definition: str


@dataclass(frozen=True, slots=True)
class PauseView:
    since: datetime
    until: datetime | None
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job opened: its definition, its past revisions and pauses (newest first), what it fires next."""

    job: JobView
    definition: JobDefinition
    cursor: datetime | None
    revisions: tuple[RevisionView, ...]
    pauses: tuple[PauseView, ...]
    claims: tuple[ClaimView, ...]  # the newest that fell due


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs by name; `total` of all that pass the filter."""

    jobs: tuple[JobView, ...]
    total: int


# --- ticks and runs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim as it stands."""

    job_id: int
    job: str
    scheduled_at: datetime
    revision: int
    origin: Origin
    state: State
    queue: str
    priority: int
    available_at: datetime
    start_by: datetime | None
    is_blocked: bool
    jitter: timedelta
    attempt: int
    retries: int
    token: int | None
    worker: str
    granted_at: datetime | None
    lease_expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    reason: str
    term: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class SkipView:
    """`count` ticks in ``(after, upto]`` that were decided not to run."""

    job_id: int
    job: str
    after: datetime
    upto: datetime
    count: int
    reason: SkipReason
    detail: str
    revision: int
    term: int
    decided_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None


@dataclass(frozen=True, slots=True)
class TickPage:
    """What was decided about a job's ticks that fell due, newest first: claims, and skip records between them.

    `ahead`: the nearest claims written ahead of their tick, and `upcoming` the next ticks after all claims, both
    nearest first and on the first page alone. `older`: give it as `before` for the next page; None at the end, where
    `earlier` is the job that had the name before.
    """

    job: JobView
    claims: tuple[ClaimView, ...]
    skips: tuple[SkipView, ...]
    ahead: tuple[ClaimView, ...]
    upcoming: tuple[datetime, ...]
    older: datetime | None
    earlier: EarlierJob | None = None  # on the last page


@dataclass(frozen=True, slots=True)
class ClaimDetail:
    """A claim with its runs, oldest first."""

    claim: ClaimView
    runs: tuple[RunView, ...]


@dataclass(frozen=True, slots=True)
class RunKey:
    """The place of a run in the list of runs, newest first."""

    finished_at: datetime
    token: int


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a page lists; empty fields let all pass. `queue` is that of the claim, `owner` and `tag` are those of
    the job's newest revision, `letters` are in the job's name, in their order with others between them."""

    job: str = ""
    states: frozenset[State] = frozenset()
    queue: str = ""
    owner: str = ""
    tag: str = ""
    letters: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first. `older`: give it as `before` for the next page; None at the end.

    A filter that no index serves looks at a stretch of runs a page, so a page may be short and not the last.
    """

    runs: tuple[RunView, ...]
    older: RunKey | None


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The kept tails of a run's output; `run` counts all that was written. Bytes None: nothing was kept."""

    run: RunView
    stdout: bytes | None
    stderr: bytes | None


# --- takeovers and events -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DecisionTotals:
    """Sums over decisions: jobs concerned, and what became of their missed ticks."""

    jobs: int = 0
    missed: int = 0
    fired: int = 0
    merged: int = 0
    skipped: int = 0
    expired: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class GapView:
    """A gap within a term: nobody wrote claims, and whoever led leads on. `node` is ``the race`` in a race's term."""

    term: int
    node: str
    gap_from: datetime
    gap_until: datetime
    totals: DecisionTotals = field(default_factory=DecisionTotals)  # of the ticks that fell due in it undecided

    @property
    def gap(self) -> timedelta:
        """For how long no claims were written."""
        return max(self.gap_until - self.gap_from, timedelta(0))


@dataclass(frozen=True, slots=True)
class TakeoverView:
    """One term. `until` and `ended_by` are None while it lasts; `gap` while its first pass is not done.

    `gaps`: those in which nobody took over, newest first; each decision is in the sums of one of them, or of the term.
    """

    term: int
    node: str
    elected_by: ElectedBy
    taken_at: datetime
    until: datetime | None
    ended_by: EndedBy | None
    predecessor: str | None
    predecessor_ended: EndedBy
    gap_from: datetime | None
    gap_until: datetime | None
    planning: timedelta | None
    jobs: int | None
    blockers_terminated: int
    totals: DecisionTotals  # of the ticks that nobody had decided
    not_started: DecisionTotals = field(default_factory=DecisionTotals)  # of the term's claims that no worker took
    gaps: tuple[GapView, ...] = ()

    @property
    def gap(self) -> timedelta | None:
        """For how long no claims were written."""
        if self.gap_from is None or self.gap_until is None:
            return None
        return max(self.gap_until - self.gap_from, timedelta(0))


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What one pass decided about one job's missed ticks in ``(after, upto]``, and why in a sentence."""

    term: int
    job_id: int
    job: str
    after: datetime
    upto: datetime
    cause: Cause
    revision: int
    policy: str
    missed: int
    fired: int
    merged: int
    skipped: int
    expired: int
    held: int
    reason: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class TakeoverDetail:
    """A takeover with its decisions by job; `is_whole` is false where there are more than were asked for.

    With a `gap`, which is one of the takeover's, the decisions are those about that gap alone.
    """

    takeover: TakeoverView
    decisions: tuple[DecisionView, ...]
    is_whole: bool
    gap: GapView | None = None


@dataclass(frozen=True, slots=True)
class EventView:
    """One line of the audit log."""

    event_id: int
    at: datetime
    actor: str
    action: str
    job: str | None
    detail: Mapping[str, object] = field(default_factory=dict)
