"""The seam between Sexton and its database: five small protocols, two implementations.

``Store`` is one connection's view: not for two threads at once (open another).
PostgreSQL and SQLite implement it, and one behavioural suite runs against both.

What every implementation promises:

* Each method is one transaction, committed when it returns. A safety property is
  a condition inside the statement that writes, never a check before it.
* A lost compare-and-set is a return value, never an exception (invariant 6).
* The time that counts is the database's (``now``); callers never pass their own
  except where a value says so (``TickBatch.planned_at`` is compared, not trusted).
* A database that does not answer raises ``DatabaseUnreachable`` within the
  store's timeout; the connection is then opened anew by the next call. What the
  lost call did is unknown, and every caller is written for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from sexton.claims import Origin, State
from sexton.clock import Wakeup
from sexton.decisions import CommitResult, GrowingSkip, Interval, LatePlan, TickBatch
from sexton.jobs import JobDefinition
from sexton.settings import ClusterSettings
from sexton.store.reads import LedgerReader
from sexton.terms import ClusterState, Confirmation, ElectedBy, Heartbeat, NodeReport, TermTaken


class Channel(StrEnum):
    """What listeners can be woken for. Polling is the net under each."""

    JOBS = "sexton_jobs"  # an edit, a setting, a request to the leader
    WORK = "sexton_work"  # a claim that is available now or within seconds


# --- leadership -----------------------------------------------------------------------------------


class TermStore(Protocol):
    """Who leads. Written by nodes."""

    def cluster(self) -> ClusterState:
        """The cluster row, without a lock."""
        ...

    def enroll(self, coordinator: str, inputs_id: str, zone_data: str, engine: int) -> ClusterState:
        """Record coordinator and inputs at the first start of a cluster.

        Raises ``WrongCluster`` where another coordinator is recorded. A node whose inputs differ from
        ``ClusterState.inputs_id`` may enroll but must not lead (invariant 8).
        """
        ...

    def take(self, expected_term: int, node: str, elected_by: ElectedBy) -> TermTaken | None:
        """Raise the term from ``expected_term`` by compare-and-set and record the takeover; None: it had moved.

        Waits at most 1 s for whoever locks the cluster row; then terminates that backend (PostgreSQL) and
        counts it in the takeover. After it returns a term, no statement of an older term writes anything.
        """
        ...

    def leave(self, term: int) -> bool:
        """Clean hand-over: no leader from now on, if the term is still this one."""
        ...

    def beat(self, term: int, confirmation: Confirmation) -> bool:
        """Move the heartbeat counter; whether ``term`` is still current. Never touches the cluster row's lock."""
        ...

    def heartbeat(self) -> Heartbeat:
        """The heartbeat row as it stands."""
        ...

    def report(self, report: NodeReport) -> None:
        """Insert or refresh this node's row; ``seen_at`` becomes now."""
        ...

    def forget(self, node: str) -> None:
        """Remove a node's row (a clean shutdown)."""
        ...

    def terminate_stuck(self, older_than: timedelta = timedelta(seconds=2)) -> int:
        """Terminate Sexton's backends whose transaction is older and waits for its client; how many. SQLite: 0."""
        ...


# --- the leader's ledger --------------------------------------------------------------------------


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

    def cursors(self) -> Iterable[tuple[int, int, datetime]]:
        """``(job_id, seq, at)`` of every job: what a warm follower reads at a takeover."""
        ...

    def commit(self, batch: TickBatch) -> CommitResult:
        """Write a batch: per job all or nothing. A stale term, a halted cluster or an old batch writes nothing."""
        ...

    def reserve_budget(self, count: int, rate: float) -> datetime:
        """The instant at which the first of ``count`` caught-up ticks may start; the rest follow at ``1/rate`` s."""
        ...

    def pass_fired(self) -> int:
        """Ticks fired so far by the takeover pass that no leader has finished yet; 0 if there is none."""
        ...

    def finish_pass(self, term: int, planning: timedelta, jobs: int) -> None:
        """The takeover's pass over undecided ticks is done: ``gap_until`` becomes now."""
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


# --- edits ----------------------------------------------------------------------------------------


class ChangeKind(StrEnum):
    CREATE = "create"
    REVISE = "revise"  # also a rename: the new definition carries the new name
    RETIRE = "retire"
    PAUSE = "pause"
    RESUME = "resume"  # also lifts a quarantine


@dataclass(frozen=True, slots=True)
class JobChange:
    """One change of one job. ``job_id`` None only for CREATE; ``definition`` for CREATE and REVISE."""

    kind: ChangeKind
    job_id: int | None = None
    definition: JobDefinition | None = None
    expected_revision: int | None = None  # REVISE and RETIRE: refuse if the job has moved on
    why: str = ""


@dataclass(frozen=True, slots=True)
class ChangeDone:
    """What an edit did: from ``effective_at`` (E in the design) on, the new state counts."""

    job_id: int
    name: str
    kind: ChangeKind
    revision: int
    effective_at: datetime
    withdrawn: int  # claims written ahead under the old state and deleted


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job not retired, for planning an apply and for listing."""

    job_id: int
    name: str
    revision: int
    definition: JobDefinition
    hash_seed: str
    is_paused: bool
    is_quarantined: bool


@dataclass(frozen=True, slots=True)
class Triggered:
    """A manual claim. ``existed``: the request id had been used, and this is that claim."""

    job_id: int
    name: str
    scheduled_at: datetime
    existed: bool


class EditStore(Protocol):
    """What operators and job files change. Each is recorded in ``events`` with its actor."""

    def edit(self, changes: Sequence[JobChange], actor: str) -> tuple[ChangeDone, ...]:
        """All changes in one transaction by the edit routine of the design; or none of them.

        Raises ``Refused`` where ``expected_revision`` does not hold, a name is taken, or the locks cannot be
        had after retries.
        """
        ...

    def current_jobs(self) -> tuple[CurrentJob, ...]:
        """Every job that is not retired, by name."""
        ...

    def find_job(self, name: str) -> CurrentJob:
        """The job of this name (case does not count); raises ``NotFound`` with the nearest names."""
        ...

    def trigger(self, job_id: int, actor: str, request_id: str | None = None) -> Triggered:
        """Write a ``manual`` claim at database time, off the millisecond grid that schedules use."""
        ...

    def settings(self) -> ClusterSettings:
        """The cluster's settings, defaults included."""
        ...

    def set_setting(self, key: str, value: str, actor: str) -> ClusterSettings:
        """Change one setting, checked against the others; raises ``InvalidSetting``."""
        ...

    def request_resign(self, actor: str) -> str | None:
        """Ask the leader to hand over; its name, or None when nobody leads."""
        ...

    def record(self, actor: str, action: str, detail: Mapping[str, object], job_id: int | None = None) -> None:
        """Add an event to the audit log."""
        ...


# --- workers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant:
    """A claim in a worker's hands under one token, until ``lease_expires_at``."""

    job_id: int
    scheduled_at: datetime
    revision: int
    origin: Origin
    token: int
    attempt: int
    retries: int
    slot: int
    jitter: timedelta
    at_most_once: bool
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. ``outcome`` READY: back to the queue at ``retry_at`` (a retry, or given back)."""

    job_id: int
    scheduled_at: datetime
    token: int
    attempt: int
    outcome: State
    finished_at: datetime
    started_at: datetime | None = None
    exit_code: int | None = None
    error: str = ""
    retry_at: datetime | None = None
    uses_retry: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StepRequest:
    """Write results, promote what they freed, pull new work: one transaction."""

    worker_id: int
    queues: tuple[str, ...]
    room: int  # how many grants this worker can take now
    lease: timedelta
    catch_up_concurrency: int
    results: tuple[RunResult, ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """``accepted``: tokens whose result counted; the others were refused and counted as stale (invariant 4)."""

    accepted: frozenset[int]
    grants: tuple[Grant, ...]
    picked: int  # claims looked at; 0 grants with picked > 0 is not idle
    next_available_at: datetime | None  # of these queues, strictly ahead of now
    now: datetime


@dataclass(frozen=True, slots=True)
class Renewal:
    """Which tokens are still held (lease renewed from the database's now), and which are asked to stop."""

    held: frozenset[int]
    cancel: frozenset[int]
    now: datetime
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True)
class Requeued:
    """A claim whose lease ran out, and what became of it: READY or LOST."""

    job_id: int
    scheduled_at: datetime
    token: int
    state: State


class GrantStore(Protocol):
    """The worker's statements. Every write is conditional on the run's token (invariant 4)."""

    def register(self, name: str, address: str, version: str, pid: int, queues: Sequence[str], slots: int) -> int:
        """A new worker row; its id."""
        ...

    def seen(self, worker_id: int, busy: int, draining: bool) -> None:
        """Refresh the worker's row."""
        ...

    def unregister(self, worker_id: int) -> None:
        """A clean stop: ``stopped_at`` becomes now."""
        ...

    def step(self, request: StepRequest) -> StepResult:
        """Complete, promote and pull in one transaction. A slot never has two running claims."""
        ...

    def definitions(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], JobDefinition]:
        """The definitions of ``(job_id, revision)`` pairs."""
        ...

    def mark_started(self, job_id: int, scheduled_at: datetime, token: int) -> bool:
        """Write ``started_at``; whether the token still counts. An at-most-once run starts only after True."""
        ...

    def renew(self, worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
        """Renew the leases of these tokens that this worker still holds."""
        ...

    def requeue_expired(self, limit: int = 500, poison_after: int = 3) -> tuple[Requeued, ...]:
        """Claims whose lease ran out: back to READY with the slot freed, or LOST. Only for callers that have
        themselves reached the database without a break for one lease."""
        ...

    def sweep(self) -> int:
        """Promote the oldest parked claim of every free slot; how many."""
        ...

    def orphans(self, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
        """Grants to this worker that it does not know of (an answer was lost): to be given back."""
        ...


# --- the whole ------------------------------------------------------------------------------------


class Listener(Protocol):
    """Sets a wake-up when a channel is notified; reconnects by itself."""

    def close(self) -> None: ...


class Store(Protocol):
    """One connection's view of the ledger."""

    @property
    def terms(self) -> TermStore: ...

    @property
    def ticks(self) -> TickStore: ...

    @property
    def edits(self) -> EditStore: ...

    @property
    def grants(self) -> GrantStore: ...

    @property
    def reads(self) -> LedgerReader: ...

    def now(self) -> datetime:
        """The database's clock, UTC."""
        ...

    def listen(self, channels: Sequence[Channel], wakeup: Wakeup) -> Listener:
        """Set ``wakeup`` whenever one of the channels is notified, until closed."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How to reach a database. ``answer_within``: seconds until a call raises ``DatabaseUnreachable``."""

    url: str  # sqlite:///path or postgresql://...
    application: str = "sexton"
    answer_within: float = 10.0
    read_only: bool = False
    clock: Callable[[], datetime] | None = field(default=None, repr=False)  # SQLite only: the simulator's now
