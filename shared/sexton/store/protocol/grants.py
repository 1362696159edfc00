"""The worker's statements: grants, results, leases.

What there is one of for each run is a named tuple: a frozen dataclass of as many fields costs seven times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sexton.claims import Origin, State


class Grant(NamedTuple):
    """A claim in a worker's hands under one token, until ``lease_expires_at``."""

    job_id: int
    scheduled_at: datetime
    revision: int
    origin: Origin
    token: int
    attempt: int
    retries: int
    slot: int
    jitter: timedelta
    at_most_once: bool
    lease_expires_at: datetime
    priority: int = 0
    losses: int = 0  # how often it took with it what ran it


class RunResult(NamedTuple):
    """How a run ended. ``outcome`` READY: back to the queue at ``retry_at`` (a retry, or given back)."""

    job_id: int
    scheduled_at: datetime
    token: int
    attempt: int
    outcome: State
    finished_at: datetime
    started_at: datetime | None = None
    exit_code: int | None = None
    error: str = ""
    retry_at: datetime | None = None
    uses_retry: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    is_loss: bool = False  # it took with it what ran it: one more loss of the claim


@dataclass(frozen=True, slots=True)
class StepRequest:
    """Write results, promote what they freed, pull new work: one transaction."""

    worker_id: int
    queues: tuple[str, ...]
    room: int  # how many grants this worker can take now
    lease: timedelta
    catch_up_concurrency: int
    results: tuple[RunResult, ...] = ()
    paced_room: int | None = None  # how many of them may be paced claims (catch-up, held, backfill); None: all

    def room_for_paced(self, granted: Sequence[Grant]) -> int:
        """How many more paced claims it may be granted, beside ``granted``."""
        room = self.room - len(granted)
        if self.paced_room is None:
            return room
        return min(room, self.paced_room - sum(grant.origin.is_paced for grant in granted))


@dataclass(frozen=True)
class StepResult:
    """What a step came to. How many there are is known at once; ``read`` is called when they are first asked for, so
    that whoever is in haste may send the next step before."""

    granted: int
    priority: int  # of the first grant
    has_paced: bool  # whether there may be grants under the catch-up budget among them
    refused: int  # results that did not count, and were counted as stale (invariant 4)
    picked: int  # claims looked at; 0 grants with picked > 0 is not idle
    next_available_at: datetime | None  # of these queues, strictly ahead of now
    now: datetime
    read: Callable[[], tuple[frozenset[int], tuple[Grant, ...]]]
    place: str = ""  # where the ledger is recorded to be: another one after a restore or a promotion

    @cached_property
    def _both(self) -> tuple[frozenset[int], tuple[Grant, ...]]:
        return self.read()

    @property
    def accepted(self) -> frozenset[int]:
        """The tokens whose results counted."""
        return self._both[0]

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What was granted, in the order in which it is to start."""
        return self._both[1]


@dataclass(frozen=True, slots=True)
class Renewal:
    """Which tokens are still held (lease renewed from the database's now), and which are asked to stop."""

    held: frozenset[int]
    cancel: frozenset[int]
    now: datetime
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True)
class Requeued:
    """A claim whose lease ran out, and what became of it: READY or LOST."""

    job_id: int
    scheduled_at: datetime
    token: int
    state: State


@dataclass(frozen=True, slots=True)
class StopRequests:
    """What a worker was asked: to stop the runs of these tokens; to take no more and end (``drain``)."""

    cancel: frozenset[int]
    drain: bool


def nothing() -> None:
    """What there is to do meanwhile by default."""


class GrantStore(Protocol):
    """The worker's statements. Every write is conditional on the run's token (invariant 4)."""

    def register(
        self,
        name: str,
        address: str,
        version: str,
        pid: int,
        queues: Sequence[str],
        slots: int,
        again: int | None = None,
    ) -> int:
        """A worker's row; its id, which no other worker has or had, not even one that a restored backup lacks (on
        SQLite, which is restored while nothing runs: that is in the ledger). ``again``: the id that it has already,
        for a worker whose row a restored ledger may lack."""
        ...

    def seen(self, worker_id: int, busy: int, draining: bool) -> None:
        """Refresh the worker's row."""
        ...

    def unregister(self, worker_id: int) -> None:
        """A clean stop: ``stopped_at`` becomes now."""
        ...

    def prepare(self, results: tuple[RunResult, ...]) -> None:
        """Do now what takes time of a ``step`` that will have exactly these results."""
        ...

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        """Complete, promote and pull in one transaction. A slot never has two running claims.

        ``meanwhile`` is called while the database works, or before: once or, where contention made it try again,
        several times. It must not use this store but for ``prepare``."""
        ...

    def definitions(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The texts of the definitions of these ``(job_id, revision)`` pairs, of those that are there."""
        ...

    def mark_started(self, grants: Sequence[Grant]) -> frozenset[int]:
        """Write ``started_at``; the tokens that still count. An at-most-once run starts only if its own is there."""
        ...

    def renew(self, worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
        """Renew the leases of these tokens that this worker still holds."""
        ...

    def stop_requests(self, worker_id: int) -> StopRequests:
        """What this worker is asked to stop now; ``Channel.STOPS`` is notified when there is more."""
        ...

    def requeue_expired(self, limit: int = 500, poison_after: int = 3) -> tuple[Requeued, ...]:
        """Claims whose lease ran out: back to READY with the slot freed, or LOST. Only for callers that have
        themselves reached the database without a break for one lease."""
        ...

    def sweep(self) -> int:
        """Promote the oldest parked claim of every free slot; how many."""
        ...

    def orphans(self, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
        """Grants to this worker that it does not know of (an answer was lost): to be given back. Never one that must
        not run twice and began, whoever began it; none of a ledger that was restored and is not settled yet."""
        ...
