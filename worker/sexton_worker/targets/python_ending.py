"""The ends of Python runs: told by the child, by its death, or brought about."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import structlog

from sexton.clock import Clock
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.board import CUT_WITH_LEASE
from sexton_worker.targets.ending import ended_process, why_stopped
from sexton_worker.targets.escaped import Escaped
from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.python_process import PythonChild, Task
from sexton_worker.targets.supervision import Supervision
from sexton_worker.zygote.frames import Seen


def ended_run(token: int, started: float, ended: float, end: dict[str, Any] | None, outputs: Outputs) -> EndedRun:
    """As the child told it; ``end`` None: it succeeded. The outputs must have been drained."""
    told = outputs.told(EndedRun(token, Ending.EXITED, started, ended, exit_code=0))
    if end is None:
        return told
    ending = Ending(end["ending"])
    return told._replace(
        ending=ending,
        started=None if ending is Ending.NOT_STARTED else started,
        exit_code=end["exit_code"],
        error=end["error"],
        exceptions=tuple(end.get("exceptions", ())),
    )


def died(order: RunOrder, code: int, outputs: Outputs, started: float, ended: float) -> EndedRun:
    """The run was in a process that ended by itself, or by its job, with this code. Outputs as above."""
    told = ended_run(order.token, started, ended, None, outputs)
    error = f"the job's process died in mid-run: {end_of(code)}"
    return told._replace(ending=Ending.RAISED, exit_code=code, error=error)


def cut(order: RunOrder, told: EndedRun, why: int) -> EndedRun:
    """The run ended as told, but because the zygote ended it, at its deadline or with its lease and for a worker that
    was frozen."""
    code = told.exit_code or 0
    ending = Ending.LEASE_LOST if why == CUT_WITH_LEASE else Ending.TIMED_OUT
    how = why_stopped(order, ending, code, is_killed=code == 128 + signal.SIGKILL)
    return told._replace(ending=ending, error=f"{how}, while the worker was frozen")


def see_off(child: PythonChild, order: RunOrder, ending: Ending, started: float, clock: Clock) -> EndedRun:
    """Stop the run that this child is in, in the calling thread; the child and its group are gone after it."""
    try:
        supervision = Supervision(
            child.group,
            child.outputs,
            child.stop,
            clock,
            max_runtime=order.rules.max_runtime.total_seconds(),
            kill_after=order.rules.kill_after.total_seconds(),
        )
        escaped = Escaped(child.group.pid, order.token, started)
        child.dismiss()
        supervision.end(ending)
        escaped.ask()
        supervision.watch()
        supervision.end_group()
        escaped.end(clock)
        child.outputs.drain()
        why = child.board.cut(order.token)
        code = child.end()
        ended = ended_process(order, supervision, code, child.outputs, started, clock.elapsed(), Ending.RAISED)
        return ended if why is None else cut(order, ended, why)
    except Exception as error:
        # A fault of Sexton's own, or of the machine: this run's, and no other's.
        structlog.get_logger("sexton.worker.execution").exception("run.fault", job=order.job, token=order.token)
        child.end()
        what = f"the worker could not end it properly: {type(error).__name__}: {error}"
        return EndedRun(order.token, ending, started, clock.elapsed(), error=what)


class Leaving:
    """The runs that are being stopped, each by a thread of its own; ``over`` takes each end. All under ``lock``."""

    def __init__(self, clock: Clock, lock: threading.Lock, over: Callable[[EndedRun], None]) -> None:
        self._clock = clock
        self._lock = lock
        self._over = over
        self._children: dict[int, PythonChild] = {}

    def stop(self, token: int, reason: StopReason) -> bool:
        """One more reason to stop this run; false if it is not here."""
        child = self._children.get(token)
        if child is not None:
            child.stop.stop(reason)
        return child is not None

    def look(self, token: int) -> Seen | None:
        """What this run has written so far; None if it is not here."""
        child = self._children.get(token)
        return None if child is None else child.outputs.look(token)

    def see_off(self, child: PythonChild, task: Task, ending: Ending, started: float) -> None:
        """Begin to stop the task that this child is in; the child is nobody else's any more."""

        def run() -> None:
            ended = see_off(child, task.order, ending, started, self._clock)
            with self._lock:
                del self._children[task.token]
                self._over(ended)

        self._children[task.token] = child
        try:
            threading.Thread(target=run, name=f"sexton ends run {task.token}", daemon=True).start()
        except RuntimeError as error:  # no more threads: no time for politeness either
            del self._children[task.token]
            code, now = child.end(), self._clock.elapsed()
            structlog.get_logger("sexton.worker.execution").warning("python.no_thread", error=str(error))
            self._over(died(task.order, code, child.outputs, started, now)._replace(ending=ending))
