"""When a leader led and nothing was in its way: the times for which the judge asks that claims were written ahead."""

from __future__ import annotations

from datetime import datetime

from sexton_tui.simulation.judge import Undisturbed
from sexton_tui.simulation.switching_store import Network
from sexton_tui.simulation.watch import Term, Watch
from sexton_tui.simulation.world import SECOND, World

_LOOK = 2 * SECOND


class QuietTimes:
    """Looks at the cluster every two seconds of virtual time; what it misses between, the judge's slack allows for."""

    def __init__(self, world: World, network: Network, watch: Watch) -> None:
        self.stretches: list[Undisturbed] = []
        self._world = world
        self._network = network
        self._watch = watch
        self._term: Term | None = None
        self._since: datetime | None = None
        world.after(_LOOK, self._look)

    def finish(self) -> list[Undisturbed]:
        """All stretches up to now."""
        self._close()
        return self.stretches

    def _look(self) -> None:
        leader = self._watch.leader
        is_quiet = leader is not None and leader.process.is_running and self._network.is_clear(leader.process)
        if not is_quiet or leader is not self._term:
            self._close()
        if is_quiet and self._since is None:
            self._term, self._since = leader, self._world.now()
        self._world.after(_LOOK, self._look)

    def _close(self) -> None:
        if self._since is not None:
            self.stretches.append(Undisturbed(self._since, self._world.now()))
        self._term = self._since = None
