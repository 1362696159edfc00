"""The cluster's figures as a node reads them for its metrics, every few seconds, with a thread and connection for that.

Only a node that serves metrics has it. A database that is slow or away makes the figures old and holds up nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import structlog

from sexton.catch_up import CatchUp
from sexton.clock import Clock, Wakeup
from sexton.cluster_views import Overview
from sexton.errors import DatabaseUnreachable, NotFound
from sexton.store.protocol import Store
from sexton.views import TakeoverView
from sexton_scheduler.node_state import NodeState

READ_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What was read at once. ``read_at``: in elapsed seconds; ``takeover``: the newest, if there is one."""

    read_at: float
    overview: Overview
    takeover: TakeoverView | None
    catch_up: CatchUp


class FiguresThread:
    """Reads until its node stops; ``newest`` is what it read last."""

    def __init__(self, open_store: Callable[[], Store], clock: Clock, state: NodeState) -> None:
        self._open_store = open_store
        self._clock = clock
        self._state = state
        self.wakeup: Wakeup = clock.wakeup()
        self.newest: ClusterFigures | None = None

    def run(self) -> None:
        """Read, in the thread that calls this; no fault of one reading ends the others."""
        with closing(self._open_store()) as store:
            while not self._state.is_stopping:
                self.step(store)
                self._clock.wait(self.wakeup, READ_EVERY)

    def step(self, store: Store) -> None:
        """Read once."""
        try:
            read_at = self._clock.elapsed()
            overview, takeovers = store.reads.overview(), store.reads.takeovers(1)
            self.newest = ClusterFigures(read_at, overview, takeovers[0] if takeovers else None, store.reads.catch_up())
        except (DatabaseUnreachable, NotFound):
            self._state.counts.missed("figures")
        except Exception:
            structlog.get_logger("sexton.scheduler").exception("figures.failed")
