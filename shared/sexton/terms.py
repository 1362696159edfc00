"""Terms: who leads, under which number, and how a node comes to lead.

The database decides what counts (invariant 1): a term is taken by one
compare-and-set on the ``cluster`` row, and every leader write carries the term
it believes in, in the same statement (invariant 3).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sexton.races import RaceCounts

GAP_EVENT = "term.gap"
"""The event of a gap in a term that goes on, at its end: its leader was frozen, the database was away, the cluster was
halted. What fell due in it was decided by the pass that ends it."""


def gap_told(gap_from: datetime) -> str:
    """Since when no claims were written, as the event has it."""
    return gap_from.isoformat().replace("+00:00", "Z")


class Strategy(StrEnum):
    LEADER = "leader"
    RACE = "race"


class ElectedBy(StrEnum):
    """What gave a node the right to try."""

    ZOOKEEPER = "zookeeper"
    DATABASE = "database"
    FORCED = "forced"
    RACE = "race"  # nobody: the term of a race


class Confirmation(StrEnum):
    """What the coordinator last said about this node's leadership."""

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"  # suspended, or lost but not superseded: the leader goes on
    DEGRADED = "degraded"  # taken over by the leader lease while ZooKeeper was away


class EndedBy(StrEnum):
    """How a leadership ended, as its successor saw it."""

    NONE = "none"  # the first leader of a cluster
    RESIGNED = "resigned"  # a clean hand-over: SIGTERM or `leader resign`
    VANISHED = "vanished"  # the heartbeat stopped: killed, frozen or cut off
    FORCED = "forced"  # it lived, and another was forced to lead


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The ``cluster`` row, read without a lock. ``leader`` is None before the first and after a clean hand-over."""

    cluster_id: str
    term: int
    leader: str | None
    leader_since: datetime | None
    elected_by: ElectedBy | None
    strategy: Strategy
    coordinator: str
    halted: bool
    inputs_id: str
    resign_requested: bool
    database_now: datetime
    forced_to: str | None = None  # the node forced to lead; only while it is heard of and has the cluster's inputs
    has_lapsed_force: bool = False  # a force stands in the row whose node is not heard of, or may not lead
    clock_accepts: int = 0  # how often an operator has taken a jump of the clock for the truth
    place: str = ""  # where the ledger was recorded to be; "" where that is not known
    is_displaced: bool = False  # it is elsewhere now: restored or promoted, and not settled yet
    may_have_run_upto: datetime | None = None  # undecided ticks up to here of jobs that run at most once: to be held
    has_open_pass: bool = False  # of a race: missed ticks are being decided, or the first racers have not looked yet


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The leader's heartbeat row: a counter that moves while the leader's heartbeat thread reaches the database.

    ``has_leader``: whether anybody sat in the leader's seat at the same moment.
    """

    term: int
    counter: int
    at: datetime
    confirmation: Confirmation
    has_leader: bool


@dataclass(frozen=True, slots=True)
class TermTaken:
    """A won compare-and-set on the term, with what the new leader must record about its predecessor."""

    term: int
    taken_at: datetime
    predecessor: str | None
    predecessor_ended: EndedBy
    gap_from: datetime | None  # the predecessor's last sign of life; None for the first leader


@dataclass(frozen=True, slots=True)
class CoordinatorServer:
    """A server of the coordinator as one node sees it.

    ``state``: ``leader``, ``follower``, ``observer``, ``standalone``, ``read-only``; ``answers`` (and may not say
    which); ``not serving`` (it answers, and has no quorum), ``silent`` (no answer in time) or ``refused``.
    """

    address: str
    state: str

    @property
    def serves(self) -> bool:
        return self.state not in ("not serving", "silent", "refused")


def servers_text(servers: Sequence[CoordinatorServer]) -> str:
    """The servers as a JSON list of ``[address, state]``."""
    return json.dumps([[server.address, server.state] for server in servers])


def servers_of(text: str) -> tuple[CoordinatorServer, ...]:
    """What ``servers_text`` wrote."""
    return tuple(CoordinatorServer(str(address), str(state)) for address, state in json.loads(text))


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node says of itself, every few seconds, whatever its role."""

    name: str
    address: str
    version: str
    pid: int
    role: str  # "leader" | "follower" | "racer"
    confirmation: Confirmation | None
    coordinator_status: str  # e.g. "session 0x1..., connected" or "database leader lease"
    jobs_warm: int
    behind_ms: int  # age of its view of the jobs
    clock_offset_ms: int  # database clock minus this host's clock
    claims_upto: datetime | None  # leader: claims are written up to here
    inputs_id: str
    coordinator_servers: tuple[CoordinatorServer, ...] = ()  # none for the database leader lease
    clock_jump_ms: int | None = None  # while this node doubts the database's clock: by how much it jumped
    raced: RaceCounts = field(default_factory=RaceCounts)  # since this process began
