"""The ``python`` target: ``module:function`` called in a warm child process that can be killed."""

from __future__ import annotations

import dataclasses

from sexton.clock import Clock
from sexton.targets import PythonTarget
from sexton_worker.core.runs import EndedRun, Ending
from sexton_worker.execution import RunOrder
from sexton_worker.targets.ending import ended_process, machine_fault, not_started
from sexton_worker.targets.environment import iso, job_environment
from sexton_worker.targets.frames import encode
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.python_pool import ChildFailed, NoMeans, PythonChild, PythonPool
from sexton_worker.targets.stop_signal import StopSignal
from sexton_worker.targets.supervision import Supervision

LAST_MOMENT = 1.0  # seconds


def run_python(order: RunOrder, target: PythonTarget, pool: PythonPool, stop: StopSignal, clock: Clock) -> EndedRun:
    """Run the order to its end in the calling thread. Nothing that the function does makes it raise."""
    try:
        request = encode(_request(order, target))
    except (TypeError, ValueError) as error:
        return not_started(order, clock.elapsed(), f"args and kwargs must be JSON values: {error}")
    try:
        child = pool.take(stop.fileno())
    except NoMeans as error:
        return machine_fault(order, clock.elapsed(), str(error))
    except ChildFailed as error:
        return not_started(order, clock.elapsed(), str(error))
    child.outputs.drain()
    child.outputs.fresh_tails()  # what threads of earlier runs wrote since is nobody's
    started = clock.elapsed()
    supervision = Supervision(
        child.group,
        child.outputs,
        stop,
        clock,
        max_runtime=order.rules.max_runtime.total_seconds(),
        kill_after=order.rules.kill_after.total_seconds(),
    )
    try:
        child.send(request)
    except OSError as error:
        child.end()
        return not_started(order, clock.elapsed(), f"a Python process of this worker took no work: {error}")
    has_exited = supervision.watch(child)
    answer = child.message
    if has_exited or answer is None or answer.get("token") != order.token:
        return _died(order, child, supervision, started, clock)
    child.outputs.drain()
    ended = EndedRun(
        token=order.token,
        ending=Ending(answer["ending"]),
        started=started if answer["ending"] != Ending.NOT_STARTED else None,
        ended=clock.elapsed(),
        exit_code=answer["exit_code"],
        error=answer["error"],
        exceptions=tuple(answer.get("exceptions", ())),
    )
    ended = _with_outputs(ended, child)
    pool.bring_back(child)
    return ended


def _died(order: RunOrder, child: PythonChild, supervision: Supervision, started: float, clock: Clock) -> EndedRun:
    """The process is gone, or no longer makes sense: stopped, crashed, or ended by its own job."""
    if supervision.forced is not None:
        supervision.end_group()
    child.outputs.drain()
    # Its socket closes a moment before it has exited; its own exit code is worth that moment.
    code = child.end(LAST_MOMENT)
    ended = ended_process(order, supervision, code, child.outputs, started, clock.elapsed(), Ending.RAISED)
    if supervision.forced is not None:
        return ended
    return dataclasses.replace(ended, error=f"the job's process died in mid-run: {end_of(code)}")


def _with_outputs(ended: EndedRun, child: PythonChild) -> EndedRun:
    stdout, stderr = child.outputs.stdout, child.outputs.stderr
    return dataclasses.replace(
        ended, stdout=stdout.kept(), stderr=stderr.kept(), stdout_bytes=stdout.total, stderr_bytes=stderr.total
    )


def _request(order: RunOrder, target: PythonTarget) -> dict[str, object]:
    return {
        "token": order.token,
        "reference": target.reference,
        "args": list(target.args),
        "kwargs": target.kwargs,
        "env": job_environment(order),
        "cwd": order.rules.cwd,
        "stdin": order.rules.stdin,
        "context": {
            "job": order.job,
            "tick": iso(order.grant.scheduled_at),
            "attempt": order.grant.attempt,
            "deadline": iso(order.deadline),
        },
    }
