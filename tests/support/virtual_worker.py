"""A worker on virtual time: it pulls what it may and ends each run after as long as its job takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sexton.claims import State
from sexton.store.protocol import Grant, RunResult, StepRequest, Store

_LEASE = timedelta(days=1)  # nobody renews it
_ROOM = 100


class VirtualWorker:
    """Serves the queue ``default`` while ``is_there``. ``takes``: how long a job's runs take, by id; others end at
    once. ``catch_up``: what it takes for ``catch_up.concurrency``."""

    def __init__(self, store: Store, takes: Mapping[int, timedelta], catch_up: int = 10) -> None:
        self.store = store
        self.takes = takes
        self.is_there = True
        self._worker = store.grants.register("worker", "here", "0", 1, ["default"], _ROOM)
        self._catch_up = catch_up
        self._runs: list[tuple[datetime, Grant]] = []

    def beat(self) -> None:
        """Say that it lives, as a worker does every few seconds."""
        self.store.grants.seen(self._worker, len(self._runs), draining=False)

    def step(self) -> None:
        """Write the results of what has ended, and pull; until all that ends now has ended."""
        ended = self.is_there
        while ended:
            now = self.store.now()
            self._exchange(now)
            ended = any(ends <= now for ends, _ in self._runs)

    def _exchange(self, now: datetime) -> None:
        results = tuple(
            RunResult(
                one.job_id,
                one.scheduled_at,
                one.token,
                one.attempt,
                State.SUCCEEDED,
                now,
                started_at=ends - self._takes(one),
            )
            for ends, one in self._runs
            if ends <= now
        )
        self._runs = [(ends, one) for ends, one in self._runs if ends > now]
        room = _ROOM - len(self._runs)
        done = self.store.grants.step(StepRequest(self._worker, ("default",), room, _LEASE, self._catch_up, results))
        self._runs += [(now + self._takes(one), one) for one in done.grants]

    def _takes(self, grant: Grant) -> timedelta:
        return self.takes.get(grant.job_id, timedelta(0))
