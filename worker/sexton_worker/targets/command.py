"""The ``command`` and ``shell`` targets: a process in a session of its own, with a clean environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sexton.clock import Clock
from sexton.targets import CommandTarget, ShellTarget
from sexton_worker.core.allow_list import SHELL
from sexton_worker.core.machine_faults import is_machine_fault
from sexton_worker.core.runs import EndedRun, Ending
from sexton_worker.execution import RunOrder
from sexton_worker.targets.ending import ended_process, machine_fault, not_started
from sexton_worker.targets.environment import clean_environment, job_environment
from sexton_worker.targets.launching import KilledAtStart, launch
from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import ProcessGroup
from sexton_worker.targets.stop_signal import StopSignal
from sexton_worker.targets.supervision import Supervision

# As shells say it, so that `retries: {on: [127]}` means what operators expect.
NOT_FOUND = 127
NOT_EXECUTABLE = 126


def run_command(order: RunOrder, stop: StopSignal, clock: Clock, worker_environment: Mapping[str, str]) -> EndedRun:
    """Run the order to its end in the calling thread. Nothing that the command does makes it raise."""
    environment = {**clean_environment(worker_environment), **job_environment(order)}
    argv = _argv(order)
    started = clock.elapsed()
    try:
        group, outputs = _launch(order, argv, environment)
    except KilledAtStart as error:
        return machine_fault(order, clock.elapsed(), str(error), started)
    except (OSError, ValueError) as error:
        if is_machine_fault(error):
            return machine_fault(order, clock.elapsed(), str(error))
        code, why = _explain(error, argv[0], order.rules.cwd, environment)
        return not_started(order, clock.elapsed(), why, code)
    supervision = Supervision(
        group,
        outputs,
        stop,
        clock,
        max_runtime=order.rules.max_runtime.total_seconds(),
        kill_after=order.rules.kill_after.total_seconds(),
    )
    try:
        supervision.watch()
        if supervision.forced is not None:
            supervision.end_group()
        outputs.drain()
    finally:
        outputs.close()
        code = group.reap()
    return ended_process(order, supervision, code, outputs, started, clock.elapsed(), Ending.EXITED)


def _argv(order: RunOrder) -> list[str]:
    match order.rules.target:
        case CommandTarget(argv):
            return list(argv)
        case ShellTarget(script):
            return [SHELL, "-c", script]
        case other:
            raise TypeError(f"not a command: {other}")


def _launch(order: RunOrder, argv: list[str], environment: dict[str, str]) -> tuple[ProcessGroup, Outputs]:
    if order.rules.stdin is None:
        return launch(argv, environment, cwd=order.rules.cwd)
    # In a file of memory: a pipe would have to be fed while the command runs, or would block it.
    stdin = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with os.fdopen(stdin, "wb") as file:
        file.write(order.rules.stdin.encode())
        file.flush()
        file.seek(0)
        return launch(argv, environment, cwd=order.rules.cwd, stdin=stdin)


def _explain(
    error: OSError | ValueError, program: str, cwd: str | None, environment: Mapping[str, str]
) -> tuple[int | None, str]:
    """Exit code and sentence for a process that could not be started."""
    if isinstance(error, OSError) and cwd is not None and error.filename == cwd:
        return None, f"cannot work in {cwd!r}: {error.strerror}; create it on this worker or correct the job's cwd"
    if isinstance(error, FileNotFoundError):
        if "/" in program:
            return (
                NOT_FOUND,
                f"there is no {program!r}, or no interpreter for it, on this worker; install it or correct the job",
            )
        where = f"in this worker's PATH ({environment['PATH']})"
        return NOT_FOUND, f"command {program!r} was not found {where}; install it or write its full path"
    if isinstance(error, PermissionError):
        return NOT_EXECUTABLE, f"{program!r} may not be executed by this worker's user; check its mode and its folders"
    return None, f"cannot start {program!r}: {error}"
