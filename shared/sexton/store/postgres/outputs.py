"""Live and whole outputs on PostgreSQL: `PostgresOutputs` implements `protocol.OutputStore`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sexton.output_views import LiveOutput
from sexton.store.protocol import Channel

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_WATCH = b"""WITH before AS (SELECT until > statement_timestamp() AS is_on FROM watches WHERE token = %(token)s),
 kept AS (INSERT INTO watches (token, until) VALUES (%(token)s, statement_timestamp() + %(lasting)s)
  ON CONFLICT (token) DO UPDATE SET until = greatest(watches.until, excluded.until))
SELECT coalesce((SELECT is_on FROM before), false)"""
_NOTIFY = f"SELECT pg_notify('{Channel.WATCHES.value}', '')".encode()
_WATCHED = b"SELECT token FROM watches WHERE until > statement_timestamp()"
# Those that run are few: `claims_lease` finds them.
_WRITE = b"""INSERT INTO live_outputs (token, stdout, stderr, stdout_bytes, stderr_bytes, written_at)
SELECT d.*, statement_timestamp()
 FROM unnest(%(tokens)s::bigint[], %(out)s::bytea[], %(err)s::bytea[], %(out_bytes)s::bigint[], %(err_bytes)s::bigint[])
  d(token, stdout, stderr, stdout_bytes, stderr_bytes)
 JOIN claims c ON c.token = d.token AND c.state = 1 AND c.worker_id = %(worker)s
 JOIN watches w ON w.token = d.token AND w.until > statement_timestamp()
ON CONFLICT (token) DO UPDATE SET stdout = excluded.stdout, stderr = excluded.stderr,
 stdout_bytes = excluded.stdout_bytes, stderr_bytes = excluded.stderr_bytes, written_at = excluded.written_at
RETURNING token"""
_NOTE_WHOLE = b"UPDATE runs SET output_at = %s WHERE token = %s"
_CLEAN = b"""WITH over AS (DELETE FROM watches WHERE until <= statement_timestamp() RETURNING 1),
 gone AS (DELETE FROM live_outputs l
  WHERE NOT EXISTS (SELECT 1 FROM watches w WHERE w.token = l.token AND w.until > statement_timestamp()) RETURNING 1)
SELECT (SELECT count(*) FROM over) + (SELECT count(*) FROM gone)"""


class PostgresOutputs:
    """`OutputStore` over one connection, for one thread."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def watch(self, token: int, lasting: timedelta, *, remind: bool = False) -> None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_WATCH, {"token": token, "lasting": lasting}).fetchone()
            if remind or not (row and row[0]):
                connection.execute(_NOTIFY)

    def watched(self) -> frozenset[int]:
        with self._connection.autocommit() as connection:
            return frozenset(token for (token,) in connection.execute(_WATCHED))

    def write_live(self, worker_id: int, outputs: Sequence[LiveOutput]) -> frozenset[int]:
        ordered = sorted(outputs, key=lambda output: output.token)
        values = {
            "worker": worker_id,
            "tokens": [output.token for output in ordered],
            "out": [output.stdout for output in ordered],
            "err": [output.stderr for output in ordered],
            "out_bytes": [output.stdout_bytes for output in ordered],
            "err_bytes": [output.stderr_bytes for output in ordered],
        }
        with self._connection.autocommit() as connection:
            return frozenset(token for (token,) in connection.execute(_WRITE, values, prepare=False))

    def note_whole(self, token: int, place: str) -> bool:
        with self._connection.autocommit() as connection:
            return connection.execute(_NOTE_WHOLE, (place, token)).rowcount == 1

    def clean_live(self) -> int:
        with self._connection.autocommit() as connection:
            row = connection.execute(_CLEAN).fetchone()
        return int(row[0]) if row else 0
