"""What the threads of one node tell each other.

Every attribute holds one immutable value and is replaced as a whole: readers in
other threads see the old one or the new one. Who writes what:

* the loop: ``leading``, ``settings``, ``view``;
* the heartbeat: ``superseded_term``, once a beat of that term was refused;
* the candidate's watch: ``coordinator_servers``;
* anybody: ``stop()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.clock import Wakeup
from sexton.settings import ClusterSettings
from sexton.terms import Confirmation, CoordinatorServer


@dataclass(frozen=True, slots=True)
class Leading:
    """The term this node leads, as far as it knows."""

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


class NodeState:
    """One node's shared state; ``wakeup`` wakes its loop, ``beat_now`` its heartbeat."""

    def __init__(self, wakeup: Wakeup, beat_now: Wakeup) -> None:
        self.wakeup = wakeup
        self.beat_now = beat_now
        self.leading: Leading | None = None
        self.superseded_term = 0
        self.settings = ClusterSettings()
        self.view = NodeView()
        self.coordinator_servers: tuple[CoordinatorServer, ...] = ()
        self.is_stopping = False

    def lead(self, leading: Leading) -> None:
        """This node leads, or its term's confirmation has changed; the heartbeat tells the cluster."""
        self.leading = leading
        self.beat_now.set()

    def follow(self) -> None:
        """This node leads no more."""
        self.leading = None

    def supersede(self, term: int) -> None:
        """A statement said that ``term`` is over; the loop steps down at its next step."""
        self.superseded_term = max(self.superseded_term, term)
        self.wakeup.set()

    def saw_servers(self, servers: tuple[CoordinatorServer, ...]) -> None:
        """The coordinator's servers said what they are."""
        self.coordinator_servers = servers

    @property
    def is_superseded(self) -> bool:
        leading = self.leading
        return leading is not None and leading.term <= self.superseded_term

    def stop(self) -> None:
        """Hand over if leading, then end; returns at once."""
        self.is_stopping = True
        self.wakeup.set()
        self.beat_now.set()
