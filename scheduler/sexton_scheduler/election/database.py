"""The database leader lease as a ``Candidate``: who sees the leader's heartbeat stand still may try.

One machine, tests, and sites without ZooKeeper elect by it alone; a ZooKeeper
cluster keeps it beside the coordinator, for the hour in which ZooKeeper is away.
Stillness is measured by this node's own elapsed clock over successful reads
(``core.heartbeat_watch``); that two nodes may see it at once costs a lost
compare-and-set, no more (invariant 1).

A leader that left has left an empty seat: it is taken at once, but not by the one
who left while others may want it.
"""

from __future__ import annotations

from datetime import timedelta

from sexton.clock import Clock
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Store
from sexton.terms import ElectedBy
from sexton_scheduler.core.heartbeat_watch import HeartbeatWatch
from sexton_scheduler.election.candidate import Standing

_LOOKS_TO_A_BREAK = 3


class DatabaseCandidate:
    """A ``Candidate`` that reads the database at each ``standing``: ask it a few times per ``patience``."""

    elected_by = ElectedBy.DATABASE

    def __init__(self, store: Store, clock: Clock, patience: timedelta, *, empty_seat_at_once: bool = True) -> None:
        self._terms = store.terms
        self._clock = clock
        self._patience = patience.total_seconds()
        self._look_seconds = 0.0
        self._empty_seat_at_once = empty_seat_at_once
        self._watch = HeartbeatWatch()
        self._standing = Standing.OUT
        self._not_before = 0.0
        self._has_leader = False

    def campaign(self) -> None:
        if self._standing is Standing.OUT:
            self._watch.interrupted()
            self._standing = Standing.WAITING

    def standing(self) -> Standing:
        if self._standing in (Standing.WAITING, Standing.AWAY):
            self._standing = self._look()
        return self._standing

    def confirm(self) -> bool:
        """Whether the heartbeat still stands where the watch saw it, or the seat is still empty."""
        if self._standing is not Standing.ELECTED:
            return False
        self._standing = self._look()
        return self._standing is Standing.ELECTED

    def resign(self) -> None:
        if self._standing is Standing.ELECTED:
            self._not_before = self._clock.elapsed() + self._patience
        self._standing = Standing.OUT

    def rest(self) -> None:
        self.resign()

    def seated(self) -> None:
        self._standing = Standing.ELECTED

    def leader_still_for(self) -> float | None:
        """Seconds for which the leader's heartbeat has stood still, as of the last ``standing``; None where nobody
        leads, or nothing is known."""
        if self._standing is not Standing.WAITING or not self._has_leader or self._watch.seen is None:
            return None
        return self._watch.still_for()

    def adopt(self, session: timedelta) -> None:
        self._patience = session.total_seconds()

    def looked_at_every(self, seconds: float) -> None:
        """How far apart two ``standing`` are at most, where nothing is wrong: so much is no break of the watch."""
        self._look_seconds = seconds

    def describe(self) -> str:
        away = ", database away" if self._standing is Standing.AWAY else ""
        return f"database leader lease{away}"

    def close(self) -> None:
        self.resign()

    def _look(self) -> Standing:
        try:
            beat = self._terms.heartbeat()
        except DatabaseUnreachable:
            self._watch.interrupted()
            return Standing.AWAY
        self._has_leader = beat.has_leader
        elapsed = self._clock.elapsed()
        longest_break = max(self._patience / 2, _LOOKS_TO_A_BREAK * self._look_seconds)
        self._watch.saw(beat.term, beat.counter, elapsed, longest_break)
        is_free = self._empty_seat_at_once and not self._has_leader and elapsed >= self._not_before
        return Standing.ELECTED if is_free or self._watch.still_for() >= self._patience else Standing.WAITING
