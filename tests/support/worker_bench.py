"""A worker loop with two slots on a fake store, clock and execution: what the tests of the loop stand on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sexton.claims import State
from sexton.errors import DatabaseUnreachable
from sexton_worker.lease_book import LeaseBook
from sexton_worker.loop import WorkerLoop, WorkerSettings
from tests.support.runs import a_grant
from tests.support.worker_fakes import FakeClock, FakeExecution, FakeStore, FakeWakeup, a_definition


class Bench:
    """A worker loop with two slots, and all that it stands on."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeStore(self.clock)
        self.grants = self.store.grants
        self.grants.definitions_of[1, 1] = a_definition()
        self.wakeup = FakeWakeup()
        self.execution = FakeExecution(self.clock, self.wakeup)
        self.book = LeaseBook()
        settings = WorkerSettings("w1", ("default",), 2, drain=timedelta(seconds=30))
        self.loop = WorkerLoop(
            self.store.as_store(), self.clock, self.execution, self.book, self.wakeup, settings, lambda: 0.5
        )

    def give(self, *tokens: int, at_most_once: bool = False) -> None:
        self.grants.ready += [a_grant(token, at_most_once=at_most_once) for token in tokens]

    def outcomes(self) -> dict[int, State]:
        return {result.token: result.outcome for result in self.grants.results}

    def rooms(self) -> Sequence[int]:
        return [request.room for request in self.grants.requests]

    def work(self, steps: int = 1) -> float:
        """Steps as ``run`` makes them, without the waits."""
        seconds = 0.0
        for _ in range(steps):
            self.wakeup.clear()
            seconds = self.loop.step()
        return seconds


def raising(keys: object) -> object:
    """What a call does while the database is away."""
    raise DatabaseUnreachable("away")
