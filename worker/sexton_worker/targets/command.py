"""The ``command`` and ``shell`` targets: what the zygote is told of a run, and what its end means."""

from __future__ import annotations

import errno
import os
import signal
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta

from sexton.jobs import RunRules
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton.targets import CommandTarget, ShellTarget
from sexton_worker.core.allow_list import SHELL
from sexton_worker.core.machine_faults import is_machine_fault
from sexton_worker.core.runs import EndedRun, Ending, Spooled, StopReason
from sexton_worker.core.secret_masks import forms_of_all
from sexton_worker.execution import RunOrder
from sexton_worker.targets.ending import ENDINGS, listed, machine_fault, not_started, stopped_before, why_stopped
from sexton_worker.targets.environment import revision_environment, run_environment
from sexton_worker.targets.process_group import end_of
from sexton_worker.zygote import frames
from sexton_worker.zygote.frames import End, Order
from sexton_worker.zygote.program import packed
from sexton_worker.zygote.spool_file import STDERR, STDOUT

# As shells say it, so that `retries: {on: [127]}` means what operators expect.
NOT_FOUND = 127
NOT_EXECUTABLE = 126
CACHED = 10_000  # revisions
LARGEST_CACHED = 8 * 1024  # bytes of one

_OUT_OF_TIME = 128 + signal.SIGXCPU
_OUT_OF_MEMORY = (b"memory", b"failed to map segment")  # as programs and the loader of libraries say it


class Programs:
    """What all runs of a revision have in common, made once; ``clean``: the environment of all runs."""

    def __init__(self, clean: Mapping[str, str]) -> None:
        self.clean = clean
        self._known: OrderedDict[tuple[int, int], tuple[RunRules, bytes]] = OrderedDict()

    def of(self, run: RunOrder) -> bytes:
        """See ``zygote/program.py``. Raises ValueError for what no process can be told, ``struct.error`` for too many
        arguments or variables."""
        key = run.grant.job_id, run.grant.revision
        known = self._known.get(key)
        if known is not None and known[0] is run.rules:
            return known[1]
        argv = [_bytes(word) for word in arguments(run)]
        env = {_name(name): _bytes(value) for name, value in {**self.clean, **revision_environment(run)}.items()}
        program = packed(argv, env)
        if not run.secrets and len(program) <= LARGEST_CACHED:
            self._known[key] = run.rules, program
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        return program


def order_for(run: RunOrder, place: int, programs: Programs, spool: bytes | None = None, spool_limit: int = 0) -> Order:
    """The order to the zygote; ``spool``: see ``Order``. Raises as ``Programs.of``."""
    rules, limits = run.rules, run.rules.limits
    return Order(
        run.token,
        place,
        programs.of(run),
        {name.encode(): value.encode() for name, value in run_environment(run).items()},
        begin_by=run.begin_by,
        max_runtime=rules.max_runtime.total_seconds(),
        kill_after=rules.kill_after.total_seconds(),
        cwd=None if rules.cwd is None else _bytes(rules.cwd),
        stdin=None if rules.stdin is None else rules.stdin.encode(),
        memory=frames.UNLIMITED if limits.memory is None else limits.memory,
        cpu_time=frames.UNLIMITED if limits.cpu_time is None else -(-limits.cpu_time // timedelta(seconds=1)),
        open_files=frames.UNLIMITED if limits.open_files is None else limits.open_files,
        secrets=forms_of_all(run.secrets) if run.secrets else (),
        spool=spool,
        spool_limit=spool_limit,
    )


def arguments(run: RunOrder) -> list[str]:
    """The argument vector, which is not empty. Raises ValueError."""
    match run.rules.target:
        case CommandTarget(argv) if argv and argv[0]:
            return list(argv)
        case CommandTarget():
            raise ValueError("it names no program")
        case ShellTarget(script):
            return [SHELL, "-c", script]
        case other:
            raise ValueError(f"not a command: {other}")


def _bytes(text: str) -> bytes:
    encoded = os.fsencode(text)
    if 0 in encoded:
        raise ValueError("an argument, a variable or the cwd holds a NUL, which no process can be told")
    return encoded


def _name(text: str) -> bytes:
    if not text or "=" in text:
        raise ValueError(f"illegal environment variable name {text!r}")
    return _bytes(text)


def unsayable(order: RunOrder, error: Exception) -> str:
    """Why there can be no order."""
    what = order.rules.target.argv[:1] if isinstance(order.rules.target, CommandTarget) else ["/bin/sh"]
    why = error if isinstance(error, ValueError) else "its arguments, variables and input are too many or too large"
    return f"cannot start {', '.join(map(repr, what)) or 'nothing'}: {why}; correct the job"


# --- ends -------------------------------------------------------------------------------------------------------------


def ended_command(
    run: RunOrder, end: End, reason: StopReason | None, clean: Mapping[str, str], spool: bytes | None = None
) -> EndedRun:
    """What the zygote says became of the run. ``reason``: why the worker stopped it, if it did."""
    match end.how_far:
        case frames.RAN:
            return _ran(run, end, reason, spool)
        case frames.TOO_LATE:
            return stopped_before(run, end.ended, StopReason.LEASE_LOST)
        case frames.KILLED_AT_ONCE:
            return machine_fault(run, end.ended, str(_error(end)), end.started)
        case _:
            return _did_not_run(run, end, clean)


def _ran(run: RunOrder, end: End, reason: StopReason | None, spool: bytes | None) -> EndedRun:
    match end.why:
        case frames.TIMED_OUT:
            ending = Ending.TIMED_OUT
        case frames.LEASE_OVER:
            ending = Ending.LEASE_LOST
        case frames.STOPPED:
            ending = ENDINGS[reason or StopReason.GIVEN_BACK]
        case _:
            ending = Ending.EXITED
    if ending is not Ending.EXITED:
        error = why_stopped(run, ending, end.code, is_killed=end.is_killed) + _who_survived(end)
    elif end.code == 0 or end.code in run.rules.success_codes:
        error = ""
    else:
        error = end_of(end.code) + _why_limited(run, end)
    return EndedRun(
        token=run.token,
        ending=ending,
        started=end.started,
        ended=end.ended,
        exit_code=end.code,
        error=error,
        stdout=end.stdout,
        stderr=end.stderr,
        stdout_bytes=end.stdout_bytes,
        stderr_bytes=end.stderr_bytes,
        spooled=_spooled(end, spool),
    )


def _spooled(end: End, spool: bytes | None) -> Spooled | None:
    if spool is None or not (end.stdout_spooled or end.stderr_spooled):
        return None
    return Spooled(spool + STDOUT, spool + STDERR, end.stdout_spooled, end.stderr_spooled)


def _why_limited(run: RunOrder, end: End) -> str:
    limits = run.rules.limits
    if end.code == _OUT_OF_TIME and limits.cpu_time is not None:
        return f", for it used more processor time than its limit cpu_time {format_duration(limits.cpu_time)}"
    said = end.stderr.lower()
    if limits.memory is not None and any(words in said for words in _OUT_OF_MEMORY):
        return f", perhaps because of its limit memory {size_text(limits.memory)}"
    if limits.open_files is not None and b"too many open files" in said:
        return f", perhaps because of its limit open_files {limits.open_files}"
    return ""


def _who_survived(end: End) -> str:
    left = end.survivors
    if not left:
        return ""
    return f"; {len(left)} process{'' if len(left) == 1 else 'es'} could not be ended and live on: {listed(left)}"


def _error(end: End) -> OSError:
    return OSError(end.errno, os.strerror(end.errno))  # of the class that belongs to the number


def _did_not_run(run: RunOrder, end: End, clean: Mapping[str, str]) -> EndedRun:
    error, program, cwd = _error(end), arguments(run)[0], run.rules.cwd
    limits = run.rules.limits
    is_limited = end.how_far == frames.NO_PROGRAM and (limits.memory is not None or limits.open_files is not None)
    if is_machine_fault(error) and is_limited:
        why = f"cannot start {program!r} within its limits: {error}; raise the job's limits"
        return not_started(run, end.ended, why)
    if is_machine_fault(error):
        return machine_fault(run, end.ended, str(error))
    if end.how_far == frames.NO_FOLDER:
        why = f"cannot work in {cwd!r}: {error.strerror}; create it on this worker or correct the job's cwd"
        return not_started(run, end.ended, why)
    if end.errno in (errno.ENOENT, errno.ENOTDIR):
        return not_started(run, end.ended, _not_found(program, {**clean, **run.rules.env}), NOT_FOUND)
    if os.path.isdir(os.path.join(cwd or "", program)) and (os.sep in program or not program.strip(".")):
        return not_started(run, end.ended, f"{program!r} is a folder; write the program in it", NOT_EXECUTABLE)
    if isinstance(error, PermissionError):
        why = f"{program!r} may not be executed by this worker's user; check its mode and its folders"
        return not_started(run, end.ended, why, NOT_EXECUTABLE)
    why = _WHY_NOT.get(end.errno, str(error))
    return not_started(run, end.ended, f"cannot start {program!r}: {why}")


_WHY_NOT = {
    errno.ENOEXEC: "it is no program of this machine, and has no first line that names an interpreter, such as "
    "#!/bin/sh; add that line, or use 'shell'",
    errno.E2BIG: "its arguments and variables are longer than this machine takes; hand them over by stdin or a file",
}


def _not_found(program: str, environment: Mapping[str, str]) -> str:
    if "/" in program:
        return f"there is no {program!r}, or no interpreter for it, on this worker; install it or correct the job"
    where = f"in this worker's PATH ({environment['PATH']})"
    return f"command {program!r} was not found {where}; install it or write its full path"
