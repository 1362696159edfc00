"""Live and whole outputs on SQLite: `SqliteOutputs` implements `protocol.OutputStore`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sexton.output_views import LiveOutput
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.tables import to_micros

_WATCH = """INSERT INTO watches (token, until) VALUES (?, ?)
 ON CONFLICT (token) DO UPDATE SET until = max(watches.until, excluded.until)"""
_MAY_WRITE = """SELECT 1 FROM claims c JOIN watches w ON w.token = c.token
 WHERE c.token = ? AND c.state = 1 AND c.worker_id = ? AND w.until > ?"""
_WRITE = """INSERT INTO live_outputs (token, stdout, stderr, stdout_bytes, stderr_bytes, written_at)
 VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (token) DO UPDATE SET stdout = excluded.stdout, stderr = excluded.stderr,
 stdout_bytes = excluded.stdout_bytes, stderr_bytes = excluded.stderr_bytes, written_at = excluded.written_at"""
_CLEAN = "DELETE FROM live_outputs WHERE token NOT IN (SELECT token FROM watches)"
_IS_THERE_ANY = "SELECT EXISTS (SELECT 1 FROM watches WHERE until <= ?) OR EXISTS (SELECT 1 FROM live_outputs)"


class SqliteOutputs:
    """`OutputStore` over one connection, for one thread."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def watch(self, token: int, lasting: timedelta, *, remind: bool = False) -> None:
        with self._connection.transaction() as connection:
            now = self._connection.now()
            row = connection.execute("SELECT until FROM watches WHERE token = ?", (token,)).fetchone()
            connection.execute(_WATCH, (token, to_micros(now + lasting)))
            if remind or row is None or row[0] <= to_micros(now):
                notify(self._connection, connection, Channel.WATCHES)

    def watched(self) -> frozenset[int]:
        with self._connection.snapshot() as connection:
            rows = connection.execute("SELECT token FROM watches WHERE until > ?", (self._connection.now_micros(),))
            return frozenset(token for (token,) in rows)

    def write_live(self, worker_id: int, outputs: Sequence[LiveOutput]) -> frozenset[int]:
        taken = set()
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            for output in outputs:
                if connection.execute(_MAY_WRITE, (output.token, worker_id, now)).fetchone() is not None:
                    sizes = (output.stdout_bytes, output.stderr_bytes)
                    connection.execute(_WRITE, (output.token, output.stdout, output.stderr, *sizes, now))
                    taken.add(output.token)
        return frozenset(taken)

    def note_whole(self, token: int, place: str) -> bool:
        with self._connection.transaction() as connection:
            return connection.execute("UPDATE runs SET output_at = ? WHERE token = ?", (place, token)).rowcount == 1

    def clean_live(self) -> int:
        with self._connection.snapshot() as connection:  # most times there is nothing to lock the file for
            (is_any,) = connection.execute(_IS_THERE_ANY, (self._connection.now_micros(),)).fetchone()
        if not is_any:
            return 0
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            over = connection.execute("DELETE FROM watches WHERE until <= ?", (now,)).rowcount
            return over + connection.execute(_CLEAN).rowcount
