"""Workers that stand still (SIGSTOP) in the middle of a step, and the housekeeping that the others go on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from tests.support import reaper
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LIMIT_SECONDS = 120


class StoppedWorkers:
    """Workers of `tests.support.stopping_worker` on one ledger; killed at the end whatever became of them."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "tests.support.stopping_worker", url]
        self._program = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        reaper.watch("process", self._program.pid)
        self._pids: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reaper.kill_tree(self._program.pid)
        self._program.communicate()
        reaper.forget("process", self._program.pid)

    def start(self, statements: int) -> None:
        """Return when a further worker stands still behind so many statements; one that ended fails the test."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{statements}\n")
        started, number, pid = self._line().split()
        assert (started, int(number)) == ("started", statements)
        self._pids.append(int(pid))
        eventually(lambda: _has_stopped(int(pid)), within=LIMIT_SECONDS, what=f"stopped behind {statements}")

    def stand_still(self) -> bool:
        """Whether all of them still do."""
        return all(_has_stopped(pid) for pid in self._pids)

    def go_on(self) -> list[str]:
        """Continue one after the other; what each said in the end."""
        said = []
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)
            said.append(self._line().split(maxsplit=2)[2])
        return said

    def _line(self) -> str:
        assert self._program.stdout is not None
        return self._program.stdout.readline().strip()


def _has_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    state = stat.rpartition(")")[2].split()[0]
    assert state != "Z", "it ended instead of standing still: it has fewer statements"
    return state == "T"


class Housekeeper:
    """What any node does for the others: ends stuck backends, requeues lost claims, sweeps."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.terminated = 0

    def __enter__(self) -> Housekeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        store = open_store(StoreOptions(self._url))
        while not self._over.wait(0.2):
            self.terminated += store.terms.terminate_stuck()
            store.grants.requeue_expired(poison_after=100)
            store.grants.sweep()
        store.close()
