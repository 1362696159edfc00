"""Candidates on real ZooKeeper servers: in this process, and in one of their own that can be frozen."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kazoo.client import KazooClient

from sexton.process_settings import CoordinatorAccess
from sexton.terms import CoordinatorServer
from sexton_scheduler.election.candidate import NodeIdentity, Standing
from sexton_scheduler.election.ensemble import Ensemble, Entrance
from sexton_scheduler.election.zookeeper import ZooKeeperCandidate
from tests.support import reaper
from tests.support.processes import RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LONG = 90.0  # a limit that only a hang reaches
SESSION = timedelta(seconds=6)  # outlives a stall of a busy machine
SHORT_SESSION = timedelta(seconds=2)  # where a test waits for its end


class Candidates:
    """Makes candidates of one election, and closes them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.servers: dict[str, tuple[CoordinatorServer, ...]] = {}  # as each candidate saw them last
        self._made: list[ZooKeeperCandidate] = []

    def __call__(
        self,
        hosts: str,
        name: str = "node-1",
        session: timedelta = SESSION,
        access: CoordinatorAccess | None = None,
    ) -> ZooKeeperCandidate:
        def saw(servers: tuple[CoordinatorServer, ...]) -> None:
            self.servers[name] = servers

        identity = NodeIdentity(name=name, address="host:1", version="1", pid=1)
        entrance = Entrance.open(access or CoordinatorAccess())
        new = ZooKeeperCandidate(Ensemble(hosts, self.path), identity, session, threading.Event(), entrance, saw)
        self._made.append(new)
        return new

    def close(self) -> None:
        for each in self._made:
            each.close()


def becomes(candidate: ZooKeeperCandidate, *wanted: Standing) -> Standing:
    """Wait until it stands so."""
    seen = eventually(
        lambda: [standing for standing in [candidate.standing()] if standing in wanted],
        within=LONG,
        what=lambda: f"the candidate stands {' or '.join(wanted)}: {candidate.describe()}",
    )
    return seen[0]


def elected_again(candidate: ZooKeeperCandidate) -> None:
    """Campaign as a node does, again after each loss, until ZooKeeper confirms an election."""

    def is_confirmed() -> bool:
        if candidate.standing() in (Standing.OUT, Standing.LOST):
            candidate.campaign()
        return candidate.standing() is Standing.ELECTED and candidate.confirm()

    eventually(is_confirmed, within=LONG, what=lambda: f"elected and confirmed: {candidate.describe()}")


def says(candidate: ZooKeeperCandidate, words: str) -> str:
    """Wait until its status has these words; the status."""
    return eventually(
        lambda: status if words in (status := candidate.describe()) else "",
        within=LONG,
        what=lambda: f"its status says {words!r}: {candidate.describe()}",
    )


def session_of(candidate: ZooKeeperCandidate) -> int | None:
    """The session that the candidate has now."""
    connection = candidate._connection
    return None if connection is None else connection.session_id


def client_of(candidate: ZooKeeperCandidate) -> Any:
    """kazoo's client of a candidate that has one."""
    assert candidate._connection is not None
    return candidate._connection.client


def is_lined_up(candidate: ZooKeeperCandidate) -> None:
    """Wait until it has a znode in the line."""

    def has_znode() -> bool:
        contender = candidate._contender
        return contender is not None and contender.node is not None

    eventually(has_znode, within=LONG, what="the candidate is in the line")


def expire_session(hosts: str, candidate: ZooKeeperCandidate) -> None:
    """End a live session from outside: a second client takes it over and closes it."""
    ids = client_of(candidate).client_id
    thief = KazooClient(hosts=hosts, client_id=ids, timeout=SESSION.total_seconds())
    thief.start(timeout=LONG)
    thief.stop()
    thief.close()


@contextlib.contextmanager
def onlooker(hosts: str, login: str | None = None) -> Iterator[Any]:
    """A client beside the candidates."""
    client = KazooClient(hosts=hosts, auth_data=[("digest", login)] if login else [])
    client.start(timeout=LONG)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def znodes(hosts: str, path: str) -> dict[str, str]:
    """Name and data of every znode in the line."""
    with onlooker(hosts) as client:
        names = client.get_children(f"{path}/election")
        return {name: client.get(f"{path}/election/{name}")[0].decode() for name in names}


class CandidateProcess:
    """A candidate in a process of its own, which says on a line of its own how it stands, at each change."""

    def __init__(self, hosts: str, path: str, name: str, folder: Path) -> None:
        arguments = [sys.executable, "-m", "tests.support.elections", hosts, path, name]
        self.process = RunningProcess(arguments, {**os.environ, "PYTHONPATH": str(ROOT)}, folder, name)
        reaper.watch("process", self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.thaw()
        self.process.kill()
        reaper.forget("process", self.process.pid)

    def said(self) -> list[str]:
        return self.process.stdout().split()

    def says(self, *words: str, after: int = 0) -> None:
        """Wait until these are among its lines, in this order, beyond the first `after`."""

        def has_said() -> bool:
            rest = iter(self.said()[after:])
            return all(word in rest for word in words)

        eventually(has_said, within=LONG, what=f"the process says {words}: {self.said()} {self.process.stderr()}")


def run_candidate(hosts: str, path: str, name: str) -> None:
    """Campaign for ever, as a node does; each change of standing is a line."""
    wakeup = threading.Event()
    identity = NodeIdentity(name=name, address="host:1", version="1", pid=os.getpid())
    candidate = ZooKeeperCandidate(Ensemble(hosts, path), identity, SHORT_SESSION, wakeup)
    said = None
    while True:
        if (standing := candidate.standing()) is not said:
            said = standing
            print(standing.value, flush=True)  # noqa: T201 - it is what the test reads
            if standing is Standing.ELECTED and candidate.confirm():
                print("confirmed", flush=True)  # noqa: T201 - as above
        if standing in (Standing.OUT, Standing.LOST):
            candidate.campaign()
        else:
            wakeup.wait(1.0)
        wakeup.clear()


if __name__ == "__main__":
    run_candidate(*sys.argv[1:])
