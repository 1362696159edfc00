"""When a leader led and nothing was in its way: the times for which the judge asks that claims were written ahead.

A halt is in its way; so is a jump of the database's clock, until every node has accepted it, and for a while longer
where it went back: what was decided before it was decided for later instants.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sexton_tui.simulation.judge import Undisturbed
from sexton_tui.simulation.switching_store import Network
from sexton_tui.simulation.watch import Term, Watch
from sexton_tui.simulation.world import SECOND, World

_LOOK = 2 * SECOND
_JUMP_TAKES = timedelta(minutes=20)  # until the last of those who accept it has acted, and the backlog is decided


class QuietTimes:
    """Looks at the cluster every two seconds of virtual time; what it misses between, the judge's slack allows for."""

    def __init__(self, world: World, network: Network, watch: Watch) -> None:
        self.stretches: list[Undisturbed] = []
        self._world = world
        self._network = network
        self._watch = watch
        self._term: Term | None = None
        self._since: datetime | None = None
        self._jumped = 0
        self._not_before: datetime | None = None
        world.after(_LOOK, self._look)

    def finish(self) -> list[Undisturbed]:
        """All stretches up to now."""
        self._close()
        return self.stretches

    def _look(self) -> None:
        leader = self._watch.leader
        is_quiet = leader is not None and leader.process.is_running and self._network.is_clear(leader.process)
        is_quiet = is_quiet and not self._is_impeded()
        if not is_quiet or leader is not self._term:
            self._close()
        if is_quiet and self._since is None:
            self._term, self._since = leader, self._world.now()
        self._world.after(_LOOK, self._look)

    def _is_impeded(self) -> bool:
        now = self._world.now()
        if self._world.jumped != self._jumped:
            jump = timedelta(microseconds=self._world.jumped - self._jumped)
            self._close(now - jump)  # by the clock that the stretch began with
            self._jumped = self._world.jumped
            self._not_before = now + max(-jump, timedelta(0)) + _JUMP_TAKES
        if self._not_before is not None and now < self._not_before:
            return True
        return self._watch.is_impeded()

    def _close(self, until: datetime | None = None) -> None:
        if self._since is not None:
            self.stretches.append(Undisturbed(self._since, until or self._world.now()))
        self._term = self._since = None
