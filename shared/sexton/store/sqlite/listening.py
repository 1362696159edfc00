"""Notifications on SQLite: a counter per channel, raised in the transaction that has something to tell.

Listeners on a file look at the counters a few times a second, on a connection of their own. In memory, where one
thread is all there is, the wake-ups are set at once.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Mapping

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
    """Sets a channel's wake-up in the very call that notifies."""

    def __init__(self, store: SqliteConnection, wakeups: Mapping[Channel, Wakeup]) -> None:
        self._wakeups = dict(wakeups)
        self._url = store.options.url
        _in_memory.setdefault(self._url, []).append(self)

    def tell(self, channel: Channel) -> None:
        if channel in self._wakeups:
            self._wakeups[channel].set()

    def close(self) -> None:
        with contextlib.suppress(ValueError):
            _in_memory[self._url].remove(self)


class FileListener:
    """Sets a channel's wake-up within 0.2 s of a commit that notified it, until closed."""

    def __init__(self, store: SqliteConnection, wakeups: Mapping[Channel, Wakeup]) -> None:
        self._store = store
        self._wakeups = {f"notify.{channel.value}": wakeup for channel, wakeup in wakeups.items()}
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
        names = tuple(self._wakeups)
        marks = ", ".join("?" for _ in names)
        statement = f"SELECT name, value FROM counters WHERE name IN ({marks})"  # noqa: S608 - only marks
        seen: int | None = None
        counts: dict[str, int] = {}
        while not self._closed.is_set():
            (version,) = connection.execute("PRAGMA data_version").fetchone()  # cheap: moves when others commit
            if version != seen:
                now = dict(connection.execute(statement, names).fetchall())
                for name, wakeup in self._wakeups.items():
                    # The first look, too: what came before it is unknown.
                    if seen is None or now.get(name) != counts.get(name):
                        wakeup.set()
                seen, counts = version, now
            self._closed.wait(_LOOK_SECONDS)
