"""What the threads of one node tell each other.

Every attribute holds one immutable value and is replaced as a whole: readers in
other threads see the old one or the new one. Who writes what:

* the loop: ``leading``, ``racing``, ``raced``, ``settings``, ``view``;
* the heartbeat: ``superseded_term``, once a beat of that term was refused;
* the candidate's watch: ``coordinator_servers``;
* anybody: ``stop()``; ``counts`` says itself who writes what.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.clock import Wakeup
from sexton.races import RaceCounts
from sexton.settings import ClusterSettings
from sexton.terms import Confirmation, CoordinatorServer
from sexton_scheduler.node_counts import NodeCounts


@dataclass(frozen=True, slots=True)
class Leading:
    """The term this node leads or races under, as far as it knows."""

    term: int
    confirmation: Confirmation


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the loop says of itself. ``jobs_read_at``: elapsed seconds of its last look at the jobs."""

    jobs_warm: int = 0
    jobs_read_at: float | None = None
    coordinator_status: str = ""
    clock_offset: timedelta = timedelta(0)
    claims_upto: datetime | None = None
    clock_jump: timedelta | None = None  # while the database's clock is in doubt
    standing: str | None = None  # the candidate's; None while none is asked
    is_eligible: bool = True  # its inputs are the cluster's (invariant 8)


class NodeState:
    """One node's shared state; ``wakeup`` wakes its loop, ``beat_now`` its heartbeat."""

    def __init__(self, wakeup: Wakeup, beat_now: Wakeup) -> None:
        self.wakeup = wakeup
        self.beat_now = beat_now
        self.leading: Leading | None = None
        self.racing: Leading | None = None  # the race's term; a node leads, races or follows
        self.raced = RaceCounts()
        self.superseded_term = 0
        self.settings = ClusterSettings()
        self.view = NodeView()
        self.counts = NodeCounts()
        self.coordinator_servers: tuple[CoordinatorServer, ...] = ()
        self.is_stopping = False

    def lead(self, leading: Leading) -> None:
        """This node leads, or its term's confirmation has changed; the heartbeat tells the cluster."""
        self.leading = leading
        self.beat_now.set()

    def race(self, term: int) -> None:
        """This node races under ``term``; its heartbeat beats for the race."""
        self.racing = Leading(term, Confirmation.CONFIRMED)
        self.beat_now.set()

    def follow(self) -> None:
        """This node leads, or races, no more."""
        self.leading = self.racing = None

    def count_race(self, more: RaceCounts) -> None:
        """What racing cost, once more."""
        self.raced = self.raced.plus(more)

    @property
    def deciding(self) -> Leading | None:
        """The term under which this node decides ticks, as leader or racer; None while it follows."""
        return self.leading or self.racing

    @property
    def role(self) -> str:
        """The role it reports."""
        return "leader" if self.leading is not None else "racer" if self.racing is not None else "follower"

    def supersede(self, term: int) -> None:
        """A statement said that ``term`` is over; the loop steps down, or leaves the race, at its next step."""
        self.superseded_term = max(self.superseded_term, term)
        self.wakeup.set()

    def saw_servers(self, servers: tuple[CoordinatorServer, ...]) -> None:
        """The coordinator's servers said what they are."""
        self.coordinator_servers = servers

    @property
    def is_superseded(self) -> bool:
        deciding = self.deciding
        return deciding is not None and deciding.term <= self.superseded_term

    def stop(self) -> None:
        """Hand over if leading, then end; returns at once."""
        self.is_stopping = True
        self.wakeup.set()
        self.beat_now.set()
