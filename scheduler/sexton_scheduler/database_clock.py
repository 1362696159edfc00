"""The database's clock as a node follows it, and what it does when that clock jumps.

Every reading of the cluster row is one of the clock too. After a jump of more than
2 s the leader decides nothing until a second node reads the same, an operator says
`sexton clock accept`, or a lone node has waited; jump and acceptance are recorded as events.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from sexton.clock import Clock, DatabaseTime
from sexton.store.protocol import Store
from sexton.terms import ClusterState
from sexton_scheduler.core.clock_trust import ClockTrust, Reading

_FRESH = timedelta(seconds=15)  # a report not older than this speaks of the clock as it is
_SAME_JUMP = timedelta(minutes=10)  # by the clock that jumped; nodes notice it as they look, one that was frozen later
_JUMPS_READ = 50
_JUMPED = "clock.jumped"


class DatabaseClock:
    """Database time for one loop."""

    def __init__(self, store: Store, clock: Clock, node: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._time = DatabaseTime(clock)
        self._trust = ClockTrust()
        self.host_offset = timedelta(0)  # the database's clock minus this host's, as last read
        self._log = structlog.get_logger("sexton.scheduler")

    def read_cluster(self) -> ClusterState:
        """The cluster row, and with it the clock."""
        asked_at = self._clock.elapsed()
        state = self._store.terms.cluster()
        answered_at = self._clock.elapsed()
        self._time.observe(state.database_now, asked_at, answered_at)
        self.host_offset = state.database_now - self._clock.wall()
        if self._trust.saw(self._time.is_trusted, answered_at, state.clock_accepts):
            jump = self._jump_seconds()
            self._log.warning("clock.jumped", jump_seconds=jump, node=self._node)
            self._store.edits.record(self._node, _JUMPED, {"jump_seconds": jump})
        if self._trust.is_in_doubt:
            self._reconsider(state, asked_at, answered_at)
        return state

    @property
    def jump(self) -> timedelta | None:
        """By how much the clock jumped, while that is in doubt."""
        return self._time.jump

    @property
    def may_decide(self) -> bool:
        """Whether ticks may be decided by this clock now."""
        return self._time.is_trusted

    def now(self) -> datetime:
        """Database time now (UTC); after the first ``read_cluster``."""
        return self._time.now()

    def _reconsider(self, state: ClusterState, asked_at: float, answered_at: float) -> None:
        jumps = self._jumps(state.database_now)
        others = [
            Reading(node.clock_offset, jumps.get(node.name))
            for node in self._store.reads.nodes()
            if node.name != self._node and node.age <= _FRESH
        ]
        own = Reading(self.host_offset, self._time.jump)
        reason = self._trust.reason_to_accept(answered_at, state.clock_accepts, own, others)
        if reason is None:
            return
        jump = self._jump_seconds()
        self._time.accept(state.database_now, asked_at, answered_at)
        self._trust.saw(True, answered_at, state.clock_accepts)
        self._log.warning("clock.accepted", jump_seconds=jump, reason=reason, node=self._node)
        self._store.edits.record(self._node, "clock.accepted", {"jump_seconds": jump, "reason": reason})

    def _jumps(self, now: datetime) -> dict[str, timedelta]:
        """By node, the last jump it recorded, where that is of now: a record outlasts the doubt, a report does not."""
        recorded = self._store.reads.events_page(limit=_JUMPS_READ, action=_JUMPED)
        return {
            event.actor: timedelta(seconds=float(str(event.detail["jump_seconds"])))
            for event in reversed(recorded)
            if abs(event.at - now) <= _SAME_JUMP
        }

    def _jump_seconds(self) -> float:
        return 0.0 if self._time.jump is None else round(self._time.jump.total_seconds(), 3)
