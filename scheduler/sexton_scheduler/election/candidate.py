"""The protocol between a node and whatever elects it: ZooKeeper, or the database leader lease.

A candidate says who may *try* to lead; the database decides who does (invariant 1).
It is a passive object that the node's loop asks at every step, so that the
simulator can drive the same loop; an implementation may run threads of its own,
and wakes the loop by the wake-up it was given whenever its standing changes.

    OUT ──campaign()──▶ WAITING ◀──▶ AWAY          AWAY: the coordinator cannot be reached
     ▲                     │          │
     │                     ▼          │
     │                  ELECTED ◀─────┘
     │                   │  ▲
     │                   ▼  │
     │               SUSPENDED ──▶ LOST ──campaign()──▶ WAITING | AWAY
     └── resign() from anywhere

* A campaign that has not been won yet never ends by itself: expired sessions and
  broken connections are mended inside it (WAITING, AWAY).
* Only an election can be SUSPENDED (the connection broke; the session may live) or
  LOST (the session or the place in line is gone; this campaign is over).
* A leader that is SUSPENDED or LOST goes on, unconfirmed, until a statement of its
  own says that its term is superseded (invariant 3). It campaigns again after LOST,
  and ELECTED then confirms the term it already has.
* All methods are called by one thread. None raises for a service that is away, and
  none but ``confirm`` and ``resign`` may block for longer than one database read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from sexton.terms import ElectedBy


class Standing(StrEnum):
    """Where a candidate stands; see the drawing above."""

    OUT = "out"
    WAITING = "waiting"
    AWAY = "away"
    ELECTED = "elected"
    SUSPENDED = "suspended"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What a candidate says of its node to the coordinator, and the node of itself to the cluster."""

    name: str
    address: str
    version: str
    pid: int


class Candidate(Protocol):
    """One node's candidacy."""

    @property
    def elected_by(self) -> ElectedBy:
        """What a term taken on this candidate's word is recorded as."""
        ...

    def campaign(self) -> None:
        """Stand for election, from now until elected or ``resign``. Does nothing while a campaign runs or an
        election holds; begins a fresh one (a fresh lock, behind those who wait) from OUT and LOST."""
        ...

    def standing(self) -> Standing:
        """Where this candidate stands now."""
        ...

    def confirm(self) -> bool:
        """Ask the coordinator itself, now, whether the election holds; the last question before the term is taken.

        ZooKeeper: after a sync, the own znode is first in line and its owner is the present session. False too
        when it does not answer within a few seconds; an election found void then shows in ``standing`` as LOST.
        """
        ...

    def resign(self) -> None:
        """Give up the election or the campaign, cleanly, so that another wins within milliseconds; then OUT.

        Best effort: where the coordinator is away, the session is left to lapse.
        """
        ...

    def seated(self) -> None:
        """The node has taken the term in another way (by force). Where the database is the coordinator, that is an
        election; to another coordinator it means nothing."""
        ...

    def rest(self) -> None:
        """Resign, and let the coordinator go: nothing of it is used or asked until the next ``campaign``."""
        ...

    def adopt(self, session: timedelta) -> None:
        """Use this session length from the next session or watch on (the cluster's setting has changed)."""
        ...

    def describe(self) -> str:
        """The coordinator's status in a few words for screens: ``session 0x1…, connected``."""
        ...

    def close(self) -> None:
        """Resign and release every thread and connection. Nothing may be called afterwards."""
        ...
