"""The start of a process: own session, both outputs on pipes, nothing left over if it fails."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import ProcessGroup


class KilledAtStart(Exception):
    """The process began and was killed at once, for it could not be watched; the message says why."""


def launch(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: str | None = None,
    stdin: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    pipe_bytes: int | None = None,
) -> tuple[ProcessGroup, Outputs]:
    """Start ``argv`` as the leader of a session and group of its own; ``pipe_bytes``: of its outputs, if allowed.

    Raises OSError or ValueError, as Popen does, if nothing ran; ``KilledAtStart`` if something may have.
    """
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        stdout, stdout_end = _pipe(ours, theirs)
        stderr, stderr_end = _pipe(ours, theirs)
        if pipe_bytes is not None:
            with contextlib.suppress(PermissionError):
                for pipe in (stdout, stderr):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, pipe_bytes)
        leader = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout_end,
            stderr=stderr_end,
            cwd=cwd,
            env=dict(environment),
            pass_fds=pass_fds,
            start_new_session=True,
        )
        try:
            started = ProcessGroup(leader), Outputs(stdout, stderr)
        except OSError as error:
            os.killpg(leader.pid, signal.SIGKILL)  # not reaped yet, so the id is its own
            leader.wait()
            raise KilledAtStart(str(error)) from None
        ours.pop_all()
        return started


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    """A pipe whose ends are closed with these stacks."""
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write
