"""Runs on virtual time: an `Execution` whose jobs only take time, succeed or fail, as the seed draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.world import SECOND
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder

_ENDINGS = {
    StopReason.CANCELLED: Ending.CANCELLED,
    StopReason.LEASE_LOST: Ending.LEASE_LOST,
    StopReason.GIVEN_BACK: Ending.GIVEN_BACK,
}


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run that physically began."""

    job: str
    job_id: int
    scheduled_at: datetime
    token: int
    at: datetime
    at_most_once: bool
    retries: int


@dataclass(slots=True)
class _Running:
    order: RunOrder
    started: float
    ending: Ending
    exit_code: int | None
    ends_at: int


class VirtualExecution:
    """Runs of one worker process, at most ``slots`` at once: they die with it, and go on while it is frozen."""

    def __init__(
        self,
        process: Process,
        slots: int,
        duration: Callable[[RunOrder], timedelta],
        fails: float,
        on_start: Callable[[RunStarted], None],
    ) -> None:
        self._process = process
        self._slots = slots
        self._duration = duration
        self._fails = fails
        self._on_start = on_start
        self._waiting: dict[int, RunOrder] = {}
        self._running: dict[int, _Running] = {}
        self._ended: list[EndedRun] = []
        self.wake: Callable[[], None] = lambda: None

    # --- the protocol ---------------------------------------------------------------------------------

    def start(self, *orders: RunOrder) -> None:
        for order in orders:
            self._waiting[order.token] = order
            self._begin_waiting()

    def recall(self) -> tuple[int, ...]:
        tokens = tuple(self._waiting)
        self._waiting.clear()
        return tokens

    def finished(self) -> tuple[EndedRun, ...]:
        ended, self._ended = tuple(self._ended), []
        return ended

    def stop(self, token: int, reason: StopReason) -> None:
        if self._waiting.pop(token, None) is not None:
            elapsed = self._process.clock.elapsed()
            self._end(EndedRun(token, _ENDINGS[reason], None, elapsed))
            return
        run = self._running.get(token)
        if run is not None and run.ending not in _ENDINGS.values():
            run.ending, run.exit_code = _ENDINGS[reason], None
            self._end_in(run, self._process.world.draw(0.01, 2))

    # --- inside ---------------------------------------------------------------------------------------

    def _begin_waiting(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            self._begin(self._waiting.pop(next(iter(self._waiting))))

    def _begin(self, order: RunOrder) -> None:
        world, grant, retries = self._process.world, order.grant, order.rules.retries.max
        at, once = grant.scheduled_at, grant.at_most_once
        self._on_start(RunStarted(order.job, grant.job_id, at, grant.token, world.now(), once, retries))
        self._process.tell(f"runs {order.job} {at.isoformat()} token {grant.token}")
        takes = self._duration(order)
        code = 1 if world.random.random() < self._fails else 0
        run = _Running(order, self._process.clock.elapsed(), Ending.EXITED, code, 0)
        if takes > order.rules.max_runtime:
            takes = order.rules.max_runtime
            run.ending, run.exit_code = Ending.TIMED_OUT, None
        self._running[order.token] = run
        self._end_in(run, takes // timedelta(microseconds=1))

    def _end_in(self, run: _Running, micros: int) -> None:
        world = self._process.world
        ends_at = run.ends_at = world.micros + max(1, micros)

        def end() -> None:
            if run.ends_at == ends_at and self._process.is_alive:
                del self._running[run.order.token]
                elapsed = self._process.clock.elapsed()
                self._end(EndedRun(run.order.token, run.ending, run.started, elapsed, run.exit_code))
                self._begin_waiting()

        world.at(ends_at, end)

    def _end(self, ended: EndedRun) -> None:
        self._ended.append(ended)
        self._process.tell(f"run {ended.token} {ended.ending.value} {ended.exit_code}")
        self.wake()


def drawn_duration(process: Process, longest: timedelta) -> Callable[[RunOrder], timedelta]:
    """Most runs are short; one in twenty takes up to ``longest``."""

    def draw(order: RunOrder) -> timedelta:
        random = process.world.random
        top = longest.total_seconds() if random.random() < 0.05 else 3.0
        return timedelta(microseconds=int(random.uniform(0.01, top) * SECOND))

    return draw
