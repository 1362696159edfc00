"""What a run finds around it in a Python child: environment, folder, input, context; and the child's own after it.

A run that leaves all of this alone, as most do, costs the setting of what differs from the run before.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from datetime import datetime
from typing import Any, NamedTuple

from sexton.run_context import RunContext, enter, leave

# As targets/environment.py has them, which takes long to load.
WORKER_PID = "SEXTON_WORKER_PID"
WORKER_NAME = "SEXTON_WORKER"


class Request(NamedTuple):
    """One run as it comes over the socket: what is of this run, then what is of its job."""

    token: int
    tick: str
    attempt: int
    deadline: str
    job: str
    reference: str
    args: list[Any]
    kwargs: dict[str, Any]
    env: dict[str, str]
    cwd: str | None
    stdin: str | None


class Refused(Exception):
    """This machine does not take what the job is to find around it; the message says what, the cause why."""


def _present_folder() -> str:
    """Where this process works; ``/`` from now on if that was deleted."""
    try:
        return os.getcwd()
    except OSError:
        os.chdir("/")
        return "/"


_set_alarm, _ALARM = signal.setitimer, signal.ITIMER_REAL


class Surroundings:
    """Those of this process, as they are when this is made. ``enter``, run, ``leave``."""

    def __init__(self) -> None:
        # The mapping behind os.environ, as bytes: copied and compared without decoding each variable.
        self._data: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # typeshed hides it
        self._environ = os.environ
        self._own = dict(os.environ)
        self._now: dict[bytes, bytes] = {}  # as the present run found it
        self._folder = _present_folder()
        self._streams = (sys.stdin, sys.stdout, sys.stderr)

    def enter(self, request: Request) -> None:
        """Set what the run is told. Raises ``Refused`` if that cannot be; ``leave`` must follow all the same."""
        enter(lambda: self._context(request))
        if request.env:
            self._set(request.env)
            for name in (WORKER_PID, WORKER_NAME):
                self._environ[name] = self._own.get(name, "")
        self._put(b"SEXTON_JOB", os.fsencode(request.job))
        self._put(b"SEXTON_ATTEMPT", b"%d" % request.attempt)
        self._put(b"SEXTON_TICK", request.tick.encode())
        self._put(b"SEXTON_TOKEN", b"%d" % request.token)
        self._put(b"SEXTON_DEADLINE", request.deadline.encode())
        self._now = self._data.copy()
        if request.stdin is not None:
            sys.stdin = io.StringIO(request.stdin)
        if request.cwd is not None:
            try:
                os.chdir(request.cwd)
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                advice = "create it on this worker or correct the job's cwd"
                raise Refused(f"cannot work in {request.cwd!r}: {why}; {advice}") from error

    def _set(self, env: dict[str, str]) -> None:
        for name, value in env.items():
            try:
                self._environ[name] = value
            except (OSError, ValueError) as error:
                raise Refused(f"cannot set variable {name!r}: {error}; correct the job's env") from error

    def _put(self, name: bytes, value: bytes) -> None:
        """As ``os.environ`` does it, where it is not so already."""
        if self._data.get(name) != value:
            os.putenv(name, value)
            self._data[name] = value

    def leave(self, request: Request) -> bool:
        """Put back what the run changed or was given; false if that cannot be, for it closed a stream for good, or
        the worker's own folder is gone."""
        try:
            return self._leave(request)
        except Exception:  # such as of a stream that was detached: it is the process's, not the run's, which is over
            return False

    def _leave(self, request: Request) -> bool:
        _set_alarm(_ALARM, 0)  # one that the run forgot would end another job's
        leave()
        is_home = True
        if (sys.stdin, sys.stdout, sys.stderr) != self._streams:
            sys.stdin, sys.stdout, sys.stderr = self._streams
        if request.cwd is not None or not self._is_at_home():
            is_home = self._go_home()
        if request.env or self._data != self._now or os.environ is not self._environ:
            os.environ = self._environ  # noqa: B003 - it is the same object, unless the run put another there
            os.environ.clear()
            os.environ.update(self._own)
        stdin, stdout, stderr = self._streams
        return is_home and not (stdin.closed or stdout.closed or stderr.closed)

    def _go_home(self) -> bool:
        try:
            os.chdir(self._folder)
        except OSError:  # as where releases are rotated: another process will know it from its start
            return False
        return True

    def _is_at_home(self) -> bool:
        try:
            return os.getcwd() == self._folder
        except OSError:  # the run deleted it around itself
            return False

    def _context(self, request: Request) -> RunContext:
        return RunContext(
            job=request.job,
            tick=datetime.fromisoformat(request.tick),
            attempt=request.attempt,
            token=request.token,
            deadline=datetime.fromisoformat(request.deadline),
            worker=self._own.get(WORKER_NAME, ""),
        )
