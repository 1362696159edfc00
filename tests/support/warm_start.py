"""Sexton's processes at a twentieth of their price: forked from a process that has loaded the program.

To start `sexton` costs most of a CPU second, all of it imports, and tests start hundreds. So each test session has one
process, the *original*, which has loaded the program and done nothing yet. It has one thread, forks a copy per request,
and the copy does what a fresh interpreter would do from there on: a process of its own, with the arguments, the
environment, the folder, the files and the session it was asked for, Sexton's own `main`, signals, atexit and exit code.

What a copy cannot be: an interpreter under another LD_PRELOAD or another locale (`can_be_copied`). And `/proc` shows
the original's arguments and environment for it: who looks at those starts a process by exec (`fresh=True`). Tests that
start `sexton` from a shell, a terminal or `sexton up` do so anyway.

The original is asked over a Unix socket, a connection per process, which brings a JSON line and two file descriptors.
It answers `PID`, and at the process's end `CODE`; who never reads that loses nothing.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

MAX_REQUEST = 1 << 20
_OWN_INTERPRETER = ("LD_", "LC_", "LANG", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONWARNINGS")
_LOADED = (
    "sexton_scheduler.node",
    "sexton_scheduler.election.zookeeper",
    "sexton_tui.cli.audit",
    "sexton_tui.cli.listings.jobs",
    "sexton_tui.cli.listings.status",
    "sexton_tui.cli.processes",
    "sexton_worker.worker",
    "sexton.store.postgres.store",
    "sexton.store.sqlite.store",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "structlog",
    "typer._adapters",
)


# --------------------------------------------------------------------------------------------- in the test session


class CopiedProcess:
    """What tests use of `subprocess.Popen`, for a copy."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = b""
        self._lock = threading.Lock()
        self.returncode: int | None = None
        pid = self._answer(60.0)
        assert pid is not None, "the original did not answer"
        self.pid = pid

    def poll(self) -> int | None:
        """The exit code (negative: the signal that ended it); None while it runs."""
        return self._look(0.0)

    def wait(self, timeout: float) -> int:
        """The exit code. Raises ``subprocess.TimeoutExpired``."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"copy {self.pid}", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; to one that has ended, nothing."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _look(self, within: float) -> int | None:
        with self._lock:
            if self.returncode is None:
                self.returncode = self._answer(within)
                if self.returncode is not None:
                    self._connection.close()
            return self.returncode

    def _answer(self, within: float) -> int | None:
        """The next line of the original's; None where it has not come within this many seconds."""
        until = time.monotonic() + within
        while b"\n" not in self._answers:
            if not _is_readable(self._connection, max(until - time.monotonic(), 0.0)):
                return None
            data = self._connection.recv(64)
            assert data, "the original of all copies is gone"
            self._answers += data
        line, _, self._answers = self._answers.partition(b"\n")
        return int(line)


def _is_readable(connection: socket.socket, within: float) -> bool:
    looking = select.poll()  # not select.select: a test may have more than 1024 files open
    looking.register(connection, select.POLLIN)
    return bool(looking.poll(within * 1000))


def can_be_copied(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment differs from a copy in nothing that its interpreter read at its start.

    TESTS_BY_EXEC=1 says no, always: to see whether a copy makes a difference.
    """
    return "TESTS_BY_EXEC" not in os.environ and all(
        os.environ.get(name) == value
        for name, value in environment.items()
        if name.startswith(_OWN_INTERPRETER) and name not in ("PYTHONPATH", "PYTHONUNBUFFERED")
    )


def start_copy(
    arguments: Sequence[str],
    *,
    code: str | None,
    environment: Mapping[str, str],
    folder: Path,
    output: BinaryIO,
    errors: BinaryIO,
) -> CopiedProcess:
    """Start `sexton` in a session of its own, with no standard input; or, where `code` is given, `python -c CODE`.

    ``arguments``: what `sys.argv` is.
    """
    request = {"arguments": list(arguments), "code": code, "environment": dict(environment), "folder": str(folder)}
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_original())
    files = array.array("i", [output.fileno(), errors.fileno()])
    data = json.dumps(request).encode() + b"\n"
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    connection.sendall(data[sent:])
    return CopiedProcess(connection)


_starting = threading.Lock()
_address: str | None = None


def _original() -> str:
    """The address of the session's original, which is started where there is none yet."""
    global _address
    with _starting:
        if _address is None:
            from tests.support import reaper  # not at the top: the original needs nothing of it

            folder = tempfile.mkdtemp(prefix="sexton-original-")
            reaper.watch("folder", folder)
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            original = subprocess.Popen(
                [sys.executable, "-P", __file__, f"{folder}/socket"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            reaper.watch("process", original.pid)
            atexit.register(_end, original)
            assert original.stdout is not None
            assert original.stdout.readline() == b"ready\n", "the original of all copies did not start"
            _address = f"{folder}/socket"
        return _address


def _end(original: subprocess.Popen[bytes]) -> None:
    original.kill()
    original.wait()


# ------------------------------------------------------------------------------------------------- the original


class _Original:
    """Takes requests, forks, and tells of ends, in one thread."""

    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(64)
        self._running: dict[int, socket.socket] = {}
        self._ended, self._end = socket.socketpair()
        self._ended.setblocking(False)
        self._end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._end.fileno())

    def serve(self) -> dict[str, Any]:
        """Serve for ever; returns in the copies alone, with what was asked for."""
        looking = selectors.DefaultSelector()
        looking.register(self._listening, selectors.EVENT_READ)
        looking.register(self._ended, selectors.EVENT_READ)
        while True:
            for key, _ in looking.select():
                if key.fileobj is self._ended:
                    self._ended.recv(4096)
                    self._tell_ends()
                    continue
                connection, _ = self._listening.accept()
                request, files = _read_request(connection)
                pid = os.fork()
                if pid == 0:
                    looking.close()  # a cycle: else collected late, it would close whatever has its number by then
                    self._become(request, files)
                    return request
                for file in files:
                    os.close(file)
                self._running[pid] = connection
                _answer(connection, pid)

    def _tell_ends(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._running.pop(pid)
            _answer(connection, os.waitstatus_to_exitcode(status))
            connection.close()

    def _become(self, request: dict[str, Any], files: list[int]) -> None:
        """What `Popen` and the start of an interpreter do."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for target, file in zip((1, 2), files, strict=True):
            os.dup2(file, target)
        os.closerange(3, 4096)
        os.chdir(request["folder"])
        environment = request["environment"]
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        sys.argv = request["arguments"]
        first = "" if request["code"] is not None else str(Path(sys.argv[0]).parent)
        sys.path[:0] = [first, *filter(None, environment.get("PYTHONPATH", "").split(":"))]


def _answer(connection: socket.socket, number: int) -> None:
    try:
        connection.sendall(b"%d\n" % number)
    except OSError:
        connection.close()  # nobody waits for it any more


def _read_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, files, _, _ = socket.recv_fds(connection, MAX_REQUEST, 2)
    while not data.endswith(b"\n"):
        data += connection.recv(MAX_REQUEST)
    return json.loads(data), files


def main() -> None:
    """Be the original; and, in its copies, what they were asked to be."""
    from sexton_tui.cli.main import main as sexton

    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the first collection of each copy writes on every page that it shares
    original = _Original(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    request = original.serve()
    if request["code"] is None:
        sexton()
    else:
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - as `python -c`


if __name__ == "__main__":
    main()
