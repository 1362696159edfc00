"""Election by ZooKeeper: kazoo's lock recipe, in a campaign thread of its own.

What kazoo promises and what it does not, and what follows from it here:

* A ``Lock`` object that has lived through an expired session never wins again, while its
  ``is_acquired`` stays true. So every campaign makes a fresh ``Lock``, and an election is
  believed only while the present session is the one it was won in.
* A call to ZooKeeper from a state listener blocks the client for ever. So the listener
  takes a short lock, sets flags, and wakes others.
* A fresh ``Lock`` queues behind a znode that an earlier campaign of the same session left
  (a resignation whose answer was lost). So each campaign first removes its session's own.
* ``stop`` can hang. So closing happens in a daemon thread and is waited for briefly.

Znodes: ``<path>/election/<uuid>__lock__<sequence>``, ephemeral, with the node's name,
address and version as JSON. The path is made where it is missing. Nothing here is a
safety property (invariant 1): a wrong answer costs a lost compare-and-set, no more.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import CancelledError, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from sexton.clock import Wakeup
from sexton.errors import InvalidSetting
from sexton.terms import ElectedBy
from sexton_scheduler.election.candidate import NodeIdentity, Standing

SCHEME = "zookeeper://"
_ANSWER_WITHIN = 3.0  # seconds for one question of `confirm` or `resign`
_CLOSE_WITHIN = 3.0
_RETRY_EVERY = 0.5
_SEQUENCE_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Where ZooKeeper is: ``hosts`` as kazoo takes them, and the path under which all znodes lie."""

    hosts: str
    path: str

    @classmethod
    def parse(cls, coordinator: str) -> Ensemble:
        """Read ``zookeeper://h1:2181,h2:2181/sexton``; raises InvalidSetting."""
        hosts, _, path = coordinator.removeprefix(SCHEME).partition("/")
        if not coordinator.startswith(SCHEME) or not hosts or any(not host for host in hosts.split(",")):
            raise InvalidSetting(
                f"coordinator {coordinator!r} names no ZooKeeper servers",
                hint="write e.g. zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
            )
        return cls(hosts, "/" + path.strip("/") if path.strip("/") else "/sexton")


@dataclass(frozen=True, slots=True)
class _Election:
    """A won campaign: its znode's name, and the session it was won in."""

    znode: str
    session: int


class ZooKeeperCandidate:
    """A ``Candidate`` on a ZooKeeper ensemble. The methods are for one thread; the campaign runs in another."""

    elected_by = ElectedBy.ZOOKEEPER

    def __init__(self, ensemble: Ensemble, identity: NodeIdentity, session: timedelta, wakeup: Wakeup) -> None:
        self._ensemble = ensemble
        self._folder = f"{ensemble.path}/election"
        self._identity = json.dumps(asdict(identity))
        self._session_wanted = session
        self._wakeup = wakeup
        self._guard = threading.Lock()  # held for moments, never across a call to ZooKeeper
        self._standing = Standing.OUT
        self._election: _Election | None = None
        self._contender: Any = None
        self._expiries = 0
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._connected = threading.Event()
        self._client: Any = None
        self._session_used: timedelta | None = None
        self._thread = threading.Thread(target=self._run, name="sexton-campaign", daemon=True)
        self._thread.start()

    # --- the protocol ----------------------------------------------------------------------------

    def campaign(self) -> None:
        with self._guard:
            if self._closed.is_set() or self._standing not in (Standing.OUT, Standing.LOST):
                return
            self._election = None
            self._standing = Standing.WAITING if self._connected.is_set() else Standing.AWAY
            self._wanted.set()

    def standing(self) -> Standing:
        with self._guard:
            return self._standing

    def confirm(self) -> bool:
        with self._guard:
            election, client = self._election, self._client
            if election is None or self._standing is not Standing.ELECTED:
                return False
        try:
            _answer(client.sync_async(self._folder))
            znodes: list[str] = _answer(client.get_children_async(self._folder))
            stat = _answer(client.exists_async(f"{self._folder}/{election.znode}"))
        except (KazooException, KazooTimeoutError):
            return False
        first = min(znodes, key=_sequence, default=None)
        holds = (
            first == election.znode
            and stat is not None
            and stat.ephemeralOwner == election.session == client.client_id[0]
        )
        if not holds:
            with self._guard:
                if self._election is election:
                    self._standing = Standing.LOST
        return holds

    def resign(self) -> None:
        with self._guard:
            self._wanted.clear()
            election, client, contender = self._election, self._client, self._contender
            self._election = None
            self._standing = Standing.OUT
        if contender is not None:
            contender.cancel()
        if election is not None:
            self._remove(client, election.znode)

    def adopt(self, session: timedelta) -> None:
        self._session_wanted = session

    def describe(self) -> str:
        with self._guard:
            client = self._client
        if client is None or client.client_id is None:
            return f"ZooKeeper {self._ensemble.hosts}, connecting"
        state = "connected" if self._connected.is_set() else "not connected"
        return f"ZooKeeper session {client.client_id[0]:#x}, {state}"

    def close(self) -> None:
        if self._closed.is_set():
            return
        self.resign()
        self._closed.set()
        self._wanted.set()
        self._connected.set()  # whoever waits for it looks at _closed
        self._thread.join(_CLOSE_WITHIN)
        self._close_client()

    # --- the campaign's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._closed.is_set():
                return
            try:
                self._campaign()
            except (KazooException, KazooTimeoutError, CancelledError, ConnectionError):
                self._closed.wait(_RETRY_EVERY)

    def _campaign(self) -> None:
        """One fresh lock: returns when it has won, or when the campaign was given up."""
        client = self._open_client()
        self._connected.wait()
        if self._closed.is_set() or not self._wanted.is_set():
            return
        with self._guard:
            expiries = self._expiries
        self._remove_leftovers(client)
        contender = client.Lock(self._folder, self._identity)
        with self._guard:
            if not self._wanted.is_set():
                return
            self._contender = contender
        try:
            won = contender.acquire()
        finally:
            with self._guard:
                self._contender = None
        if not won:
            return
        with self._guard:
            still_wanted = self._wanted.is_set() and not self._closed.is_set()
            if still_wanted and self._expiries == expiries:
                self._election = _Election(contender.node, client.client_id[0])
                self._standing = Standing.ELECTED if self._connected.is_set() else Standing.SUSPENDED
                self._wanted.clear()
        self._wakeup.set()
        if not still_wanted:
            self._remove(client, contender.node)

    def _open_client(self) -> Any:
        """The running client; a new one where the session's length was changed."""
        if self._client is not None and self._session_used == self._session_wanted:
            return self._client
        self._close_client()
        self._connected.clear()
        client = KazooClient(
            hosts=self._ensemble.hosts,
            timeout=self._session_wanted.total_seconds(),
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=1.0),
        )
        client.add_listener(self._on_state)
        with self._guard:
            self._client, self._session_used = client, self._session_wanted
        client.start_async()
        return client

    def _remove_leftovers(self, client: Any) -> None:
        """Delete znodes that an earlier campaign of this very session left in the line."""
        client.ensure_path(self._folder)
        for znode in client.get_children(self._folder):
            stat = client.exists(f"{self._folder}/{znode}")
            if stat is not None and stat.ephemeralOwner == client.client_id[0]:
                self._remove(client, znode)

    def _remove(self, client: Any, znode: str) -> None:
        """Delete a znode of ours; where ZooKeeper does not answer, the session's end will."""
        try:
            _answer(client.delete_async(f"{self._folder}/{znode}"))
        except (KazooException, KazooTimeoutError):
            return

    def _close_client(self) -> None:
        with self._guard:
            client, self._client = self._client, None
        if client is None:
            return
        client.remove_listener(self._on_state)
        stopping = threading.Thread(target=_stop, args=(client,), name="sexton-zookeeper-stop", daemon=True)
        stopping.start()
        stopping.join(_CLOSE_WITHIN)

    # --- kazoo's thread: flags only ----------------------------------------------------------------

    def _on_state(self, state: str) -> None:
        with self._guard:
            if state == KazooState.CONNECTED:
                self._connected.set()
                if self._standing is Standing.AWAY:
                    self._standing = Standing.WAITING
                elif self._standing is Standing.SUSPENDED and self._election is not None:
                    same = self._client is not None and self._client.client_id[0] == self._election.session
                    self._standing = Standing.ELECTED if same else Standing.LOST
            else:
                self._connected.clear()
                if self._standing is Standing.WAITING:
                    self._standing = Standing.AWAY
                elif self._standing is Standing.ELECTED:
                    self._standing = Standing.SUSPENDED
            if state == KazooState.LOST:
                self._expiries += 1
                if self._standing is Standing.SUSPENDED:
                    self._standing = Standing.LOST
                if self._contender is not None:
                    self._contender.cancel()
        self._wakeup.set()


def _answer(result: Any) -> Any:
    return result.get(timeout=_ANSWER_WITHIN)


def _sequence(znode: str) -> str:
    return znode[-_SEQUENCE_DIGITS:]


def _stop(client: Any) -> None:
    client.stop()
    client.close()
