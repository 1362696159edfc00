"""Election by ZooKeeper: kazoo's lock recipe, in a campaign thread of its own, and a watch beside it.

What kazoo promises and what it does not, and what follows from it here:

* A ``Lock`` object that has lived through an expired session never wins again, while its
  ``is_acquired`` stays true. So every campaign makes a fresh one, and an election is
  believed only while the present session of the present connection is the one it was won in.
* A win may arrive late: after a resignation, after the next campaign has begun, after the
  session is gone. So campaigns are numbered, and a win counts for the campaign that is
  wanted; any other is taken back.
* A call to ZooKeeper from a state listener blocks the client for ever. So the listener
  takes a short lock, sets flags, and wakes others.
* A fresh ``Lock`` queues behind a znode that an earlier campaign of the same session left
  (a resignation whose answer was lost). So each campaign first removes its session's own.
* A client may end for good, or be refused for ever (``connection``). So the watch asks the
  servers every ``WATCH_EVERY`` what they are (``probe``), and where they serve, and this
  client is not served, or is dead, it puts a fresh one in its place; the session before
  lapses. Where no server serves, the client is left to wait: its session may live on.
* Nobody tells an elected node that its znode was deleted. So the watch looks for it.

Threads: the campaign's, the watch's, and kazoo's. Znodes: ``<path>/election/<uuid>__lock__<sequence>``,
ephemeral, with the node's name, address and version as JSON. The path is made where it is missing, also again.
Nothing here is a safety property (invariant 1): a wrong answer costs a lost compare-and-set, no more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta

import structlog
from kazoo.client import KazooState
from kazoo.exceptions import CancelledError, KazooException
from kazoo.handlers.threading import KazooTimeoutError

from sexton.clock import Wakeup
from sexton.settings import format_duration
from sexton.terms import CoordinatorServer, ElectedBy
from sexton_scheduler.election import line
from sexton_scheduler.election.candidate import NodeIdentity, Standing
from sexton_scheduler.election.connection import Connection, Contender
from sexton_scheduler.election.ensemble import Ensemble, Entrance
from sexton_scheduler.election.line import Place
from sexton_scheduler.election.permissions import warn_of_open_paths
from sexton_scheduler.election.probe import ServerAnswer, ask_servers
from sexton_scheduler.election.trouble_log import TroubleLog
from sexton_scheduler.election.troubles import of_answer
from sexton_scheduler.election.verdicts import hopeless

WATCH_EVERY = 2.0
_CLOSE_WITHIN = 3.0
_RETRY_EVERY = 0.5


class ZooKeeperCandidate:
    """A ``Candidate`` on a ZooKeeper ensemble. The methods are for one thread; the campaign runs in another.

    ``saw_servers`` is called in the watch's thread with what each server said of itself.
    """

    elected_by = ElectedBy.ZOOKEEPER

    def __init__(
        self,
        ensemble: Ensemble,
        identity: NodeIdentity,
        session: timedelta,
        wakeup: Wakeup,
        entrance: Entrance | None = None,
        saw_servers: Callable[[tuple[CoordinatorServer, ...]], None] = lambda _: None,
    ) -> None:
        self._ensemble = ensemble
        self._folder = ensemble.folder
        self._entrance = entrance or Entrance()
        self._identity = json.dumps(asdict(identity))
        self._wakeup = wakeup
        self._saw_servers = saw_servers
        self._log = structlog.get_logger("sexton.scheduler").bind(node=identity.name)
        self._changed = threading.Condition()  # held for moments, never across a call to ZooKeeper
        # all below: under _changed
        self._session_wanted = session
        self._standing = Standing.OUT
        self._campaigns = 0
        self._wanted: int | None = None  # the number of the campaign that is not decided yet
        self._election: Place | None = None
        self._contender: Contender | None = None
        self._connection: Connection | None = None
        self._is_closed = False
        # not under it
        self._closing = threading.Event()
        self._troubles = TroubleLog(self._log)
        self._warned: set[str] = set()  # once per process
        self._threads = (
            threading.Thread(target=self._run, name="sexton-campaign", daemon=True),
            threading.Thread(target=self._watch, name="sexton-zookeeper-watch", daemon=True),
        )
        for thread in self._threads:
            thread.start()

    # --- the protocol ----------------------------------------------------------------------------

    def campaign(self) -> None:
        with self._changed:
            if self._is_closed or self._standing not in (Standing.OUT, Standing.LOST):
                return
            self._election = None
            self._standing = Standing.WAITING if self._is_connected() else Standing.AWAY
            self._campaigns += 1
            self._wanted = self._campaigns
            self._changed.notify_all()

    def standing(self) -> Standing:
        with self._changed:
            return self._standing

    def confirm(self) -> bool:
        with self._changed:
            election = self._election
            if election is None or self._standing is not Standing.ELECTED:
                return False
        try:
            holds = line.is_first(election, self._folder)
        except (KazooException, KazooTimeoutError) as error:
            self._note_answer(error)
            return False
        self._troubles.admitted()
        if not holds:
            self._void(election)
        with self._changed:  # it may have been suspended or lost while the answers were on their way
            return holds and self._election is election and self._standing is Standing.ELECTED

    def resign(self) -> None:
        with self._changed:
            self._wanted = None
            election, self._election = self._election, None
            connection, is_away = self._connection, not self._is_connected()
            self._standing = Standing.OUT
            self._cancel_contender()
        # A place left in line lives on with its session, and whoever stands behind it is never elected.
        if connection is not None and (is_away or (election and not line.remove(election, self._folder))):
            self._replace(connection)

    rest = resign  # who is to let ZooKeeper go closes it (`on_demand`)

    def seated(self) -> None: ...  # ZooKeeper's line decides who is confirmed

    def adopt(self, session: timedelta) -> None:
        with self._changed:
            if session == self._session_wanted:
                return
            self._session_wanted = session
            if self._wanted is not None:  # whoever waits may as well wait in a session of the new length
                self._cancel_contender()
                self._changed.notify_all()

    def describe(self) -> str:
        with self._changed:
            connection = self._connection
        session_id = connection.session_id if connection is not None else None
        if connection is None or session_id is None:
            words = [f"connecting to {self._ensemble.hosts}"]
        else:
            given, server = connection.session_given, connection.server
            words = [f"session {session_id:#x}", *([format_duration(given)] if given else [])]
            if connection.is_connected:
                words.append(f"connected to {server}" if server else "connected")
            else:
                words.append("not connected")
        trouble = self._troubles.now
        return ", ".join(words) + ("" if trouble is None else f": {trouble.sentence}")

    def close(self) -> None:
        with self._changed:
            if self._is_closed:
                return
        self.resign()
        with self._changed:
            self._is_closed = True
            connection, self._connection = self._connection, None
            self._changed.notify_all()
        self._closing.set()
        deadline = time.monotonic() + _CLOSE_WITHIN
        stopping = [connection.stop()] if connection is not None else []
        for thread in (*stopping, *self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        self._troubles.say()

    # --- the campaign's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while (number := self._next_campaign()) is not None:
            try:
                self._campaign(number)
            except CancelledError:
                continue
            except Exception as error:
                self._stumbled(error)

    def _next_campaign(self) -> int | None:
        """The number of the campaign that is wanted, once one is; None once closed."""
        with self._changed:
            while self._wanted is None and not self._is_closed:
                self._changed.wait()
            return None if self._is_closed else self._wanted

    def _campaign(self, number: int) -> None:
        """One fresh lock: returns when it has won, or when the campaign was given up."""
        connection = self._connected(number)
        session_id = None if connection is None else connection.session_id
        if connection is None or session_id is None:
            return
        self._prepare(connection, session_id)
        contender = connection.contender(self._folder, self._identity)
        with self._changed:
            if self._wanted != number or self._connection is not connection:
                return
            self._contender = contender
        self._troubles.admitted()
        won = False
        try:
            won = contender.acquire()
        finally:
            with self._changed:
                self._contender = None
            place = Place(contender.node, connection, session_id)
            if contender.node is not None and not (won and self._accept(number, place)):
                self._leave(place)

    def _leave(self, place: Place) -> None:
        """Give a place in line up; with its session where it cannot be taken away and that may live."""
        if place.connection.session_id == place.session_id and not line.remove(place, self._folder):
            self._replace(place.connection)

    def _accept(self, number: int, election: Place) -> bool:
        """Whether this win counts: its campaign is still the one that is wanted, and its session may live."""
        with self._changed:
            connection = election.connection
            is_current = self._connection is connection and connection.session_id == election.session_id
            if self._wanted != number or not is_current or self._is_closed:
                return False
            self._wanted = None
            self._election = election
            self._standing = Standing.ELECTED if connection.is_connected else Standing.SUSPENDED
        self._wakeup.set()
        return True

    def _connected(self, number: int) -> Connection | None:
        """The running connection, once it is connected, of the length that is wanted; None where the campaign ended."""
        while True:
            outdated = None
            with self._changed:
                if self._is_closed or self._wanted != number:
                    return None
                connection = self._connection
                if connection is not None and connection.session_wanted != self._session_wanted:
                    outdated = connection
                elif connection is None:
                    connection = Connection(
                        self._ensemble, self._entrance, self._session_wanted, self._on_state, self._troubles.note
                    )
                    connection.open()
                    self._connection = connection
                elif connection.is_connected:
                    return connection
                else:
                    self._changed.wait(1.0)
            if outdated is not None:
                self._replace(outdated)

    def _prepare(self, connection: Connection, session_id: int) -> None:
        """Make the path, and delete znodes that an earlier campaign of this very session left in the line."""
        connection.client.ensure_path(self._folder)
        paths, is_locked = (self._ensemble.path, self._folder), self._entrance.login is not None
        if is_locked and "open" not in self._warned and warn_of_open_paths(connection.client, paths, self._log):
            self._warned.add("open")
        line.remove_leftovers(connection, session_id, self._folder)

    def _stumbled(self, error: Exception) -> None:
        """A campaign ended on an error; what an operator must know is said, and the next one begins soon."""
        self._note_answer(error)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, _RETRY_EVERY)

    def _note_answer(self, error: Exception) -> None:
        self._troubles.note(of_answer(self._folder, error, has_login=self._entrance.login is not None))

    # --- the watch's thread ------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._is_closed:
            try:
                answers = tuple(ask_servers(self._ensemble.servers, self._entrance.context()))
                if not self._is_closed:
                    self._saw_servers(tuple(answer.server for answer in answers))
                    self._look_after_connection(answers)
                    self._look_after_election()
                self._troubles.say()
            except Exception:  # the watch must outlive whatever it sees
                self._log.exception("zookeeper.watch_failed")
            self._closing.wait(WATCH_EVERY)

    def _look_after_connection(self, answers: Sequence[ServerAnswer]) -> None:
        with self._changed:
            connection = self._connection
        if connection is None:
            return
        self._compare_session(connection)
        reason = hopeless(connection, answers, time.monotonic())
        if reason is not None:
            self._troubles.replaced(reason)
            self._replace(connection)

    def _compare_session(self, connection: Connection) -> None:
        wanted, given = connection.session_wanted, connection.session_given
        if given is None or given == wanted or f"session {wanted}" in self._warned:
            return
        self._warned.add(f"session {wanted}")
        self._log.warning(
            "zookeeper.session_bounded",
            asked=format_duration(wanted),
            given=format_duration(given),
            hint="servers allow 2 to 20 ticks; set minSessionTimeout, maxSessionTimeout there, or the session here",
        )

    def _look_after_election(self) -> None:
        with self._changed:
            election = self._election
            if election is None or self._standing is not Standing.ELECTED:
                return
        try:
            holds = line.exists(election, self._folder)
        except (KazooException, KazooTimeoutError):
            return
        if not holds:
            self._void(election)

    def _void(self, election: Place) -> None:
        """ZooKeeper says that this election does not hold."""
        with self._changed:
            if self._election is election and self._standing in (Standing.ELECTED, Standing.SUSPENDED):
                self._standing = Standing.LOST
        self._wakeup.set()

    def _replace(self, connection: Connection) -> None:
        """Give a connection up with its session; the next campaign opens another."""
        with self._changed:
            if self._connection is not connection:
                return
            self._connection = None
            self._sink()
            self._cancel_contender()
            self._changed.notify_all()
        connection.stop()
        self._wakeup.set()

    # --- kazoo's thread: flags only ----------------------------------------------------------------

    def _on_state(self, connection: Connection, state: str) -> None:
        with self._changed:
            if connection is not self._connection:
                return
            if state == KazooState.CONNECTED:
                self._troubles.connected()
                self._rise(connection)
            elif state == KazooState.SUSPENDED:
                if self._standing is Standing.WAITING:
                    self._standing = Standing.AWAY
                elif self._standing is Standing.ELECTED:
                    self._standing = Standing.SUSPENDED
            else:
                self._sink()
                self._cancel_contender()
            self._changed.notify_all()
        self._wakeup.set()

    def _rise(self, connection: Connection) -> None:
        """Connected. Under ``_changed``."""
        if self._standing is Standing.AWAY:
            self._standing = Standing.WAITING
        elif self._standing is Standing.SUSPENDED and self._election is not None:
            same = self._election.session_id == connection.session_id
            self._standing = Standing.ELECTED if same else Standing.LOST

    def _sink(self) -> None:
        """The session is gone. Under ``_changed``."""
        if self._standing is Standing.WAITING:
            self._standing = Standing.AWAY
        elif self._standing in (Standing.ELECTED, Standing.SUSPENDED):
            self._standing = Standing.LOST

    def _cancel_contender(self) -> None:
        if self._contender is not None:
            self._contender.cancel()

    def _is_connected(self) -> bool:
        return self._connection is not None and self._connection.is_connected
