"""LISTEN on a connection of its own: a thread that sets a wake-up, and connects again for as long as it takes."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence

import psycopg

from sexton.clock import Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.store.postgres.connection import GuardedConnection, PostgresConnection
from sexton.store.protocol import Channel

_PROBE_SECONDS = 15.0  # a connection that died silently is found by this
_RECONNECT_SECONDS = 1.0


class PostgresListener:
    """Sets ``wakeup`` at every notification on one of the channels, and once after every reconnect, until closed."""

    def __init__(self, connection: PostgresConnection, channels: Sequence[Channel], wakeup: Wakeup) -> None:
        self._connection = connection
        self._channels = tuple(channels)
        self._wakeup = wakeup
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
        for channel in self._channels:
            connection.execute(f"LISTEN {channel.value}".encode())
        self._wakeup.set()  # what was notified before this is lost: let the loop look
        while True:
            ready, _, _ = select.select([connection.fileno(), self._closing], [], [], _PROBE_SECONDS)
            if self._closing in ready:
                return
            if not ready:
                connection.execute("SELECT 1")
            connection.pgconn.consume_input()
            while connection.pgconn.notifies() is not None:
                self._wakeup.set()

    def _is_closed(self, seconds: float) -> bool:
        return bool(select.select([self._closing], [], [], seconds)[0])
