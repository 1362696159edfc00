"""Who leads: written by nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.terms import ClusterState, Confirmation, ElectedBy, Heartbeat, NodeReport, TermTaken


class TermStore(Protocol):
    """Who leads. Written by nodes."""

    def cluster(self) -> ClusterState:
        """The cluster row, without a lock."""
        ...

    def enroll(self, coordinator: str, inputs_id: str, zone_data: str, engine: int) -> ClusterState:
        """Record coordinator and inputs at the first start of a cluster.

        Raises ``WrongCluster`` where another coordinator is recorded. A node whose inputs differ from
        ``ClusterState.inputs_id`` may enroll but must not lead (invariant 8). An id from before public holidays were
        among the inputs (``sexton.inputs``) is completed.
        """
        ...

    def take(self, expected_term: int, node: str, elected_by: ElectedBy) -> TermTaken | None:
        """Raise the term from ``expected_term`` by compare-and-set and record the takeover; None: it had moved.

        Waits at most 1 s for whoever locks the cluster row; then terminates that backend (PostgreSQL) and
        counts it in the takeover. After it returns a term, no statement of an older term writes anything.

        By ``FORCED`` only for the node that a force names, which then stands on until ``end_force``; a term taken
        by anything else ends a force.
        """
        ...

    def leave(self, term: int) -> bool:
        """Clean hand-over: no leader from now on, if the term is still this one. Ends a force to this leader."""
        ...

    def end_force(self, term: int) -> bool:
        """End a force whose node leads under ``term``, or that has lapsed; whether there was one. Recorded."""
        ...

    def beat(self, term: int, confirmation: Confirmation) -> bool:
        """Move the heartbeat counter; whether ``term`` is still current. Never touches the cluster row's lock.

        A confirmation other than the last beat's is an event.
        """
        ...

    def heartbeat(self) -> Heartbeat:
        """The heartbeat row as it stands, and whether anybody leads."""
        ...

    def report(self, report: NodeReport) -> str | None:
        """Insert or refresh this node's row; ``seen_at`` becomes now.

        Who reported under this name within the last 5 s, as ``process PID on ADDRESS``, if it was another process.
        """
        ...

    def forget(self, node: str) -> None:
        """Remove a node's row (a clean shutdown)."""
        ...

    def terminate_stuck(self, older_than: timedelta = timedelta(seconds=2)) -> int:
        """Terminate Sexton's backends whose transaction is older and waits for its client; how many. SQLite: 0."""
        ...
