"""One client of ZooKeeper: its session, the server it is connected to, and why it is not.

kazoo, with its doors closed that lead to waiting for ever:

* Each question has an answer or an error within ``ANSWER_WITHIN``: a request that is queued
  in the moment in which kazoo throws its queue away is never answered.
* Connecting to one server takes a third of the session at most, and names that cannot be
  resolved, whatever the resolver raises, are a pause like any other.
* The recipe's lock pauses for a second at most between two tries, and not at all once it is
  cancelled; kazoo's own pauses double with each dropped connection of all its weeks, up to a
  minute. An expired session ends it.
* kazoo ends for good after a refused login and after any error it did not foresee
  (``has_ended``), and is refused for ever by servers that hold less than it has seen
  (``last_seen``), be they restored or wiped. Whoever holds a connection looks after that
  and takes a fresh one.
* ``stop`` takes as long as a connection attempt does; so it runs in a thread of its own.

TLS is done here with a context of our own: kazoo's checks no host name, and believes
every authority of the machine.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import SessionExpiredError
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.recipe.lock import Lock
from kazoo.retry import KazooRetry

from sexton_scheduler.election.ensemble import Ensemble, Entrance, address_text
from sexton_scheduler.election.troubles import Trouble, of_connecting, of_names

ANSWER_WITHIN = 10.0
LONGEST_PAUSE = 1.0  # seconds between two tries, before kazoo's jitter of 40 %
STOP_WITHIN = 60.0
_LEAST_CONNECT = 1.0

# What kazoo says at each try, a candidate says once (``Trouble``).
_kazoo_log = logging.getLogger("sexton.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class Connection:
    """A client that connects from ``open`` to ``stop``. ``on_state`` is called in kazoo's thread, and must not block.

    All attributes may be read from any thread.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        entrance: Entrance,
        session: timedelta,
        on_state: Callable[[Connection, str], None],
        on_trouble: Callable[[Trouble], None],
    ) -> None:
        self.session_wanted = session
        self.session_given: timedelta | None = None
        self.session_id: int | None = None  # the one that may live
        self.server: str | None = None  # connected to now
        self.is_connected = False
        self.has_ended = False  # by itself
        self.lost_at: float | None = time.monotonic()  # monotonic seconds; None while connected
        self._on_state, self._on_trouble = on_state, on_trouble
        handler = _Handler(entrance, max(_LEAST_CONNECT, session.total_seconds() / 3))
        self.client: Any = KazooClient(
            hosts=ensemble.hosts,
            timeout=session.total_seconds(),
            handler=handler,
            default_acl=entrance.acl,
            auth_data=entrance.auth_data,
            logger=_kazoo_log,
        )
        self.client._connection = _Connecting(self, self.client, is_tls=entrance.tls is not None)
        self.client.add_listener(self._listen)

    def open(self) -> None:
        """Begin to connect; returns at once."""
        self.client.start_async()

    @property
    def last_seen(self) -> int:
        """The newest change (zxid) this session has seen; servers that hold less refuse it."""
        return int(self.client.last_zxid)

    def contender(self, folder: str, data: str) -> Contender:
        return Contender(self.client, folder, data)

    def stop(self) -> threading.Thread:
        """Close the session and release threads and sockets, in the background; the thread that does it.

        ``on_state`` is not called any more. Whoever waits for an answer gets an error.
        """
        self.client.remove_listener(self._listen)
        thread = threading.Thread(target=self._stop, name="sexton-zookeeper-stop", daemon=True)
        thread.start()
        return thread

    def _stop(self) -> None:
        with contextlib.suppress(Exception):  # kazoo gives up waiting for its own thread: we do not
            self.client.stop()
        if self.client._connection.connection_stopped.wait(STOP_WITHIN):
            with contextlib.suppress(Exception):
                self.client.close()

    # --- kazoo's thread: flags only ----------------------------------------------------------------

    def _listen(self, state: str) -> None:
        self.is_connected = state == KazooState.CONNECTED
        if state == KazooState.CONNECTED:
            self.session_id = self.client.client_id[0]
            self.lost_at = None
        else:
            self.server = None
            if self.lost_at is None:
                self.lost_at = time.monotonic()
        if state == KazooState.LOST:
            self.session_id = None
        self._on_state(self, state)

    def connects(self, server: str, given: timedelta) -> None:
        self.server, self.session_given = server, given

    def fails(self, trouble: Trouble) -> None:
        self._on_trouble(trouble)


class Contender(Lock):  # type: ignore[misc]  # kazoo ships no types
    """kazoo's lock recipe for one campaign; see the top of this module."""

    def __init__(self, client: Any, folder: str, data: str) -> None:
        super().__init__(client, folder, data)
        self._retry = KazooRetry(
            max_tries=-1,
            delay=0.1,
            max_delay=LONGEST_PAUSE,
            ignore_expire=False,
            sleep_func=client.handler.sleep_func,
            interrupt=lambda: self.cancelled,
        )


class _Answer(AsyncResult):  # type: ignore[misc]  # kazoo ships no types
    """An answer that is not waited for without end."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return super().get(block, ANSWER_WITHIN if timeout is None else timeout)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo ships no types
    """kazoo's threads, with connections and answers of our own."""

    def __init__(self, entrance: Entrance, connect_within: float) -> None:
        super().__init__()
        self._entrance = entrance
        self._connect_within = connect_within

    def async_result(self) -> _Answer:
        return _Answer(self)

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float = 1.0, **_: object
    ) -> socket.socket:
        connection = socket.create_connection(address, min(timeout, self._connect_within))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if (tls := self._entrance.context()) is not None:
                connection = tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise
        return connection

    def select(self, readers: list[Any], writers: list[Any], errors: list[Any], timeout: float | None = None) -> Any:
        """As kazoo's; what TLS has read already counts too, which no descriptor shows."""
        ready = [one for one in readers if isinstance(one, ssl.SSLSocket) and one.pending()]
        return (ready, [], []) if ready else super().select(readers, writers, errors, timeout)


class _Connecting(ConnectionHandler):  # type: ignore[misc]  # kazoo ships no types
    """kazoo's connecting thread, which tells its connection how it fares."""

    def __init__(self, told: Connection, client: Any, *, is_tls: bool) -> None:
        pauses = KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=LONGEST_PAUSE)
        pauses.interrupt = client._stopped.is_set
        super().__init__(client, pauses, logger=_kazoo_log)
        self._told = told
        self._is_tls = is_tls

    def zk_loop(self) -> None:
        try:
            super().zk_loop()
        except Exception as error:  # kazoo's thread must not end without a word
            self._told.fails(Trouble("fault", f"the client of ZooKeeper failed ({error!r}) and is started anew"))
        finally:
            self._told.has_ended = True

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """Name, address and port of every address of every server, in an order that differs from node to node."""
        found: list[tuple[str, str, int]] = []
        for host, port in self.client.hosts:
            with contextlib.suppress(OSError, UnicodeError):  # UnicodeError: a text that can be no name
                for _, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                    found.append((host, str(address[0]), port))
        if not found:
            self._told.fails(of_names(",".join(address_text(*one) for one in self.client.hosts)))
        random.shuffle(found)
        return found

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        server = address_text(host, port)
        try:
            read_timeout, connect_timeout = super()._connect(host, hostip, port)
        except SessionExpiredError:
            raise
        except Exception as error:
            self._told.fails(of_connecting(server, error, is_tls=self._is_tls))
            raise
        # kazoo's read timeout is two thirds of the session that the server gave
        self._told.connects(server, timedelta(milliseconds=round(read_timeout * 1.5)))
        return read_timeout, connect_timeout
