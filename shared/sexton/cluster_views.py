"""The cluster as screens show it: nodes, workers, queues, lateness, and the overview of all of them.

Instants are UTC by the database's clock. Names and reasons are untrusted text: whoever draws them cleans them first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.queue_rules import QueueRule
from sexton.races import RaceCounts
from sexton.terms import CoordinatorServer, ElectedBy

NO_RULE = QueueRule()

SEXTON = "sexton"  # who acts, where no person did
FAILURES_SEEN = 10
"""So many of a job's newest runs are looked at: a row of failures may be longer than is counted."""
FAILURES_IN_A_ROW = 3
"""From so many on a job's failures are a need of its own; fewer are told together."""
COUNT_LIMIT = 10_000
"""Counts of rows stop here: a screen says "10,000+", and the query's cost stays bounded."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node's row as it last reported; `age` is how long ago, by the database's clock."""

    name: str
    address: str
    version: str
    pid: int
    role: str
    confirmation: str | None
    coordinator_status: str
    jobs_warm: int
    behind: timedelta
    clock_offset: timedelta  # database clock minus the node's host clock
    claims_upto: datetime | None
    inputs_id: str
    started_at: datetime
    seen_at: datetime
    age: timedelta
    coordinator_servers: tuple[CoordinatorServer, ...] = ()  # as this node sees them
    clock_jump: timedelta | None = None  # while it doubts the database's clock: by how much that jumped
    raced: RaceCounts = field(default_factory=RaceCounts)  # since its process began


@dataclass(frozen=True, slots=True)
class Halt:
    """The cluster decides and grants nothing: since when, by whom, and why."""

    at: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker's row. `age` since it was last seen; `stopped_at` after a clean stop; `is_drain_requested`: by an
    operator."""

    worker_id: int
    name: str
    address: str
    version: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    busy: int
    is_draining: bool
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    age: timedelta
    is_drain_requested: bool = False


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue: claims that could start now (`due`), claims written ahead, who serves it, and its rule.

    `due`, `ahead` and `catch_up` stop at ``COUNT_LIMIT``. `oldest` is the earliest ``available_at`` of the due ones.
    """

    name: str
    due: int
    ahead: int
    catch_up: int  # due or paced: catch-up, held and backfill claims not yet granted
    oldest: datetime | None
    workers: int
    slots: int  # of the workers
    busy: int
    running: int = 0  # claims of this queue; stops at ``COUNT_LIMIT``
    rule: QueueRule = NO_RULE


@dataclass(frozen=True, slots=True)
class Lateness:
    """Lateness of the first tries started in one stretch; `count` of them, None where there were none. ``within``: the
    stretch, shorter than was asked for where more started than are looked at; None where nobody asked."""

    count: int = 0
    p50: timedelta | None = None
    p99: timedelta | None = None
    max: timedelta | None = None
    within: timedelta | None = None

    @property
    def a_second(self) -> float | None:
        """How many started a second; None where the stretch is not known."""
        return self.count / (self.within / timedelta(seconds=1)) if self.within else None


@dataclass(frozen=True, slots=True)
class LatenessMinute:
    """The lateness of the runs that started in the minute from `at` on."""

    at: datetime
    lateness: Lateness


@dataclass(frozen=True, slots=True)
class QuarantinedJob:
    """A job that Sexton stopped; ``is_paused``: by a pause, as poison."""

    name: str
    at: datetime
    reason: str
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose newest run failed: how many did in a row, of the newest looked at, and the last error.

    Runs of a tick that is tried again are not counted.
    """

    name: str
    failed: int
    last_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that ended as lost and is not tried again: its worker fell silent, and what it did is unknown."""

    job: str
    scheduled_at: datetime
    worker: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Missed ticks held for an operator."""

    proposal_id: int
    job: str
    after: datetime
    upto: datetime
    count: int
    made_at: datetime
    lapses_at: datetime
    term: int


class OverviewPart(StrEnum):
    """What of the overview a screen may read less often than who leads."""

    WORK = "work"
    STANDING = "standing"


@dataclass(frozen=True, slots=True)
class PauseOfAll:
    """The pause of all jobs, while it lasts: jobs that are applied meanwhile are paused too."""

    since: datetime
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The cluster at `now` (the database's clock), read in one snapshot."""

    now: datetime
    cluster_id: str
    term: int
    leader: str | None
    leader_since: datetime | None
    elected_by: ElectedBy | None
    predecessor: str | None  # after a clean hand-over
    strategy: str
    coordinator: str
    is_halted: bool
    inputs_id: str
    resign_requested: bool
    confirmation: str
    heartbeat_age: timedelta
    claims_upto: datetime | None  # as the leader says, or the racer that has come furthest
    nodes: tuple[NodeView, ...]
    workers: tuple[WorkerView, ...]  # those that have not stopped
    queues: tuple[QueueView, ...]
    lateness: Lateness  # of the last 5 minutes
    minutes: tuple[LatenessMinute, ...]  # oldest first; minutes without runs are left out
    takeover_marks: tuple[datetime, ...]  # takeovers in the same stretch
    running: int
    parked: int
    failed_last_hour: int
    jobs: int
    paused: int
    quarantined: tuple[QuarantinedJob, ...]
    proposals: tuple[ProposalView, ...]  # open ones, oldest first
    counters: Mapping[str, int]
    settings: Mapping[str, str]  # those that were set
    halt: Halt | None = None  # None too where an older version halted it
    forced_to: str | None = None  # the node that is forced to lead, until it is confirmed
    lost: tuple[LostRun, ...] = ()  # of the last hour, newest first; the newest 20 at most
    pause_of_all: PauseOfAll | None = None

    @property
    def due(self) -> int:
        """Claims that could start now."""
        return sum(queue.due for queue in self.queues)

    @property
    def ahead(self) -> int:
        """Claims written ahead of their time."""
        return sum(queue.ahead for queue in self.queues)

    @property
    def catch_up(self) -> int:
        return sum(queue.catch_up for queue in self.queues)

    @property
    def oldest(self) -> datetime | None:
        """When the claim that has waited longest could have started; None when nothing is due."""
        return min((queue.oldest for queue in self.queues if queue.oldest is not None), default=None)

    @property
    def queues_without_workers(self) -> tuple[QueueView, ...]:
        return tuple(queue for queue in self.queues if not queue.workers and (queue.due or queue.ahead))


@dataclass(frozen=True, slots=True)
class Undecided:
    """Jobs with a tick that fell due undecided, out of `looked_at` jobs."""

    jobs: int
    oldest: datetime | None
    oldest_job: str | None
    looked_at: int
