"""Runs as real processes, as many at once as there are slots, in the order in which they came.

Commands have a thread each while they run: a hung spawn, a full pipe or a slow
kill holds up its own thread and nobody else. Python runs share warm processes
(``targets/python_runs.py``).
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Mapping, Sequence

import structlog

from sexton.clock import Clock, Wakeup
from sexton.targets import PythonTarget
from sexton_worker.core.allow_list import refusal
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.command import run_command
from sexton_worker.targets.ending import machine_fault, not_started, stopped_before
from sexton_worker.targets.python_runs import PythonRuns, Slots
from sexton_worker.targets.stop_signal import StopSignal

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
        self._lock = threading.Lock()  # over all that follows, and the Python runs
        self._slots = Slots(slots)
        self._arrivals = 0
        self._commands: deque[tuple[int, RunOrder]] = deque()
        self._ended: list[EndedRun] = []
        self._stops: dict[int, StopSignal] = {}  # of the commands that run
        self._log = structlog.get_logger("sexton.worker.execution")
        self._python = PythonRuns(clock, worker_environment, self._lock, self._slots, self._tell, self._begin_waiting)
        self._begun: queue.SimpleQueue[tuple[RunOrder, StopSignal] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"sexton run {number}", daemon=True)
            for number in range(1, slots + 1)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, *orders: RunOrder) -> None:
        with self._lock:
            for order in orders:
                self._arrivals += 1
                target = order.rules.target
                if self._allow is not None and (refused := refusal(target, self._allow)):
                    self._tell(not_started(order, self._clock.elapsed(), refused))
                elif isinstance(target, PythonTarget):
                    self._python.add(order, target, self._arrivals)
                else:
                    self._commands.append((self._arrivals, order))
            self._begin_waiting()

    def recall(self) -> tuple[int, ...]:
        with self._lock:
            tokens = [order.token for _, order in self._commands] + self._python.take_waiting()
            self._commands.clear()
        return tuple(tokens)

    def finished(self) -> tuple[EndedRun, ...]:
        with self._lock:
            self._python.collect()
            self._begin_waiting()
            ended, self._ended = self._ended, []
        return tuple(ended)

    def stop(self, token: int, reason: StopReason) -> None:
        with self._lock:
            if (stop := self._stops.get(token)) is not None:
                stop.stop(reason)
                return
            for waiting in self._commands:
                if waiting[1].token == token:
                    self._commands.remove(waiting)
                    self._tell(stopped_before(waiting[1], self._clock.elapsed(), reason))
                    return
            self._python.stop(token, reason)

    def close(self) -> None:
        """End the threads and the idle Python processes; runs must have ended before."""
        for _ in self._threads:
            self._begun.put(None)
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        self._python.close()

    def _tell(self, ended: EndedRun) -> None:
        if not self._ended:
            self._wakeup.set()  # once: whoever is woken takes all there are by then
        self._ended.append(ended)

    def _begin_waiting(self) -> None:
        """Fill the free slots, oldest first."""
        while self._slots.free > 0:
            python = self._python.next_arrival()
            if self._commands and (python is None or self._commands[0][0] < python):
                self._begin_command(self._commands.popleft()[1])
            elif python is not None:
                self._python.begin_next()
            else:
                break
        self._python.top_up(self._commands[0][0] if self._commands else None)

    def _begin_command(self, order: RunOrder) -> None:
        now = self._clock.elapsed()
        if now >= order.begin_by:
            self._tell(stopped_before(order, now, StopReason.LEASE_LOST))
            return
        try:
            stop = StopSignal()
        except OSError as error:  # no descriptors: whoever keeps the order must see its end all the same
            self._tell(machine_fault(order, now, str(error)))
            return
        self._slots.free -= 1
        self._stops[order.token] = stop
        self._begun.put((order, stop))

    def _serve(self) -> None:
        while (taken := self._begun.get()) is not None:
            order, stop = taken
            ended = self._run(order, stop)
            with self._lock:
                del self._stops[order.token]
                stop.close()
                self._slots.free += 1
                self._tell(ended)
                self._begin_waiting()

    def _run(self, order: RunOrder, stop: StopSignal) -> EndedRun:
        now = self._clock.elapsed()
        if stop.reason is not None:
            return stopped_before(order, now, stop.reason)
        try:
            return run_command(order, stop, self._clock, self._environment)
        except Exception as error:
            # A fault of Sexton's own, or of the machine in mid-run: this run's, and no other's.
            self._log.exception("run.fault", job=order.job, token=order.token)
            what = f"the worker could not run it: {type(error).__name__}: {error}"
            return EndedRun(order.token, Ending.NOT_STARTED, now, self._clock.elapsed(), error=what)
