"""Notifications on SQLite: a counter per channel, raised in the transaction that has something to tell.

Listeners on a file look at the counters a few times a second, on a connection of their own. In memory, where one
thread is all there is, the wake-ups are set at once.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Sequence

from sexton.clock import Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection

_LOOK_SECONDS = 0.2
_RAISE = "INSERT INTO counters (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = counters.value + 1"

_in_memory: dict[str, list[MemoryListener]] = {}


def notify(store: SqliteConnection, connection: sqlite3.Connection, channel: Channel) -> None:
    """Tell the channel's listeners, once the transaction that is open on ``connection`` commits."""
    if store.is_in_memory:
        for listener in _in_memory.get(store.options.url, ()):
            listener.tell(channel)
    else:
        connection.execute(_RAISE, (f"notify.{channel.value}",))


class MemoryListener:
    """Sets ``wakeup`` in the very call that notifies."""

    def __init__(self, store: SqliteConnection, channels: Sequence[Channel], wakeup: Wakeup) -> None:
        self._channels = frozenset(channels)
        self._wakeup = wakeup
        self._url = store.options.url
        _in_memory.setdefault(self._url, []).append(self)

    def tell(self, channel: Channel) -> None:
        if channel in self._channels:
            self._wakeup.set()

    def close(self) -> None:
        with contextlib.suppress(ValueError):
            _in_memory[self._url].remove(self)


class FileListener:
    """Sets ``wakeup`` within 0.2 s of a commit that notified one of the channels, until closed."""

    def __init__(self, store: SqliteConnection, channels: Sequence[Channel], wakeup: Wakeup) -> None:
        self._store = store
        self._names = tuple(f"notify.{channel.value}" for channel in channels)
        self._wakeup = wakeup
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sexton listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._store.dedicated()
            except DatabaseUnreachable:
                self._closed.wait(1.0)
                continue
            try:
                self._look(connection)
            except sqlite3.Error:
                self._closed.wait(1.0)
            finally:
                connection.close()

    def _look(self, connection: sqlite3.Connection) -> None:
        marks = ", ".join("?" for _ in self._names)
        statement = f"SELECT coalesce(sum(value), 0) FROM counters WHERE name IN ({marks})"  # noqa: S608 - only marks
        seen: tuple[int, int] | None = None
        while not self._closed.is_set():
            (version,) = connection.execute("PRAGMA data_version").fetchone()  # cheap: moves when others commit
            if seen is None or version != seen[0]:
                (total,) = connection.execute(statement, self._names).fetchone()
                if seen is None or total != seen[1]:  # the first look, too: what came before it is unknown
                    self._wakeup.set()
                seen = (version, total)
            self._closed.wait(_LOOK_SECONDS)
