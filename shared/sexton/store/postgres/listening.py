"""LISTEN on a connection of its own: a thread that sets a wake-up, and connects again for as long as it takes."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Mapping

import psycopg

from sexton.clock import Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.store.postgres.connection import GuardedConnection, PostgresConnection
from sexton.store.protocol import Channel

_PROBE_SECONDS = 15.0  # a connection that died silently is found by this
_RECONNECT_SECONDS = 1.0


class PostgresListener:
    """Sets a channel's wake-up at every notification on it, and each once after every reconnect, until closed."""

    def __init__(self, connection: PostgresConnection, wakeups: Mapping[Channel, Wakeup]) -> None:
        self._connection = connection
        self._wakeups = {channel.value: wakeup for channel, wakeup in wakeups.items()}
        self._closing, self._close = os.pipe()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="sexton listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            os.close(self._close)  # the reading end becomes ready
            self._thread.join()
            os.close(self._closing)

    def _run(self) -> None:
        while not self._is_closed(0):
            try:
                connection = self._connection.dedicated()
            except DatabaseUnreachable:
                if self._is_closed(_RECONNECT_SECONDS):
                    return
                continue
            try:
                self._listen(connection)
            except (psycopg.Error, OSError):
                if self._is_closed(_RECONNECT_SECONDS):
                    return
            finally:
                connection.close()

    def _listen(self, connection: GuardedConnection) -> None:
        for name in self._wakeups:
            connection.execute(f"LISTEN {name}".encode())
        for wakeup in self._wakeups.values():
            wakeup.set()  # what was notified before this is lost: let the loop look
        while True:
            ready, _, _ = select.select([connection.fileno(), self._closing], [], [], _PROBE_SECONDS)
            if self._closing in ready:
                return
            if not ready:
                connection.execute("SELECT 1")
            connection.pgconn.consume_input()
            while (told := connection.pgconn.notifies()) is not None:
                self._wakeups[told.relname.decode()].set()

    def _is_closed(self, seconds: float) -> bool:
        return bool(select.select([self._closing], [], [], seconds)[0])
