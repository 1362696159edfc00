"""A store, a clock and an execution that do what a test tells them, for the worker's loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sexton.clock import Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.jobs import JobDefinition
from sexton.settings import ClusterSettings
from sexton.store.protocol import Grant, Renewal, RunResult, StepRequest, StepResult, StopRequests, Store
from sexton.store.protocol.grants import nothing
from sexton.targets import CommandTarget
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder

START = datetime(2026, 3, 29, 1, tzinfo=UTC)
WORKER = 42


class FakeWakeup:
    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set


class FakeClock:
    """Time passes only in ``wait``, and where a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.waits: list[float] = []

    def elapsed(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def wakeup(self) -> Wakeup:
        return FakeWakeup()

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        if not wakeup.is_set():
            self.waits.append(seconds)
            self.seconds += seconds
        return wakeup.is_set()


@dataclass
class FakeGrants:
    """The worker's statements over lists. ``away``: every call raises; ``losing``: the next step's answer is lost."""

    clock: FakeClock
    ready: list[Grant] = field(default_factory=list)
    running: dict[int, Grant] = field(default_factory=dict)
    results: list[RunResult] = field(default_factory=list)
    requests: list[StepRequest] = field(default_factory=list)
    definitions_of: dict[tuple[int, int], JobDefinition] = field(default_factory=dict)
    picked_but_kept: int = 0
    next_available_at: datetime | None = None
    is_away: bool = False
    is_losing: bool = False
    broken: set[tuple[int, int]] = field(default_factory=set)
    place: str = "here"
    stolen: set[int] = field(default_factory=set)  # tokens that no longer count
    cancelled: set[int] = field(default_factory=set)
    is_drain_asked: bool = False
    started: list[int] = field(default_factory=list)
    renewed: list[list[int]] = field(default_factory=list)
    seen_with: list[tuple[int, bool]] = field(default_factory=list)
    is_registered: bool = False
    registered_as: list[int | None] = field(default_factory=list)
    asked_known: list[int] = field(default_factory=list)
    before_step: Callable[[], None] = lambda: None
    prepared: tuple[RunResult, ...] = ()

    def now(self) -> datetime:
        self._answer()
        return self.clock.wall()

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
        self._answer()
        self.is_registered = True
        self.registered_as.append(again)
        return WORKER

    def unregister(self, worker_id: int) -> None:
        self._answer()
        self.is_registered = False

    def seen(self, worker_id: int, busy: int, draining: bool) -> None:
        self._answer()
        self.seen_with.append((busy, draining))

    def prepare(self, results: tuple[RunResult, ...]) -> None:
        self.prepared = results

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        meanwhile()
        self.before_step()
        self._answer()
        self.requests.append(request)
        accepted = set()
        for result in request.results:
            if result.token in self.running and result.token not in self.stolen:
                del self.running[result.token]
                accepted.add(result.token)
                self.results.append(result)
        granted, self.ready = self.ready[: request.room], self.ready[request.room :]
        self.running.update({grant.token: grant for grant in granted})
        if self.is_losing:
            self.is_losing = False
            raise DatabaseUnreachable("the answer was lost")
        picked = len(granted) + (self.picked_but_kept if request.room else 0)
        refused, now = len(request.results) - len(accepted), self.clock.wall()
        both = frozenset(accepted), tuple(granted)
        first = granted[0].priority if granted else 0
        ahead = self.next_available_at
        has_paced = any(grant.origin.is_paced for grant in granted)
        return StepResult(len(granted), first, has_paced, refused, picked, ahead, now, lambda: both, self.place)

    def definitions(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        self._answer()
        texts = {key: self.definitions_of[key].to_text() for key in keys if key in self.definitions_of}
        return {key: "{}" if key in self.broken else text for key, text in texts.items()}

    def mark_started(self, grants: Sequence[Grant]) -> frozenset[int]:
        self._answer()
        tokens = [grant.token for grant in grants]
        self.started += tokens
        return frozenset(tokens) - self.stolen

    def renew(self, worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
        self._answer()
        self.renewed.append(sorted(tokens))
        held = frozenset(tokens) & self.running.keys() - self.stolen
        return Renewal(held, held & self.cancelled, self.clock.wall(), self.clock.wall() + lease)

    def stop_requests(self, worker_id: int) -> StopRequests:
        self._answer()
        return StopRequests(frozenset(self.cancelled & self.running.keys()), self.is_drain_asked)

    def orphans(self, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
        self._answer()
        self.asked_known = sorted(known)
        return tuple(grant for token, grant in self.running.items() if token not in known)

    def _answer(self) -> None:
        if self.is_away:
            raise DatabaseUnreachable("the database is away")


class FakeStore:
    """What the worker's loops use of a ``Store``."""

    def __init__(self, clock: FakeClock) -> None:
        self.grants = FakeGrants(clock)
        self.cluster_settings = ClusterSettings()
        self.refused: list[RunResult] = []

    @property
    def edits(self) -> FakeStore:
        return self

    @property
    def operations(self) -> FakeStore:
        return self

    def note_refused(self, worker_id: int, results: Sequence[RunResult]) -> int:
        self.refused += results
        return len(results)

    def settings(self) -> ClusterSettings:
        self.grants.now()
        return self.cluster_settings

    def now(self) -> datetime:
        return self.grants.now()

    def as_store(self) -> Store:
        return cast(Store, self)


class FakeExecution:
    """Runs begin and go on until the test ends them; a stopped run ends at once."""

    def __init__(self, clock: FakeClock, wakeup: Wakeup) -> None:
        self._clock = clock
        self._wakeup = wakeup
        self._ended: list[EndedRun] = []
        self.orders: dict[int, RunOrder] = {}
        self.running: set[int] = set()
        self.stopped: list[tuple[int, StopReason]] = []
        self.waiting: list[int] = []  # tokens that the test says have not begun
        self.recalled: list[int] = []
        self.is_stubborn = False  # stopped runs go on

    def start(self, *orders: RunOrder) -> None:
        for order in orders:
            self.orders[order.token] = order
            self.running.add(order.token)

    def recall(self) -> tuple[int, ...]:
        self.recalled, waiting = self.recalled + self.waiting, tuple(self.waiting)
        self.running -= set(waiting)
        self.waiting = []
        return waiting

    def finished(self) -> tuple[EndedRun, ...]:
        ended, self._ended = self._ended, []
        return tuple(ended)

    def stop(self, token: int, reason: StopReason) -> None:
        if token in self.running:
            self.stopped.append((token, reason))
            if not self.is_stubborn:
                self.end(token, ending=Ending(reason.value))

    def end(self, token: int, **keys: Any) -> None:
        """The run ends now; successfully unless told otherwise."""
        self.running.remove(token)
        now = self._clock.elapsed()
        values = {"ending": Ending.EXITED, "started": now, "ended": now, **keys}
        if values["ending"] is Ending.EXITED:
            values.setdefault("exit_code", 0)
        self._ended.append(EndedRun(token, **values))
        self._wakeup.set()


def a_definition(**keys: Any) -> JobDefinition:
    """The definition of a job called nightly."""
    return JobDefinition("nightly", ({"cron": "* * * * *"},), CommandTarget(("true",)), **keys)
