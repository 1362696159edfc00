"""Runs as real processes: one thread per slot, each with one run at a time.

A hung spawn, a full pipe or a slow kill holds up its own thread and nobody else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Mapping, Sequence

import structlog

from sexton.clock import Clock, Wakeup
from sexton.targets import PythonTarget
from sexton_worker.core.allow_list import refusal
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.command import run_command
from sexton_worker.targets.ending import machine_fault, not_started
from sexton_worker.targets.python import run_python
from sexton_worker.targets.python_pool import PythonPool
from sexton_worker.targets.stop_signal import StopSignal
from sexton_worker.targets.supervision import ENDINGS

CLOSE_SECONDS = 15.0


class ProcessExecution:
    """An ``Execution``. ``worker_environment``: what jobs may inherit a little of; ``allow``: see ``allow_list``."""

    def __init__(
        self,
        clock: Clock,
        wakeup: Wakeup,
        slots: int,
        worker_environment: Mapping[str, str],
        allow: Sequence[str] | None = None,
    ) -> None:
        self._clock = clock
        self._wakeup = wakeup
        self._environment = worker_environment
        self._allow = allow
        self._pool = PythonPool(clock, worker_environment)
        self._orders: queue.SimpleQueue[tuple[RunOrder, StopSignal] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[EndedRun] = queue.SimpleQueue()
        self._stops: dict[int, StopSignal] = {}
        self._log = structlog.get_logger("sexton.worker.execution")
        self._threads = [
            threading.Thread(target=self._serve, name=f"sexton run {number}", daemon=True)
            for number in range(1, slots + 1)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, order: RunOrder) -> None:
        try:
            stop = StopSignal()
        except OSError as error:  # no descriptors: whoever keeps the order must see its end all the same
            self._ended.put(machine_fault(order, self._clock.elapsed(), str(error)))
            self._wakeup.set()
            return
        self._stops[order.token] = stop
        self._orders.put((order, stop))

    def recall(self) -> tuple[int, ...]:
        recalled: list[int] = []
        with contextlib.suppress(queue.Empty):
            while (taken := self._orders.get_nowait()) is not None:
                order, stop = taken
                del self._stops[order.token]
                stop.close()
                recalled.append(order.token)
        return tuple(recalled)

    def finished(self) -> tuple[EndedRun, ...]:
        ended: list[EndedRun] = []
        while not self._ended.empty():  # only this thread takes from it
            ended.append(self._ended.get())
        return tuple(ended)

    def stop(self, token: int, reason: StopReason) -> None:
        stop = self._stops.get(token)
        if stop is not None:
            stop.stop(reason)

    def close(self) -> None:
        """End the threads and the idle Python processes; runs must have ended before."""
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        self._pool.close()

    def _serve(self) -> None:
        while (taken := self._orders.get()) is not None:
            order, stop = taken
            ended = self._run(order, stop)
            del self._stops[order.token]
            stop.close()
            self._ended.put(ended)
            self._wakeup.set()

    def _run(self, order: RunOrder, stop: StopSignal) -> EndedRun:
        now = self._clock.elapsed()
        if refused := refusal(order.rules.target, self._allow):
            return not_started(order, now, refused)
        if stop.reason is not None:
            ended = not_started(order, now, f"{stop.reason} before it started")
            return dataclasses.replace(ended, ending=ENDINGS[stop.reason])
        try:
            if isinstance(order.rules.target, PythonTarget):
                return run_python(order, order.rules.target, self._pool, stop, self._clock)
            return run_command(order, stop, self._clock, self._environment)
        except Exception as error:
            # A fault of Sexton's own, or of the machine in mid-run: this run's, and no other's.
            self._log.exception("run.fault", job=order.job, token=order.token)
            what = f"the worker could not run it: {type(error).__name__}: {error}"
            return EndedRun(order.token, Ending.NOT_STARTED, now, self._clock.elapsed(), error=what)
