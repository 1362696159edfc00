"""The leader's heartbeat: a counter in a row of its own, moved by a connection of its own.

While it moves, no leader lease lapses; that it can be moved at all shows that the
leader reaches the database. It never waits for the loop's statements. A beat that
is refused because the term is over is the first to know it.
"""

from __future__ import annotations

import structlog

from sexton.clock import Clock
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Store
from sexton_scheduler.node_state import NodeState

BEATS_PER_SESSION = 3
IDLE_SECONDS = 60.0  # a follower has no heart to beat; `beat_now` wakes it


class HeartbeatLoop:
    """Beats for as long as its node leads, or races: a race lives while any of its racers beats."""

    def __init__(self, store: Store, clock: Clock, state: NodeState) -> None:
        self._store = store
        self._clock = clock
        self._state = state
        self._missed_since: float | None = None  # by the clock's elapsed seconds, and how many beats since
        self._missed = 0
        self._log = structlog.get_logger("sexton.scheduler")

    def run(self) -> None:
        """Beat until the node stops."""
        while not self._state.is_stopping:
            self._clock.wait(self._state.beat_now, self.step())

    def step(self) -> float:
        """One beat, if the node leads or races; seconds until the next."""
        self._state.beat_now.clear()
        leading = self._state.deciding
        if leading is None:
            self._missed_since, self._missed = None, 0
            return IDLE_SECONDS
        interval = self._state.settings.session.total_seconds() / BEATS_PER_SESSION
        try:
            is_current = self._store.terms.beat(leading.term, leading.confirmation)
        except DatabaseUnreachable as error:
            self._note_missed(leading.term, error)
            return min(interval, 1.0)
        except Exception:
            # A leader whose heart stands still is taken for dead, again and again: no fault of one beat may end it.
            self._log.exception("heartbeat.failed", term=leading.term)
            return min(interval, 1.0)
        self._note_answered(leading.term)
        if not is_current:
            self._state.supersede(leading.term)
            return IDLE_SECONDS
        return interval

    def _note_missed(self, term: int, error: DatabaseUnreachable) -> None:
        """Say it once an outage."""
        self._missed += 1
        self._state.counts.missed("heartbeat")
        if self._missed_since is None:
            self._missed_since = self._clock.elapsed()
            self._log.warning("heartbeat.missed", term=term, error=str(error))

    def _note_answered(self, term: int) -> None:
        if self._missed_since is not None:
            seconds = round(self._clock.elapsed() - self._missed_since, 1)
            self._log.info("heartbeat.answered", term=term, after_seconds=seconds, missed=self._missed)
        self._missed_since, self._missed = None, 0
