"""A real Redis server on a free port, with nothing on disk; and a real Celery worker on it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.missing import MissingServerError
from tests.support.ports import free_port
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

PROGRAM = "/usr/bin/redis-server"
PASSWORD = "pass/w:rd"  # noqa: S105 - of a server that lives for a test


class RedisServer:
    """Asks for a password. ``port`` stays the same from start to start."""

    def __init__(self, processes: ProcessGroup) -> None:
        if shutil.which(PROGRAM) is None:
            raise MissingServerError("the tests need a Redis server; run: apt-get install redis-server")
        self._processes = processes
        self._running: RunningProcess | None = None
        self.port = free_port()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Return when it answers."""
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "requirepass": PASSWORD,
            "save": "",
            "appendonly": "no",
            "dir": str(self._processes.folder),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._running = self._processes.start([PROGRAM, *words], name="redis")
        eventually(self._answers, 60, "Redis answers")

    def freeze(self) -> None:
        """Keep its connections open and answer nothing."""
        self.running.freeze()

    def thaw(self) -> None:
        self.running.thaw()

    @property
    def running(self) -> RunningProcess:
        assert self._running is not None
        return self._running

    def _answers(self) -> bool:
        assert self.running.is_running(), self.running.stdout()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
            probe.sendall(b"PING\r\n")
            return bool(probe.recv(100))
        return False


@contextlib.contextmanager
def celery_worker(processes: ProcessGroup, broker: str, backend: str | None, notes: Path) -> Iterator[RunningProcess]:
    """A worker of ``celery_tasks`` that is ready."""
    environment = {"PYTHONPATH": str(ROOT), "DEPLOYMENT_BROKER": broker, "DEPLOYMENT_NOTES": str(notes)}
    if backend is not None:
        environment["DEPLOYMENT_BACKEND"] = backend
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    program = [sys.executable, "-m", "celery", "-A", "tests.support.celery_tasks", "worker"]
    worker = processes.start([*program, "--concurrency", "1", *quiet], env=environment, name="celery")
    eventually(lambda: " ready." in worker.stderr() or not worker.is_running(), 120, "the Celery worker is ready")
    assert worker.is_running(), worker.stderr()
    try:
        yield worker
    finally:
        worker.kill_tree()
