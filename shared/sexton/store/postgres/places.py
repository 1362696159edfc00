"""Where the ledger is, and what happens when it is found elsewhere, on PostgreSQL.

A standby that was promoted, or a backup that was restored, may lack what was acknowledged last: terms and tokens go
back, and numbers that are out in the world would be given anew. What tells it is the ledger's **place**: the timeline,
the server's system identifier, and the ids of the database and of the cluster table. It is recorded in the cluster
row, which comes back with the rest; a promotion, a restore to a point in time, and a restored dump each make another.

* No leader's statement writes where the recorded place is not the present one (``in_place`` is part of the fence), no
  term is taken, and nothing is granted: a connection that was opened since is not admitted (``AdmittedConnection``),
  and over one that was open the pull finds other tables (``is_replaced``), as `pg_restore --clean` leaves them.
* ``settle``, by whichever node sees it first, makes the numbers jump beyond all that were ever given, records the new
  place, and holds what may have run already: due claims of jobs that must not run twice. Of these jobs, ticks that
  were undecided then are held by the next pass (``may_have_run_upto``), for their claims may have been lost.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import psycopg

from sexton.errors import DatabaseUnreachable
from sexton.settings import settings_from_rows
from sexton.store.postgres.connection import GuardedConnection, PostgresConnection
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.protocol.restores import LedgerMoved

JUMP = 1_000_000
"""By how much terms and tokens jump at least: more than were ever given in what a standby may lack."""
_TERMS_A_SECOND, _TOKENS_A_SECOND = 1, 100_000
"""And how many more for each second since the ledger's last heartbeat: more than may have been given since a backup,
or since it was restored the last time, for it may be restored again."""

_HERE = (
    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/' || (SELECT system_identifier FROM pg_control_system())"
    " || '/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || {cluster}.tableoid"
)


def place_of(cluster: str = "cluster") -> str:
    """SQL: the present place; ``cluster``: what the statement calls that table. A standby in recovery has none."""
    return f"(CASE WHEN pg_is_in_recovery() THEN '' ELSE {_HERE.format(cluster=cluster)} END)"


def in_place(cluster: str = "cluster") -> str:
    """SQL: whether the ledger is where it was recorded to be, or its place was never recorded."""
    return f"{cluster}.place IN ('', {place_of(cluster)})"


def is_replaced(cluster: str = "cluster") -> str:
    """SQL: whether the tables are others than those whose place was recorded: what can become of a ledger under an open
    connection that was admitted. Costs next to nothing, where ``in_place`` reads a file of the server."""
    return f"({cluster}.place <> '' AND split_part({cluster}.place, '/', 4) <> {cluster}.tableoid::text)"


_ADMITTED = f"SELECT {in_place()} AND NOT pg_is_in_recovery() FROM cluster WHERE id = 1".encode()  # noqa: S608 - constants

_LOCK = f"""
SELECT term, place, {place_of()}, clock_timestamp(), (
  SELECT greatest(0, extract(epoch FROM clock_timestamp() - h.at))::bigint FROM heartbeat h WHERE h.id = 1)
FROM cluster
WHERE id = 1 AND NOT {in_place()} AND NOT pg_is_in_recovery() FOR UPDATE
"""  # noqa: S608 - the parts are constants of this file
_JUMP_TOKENS = """
SELECT setval('tokens', greatest(s.last_value, (SELECT coalesce(max(token), 0) FROM runs)) + %(token_jump)s)
FROM tokens s
"""
# Workers of a release that counted their ids: one that starts must not get the id of one that goes on.
_JUMP_WORKERS = """
SELECT setval(s.name, nextval(s.name) + %(term_jump)s) FROM (
  SELECT pg_get_serial_sequence('workers', 'worker_id')::regclass AS name) s
"""
_JUMP_TERM = f"""
WITH moved AS (
  UPDATE cluster SET term = term + %(term_jump)s, place = {place_of()}, may_have_run_upto = %(now)s,
    resign_requested = false WHERE id = 1 RETURNING term)
UPDATE heartbeat h SET term = moved.term FROM moved WHERE h.id = 1
"""  # noqa: S608 - the parts are constants of this file

# What could have been granted where the ledger was: due by its clock, which may have been ahead of this one a little.
# Each arm has an index of its own.
_DUE = """((state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)))
   OR (state = 0 AND NOT blocked AND origin IN (1, 2, 3))
   OR (state = 2 AND NOT blocked)) AND available_at <= %(now)s::timestamptz + interval '5 s'"""
_COUNT_DUE = f"SELECT count(*) FROM (SELECT 1 FROM claims WHERE {_DUE} LIMIT %(hold_above)s + 1) due"  # noqa: S608 - constants
_DOUBTED = f"{_DUE} AND (at_most_once OR %(all)s)"
_LOCK_DOUBTED = f"""
SELECT count(*) FROM (
  SELECT 1 FROM claims WHERE {_DOUBTED} ORDER BY job_id, scheduled_at FOR UPDATE) locked
"""  # noqa: S608 - the parts are constants of this file
# In two statements, as the arrows have it: parked, ready, held.
_PROMOTE = f"UPDATE claims SET state = 0 WHERE state = 2 AND {_DOUBTED}"  # noqa: S608 - constants
_HOLD = f"""
WITH held AS (
  UPDATE claims SET state = 11, start_by = NULL, finished_at = clock_timestamp(), reason = %(why)s
  WHERE state = 0 AND {_DOUBTED} RETURNING job_id, scheduled_at, revision),
 of_job AS MATERIALIZED (
  SELECT h.job_id, j.name, max(h.revision) AS revision, min(h.scheduled_at) AS first, max(h.scheduled_at) AS last,
    count(*) AS count, (array_agg(h.scheduled_at ORDER BY h.scheduled_at))[1:20] AS ticks
  FROM held h JOIN jobs j USING (job_id) GROUP BY h.job_id, j.name),
 known AS MATERIALIZED (
  SELECT p.job_id, max(p.proposal_id) AS proposal_id FROM proposals p JOIN of_job USING (job_id)
  WHERE p.state = 'open' AND NOT EXISTS (
    SELECT 1 FROM skips s WHERE s.job_id = p.job_id AND s.after = p.after AND s.reason = 'held')
  GROUP BY p.job_id),
 extended AS (
  UPDATE proposals p SET upto = greatest(p.upto, o.last), count = p.count + o.count
  FROM known k, of_job o WHERE p.proposal_id = k.proposal_id AND o.job_id = k.job_id),
 made AS (
  INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, made_at, term, reason)
  SELECT o.job_id, o.revision, o.first - interval '1 microsecond', o.last, o.count, o.first,
    clock_timestamp() + make_interval(secs => coalesce(
      (r.firing::jsonb -> 'missed' ->> 'hold_for_ms')::bigint / 1000.0, 604800)), clock_timestamp(), %(term)s, %(why)s
  FROM of_job o JOIN revisions r ON r.job_id = o.job_id AND r.revision = o.revision
  WHERE NOT EXISTS (SELECT 1 FROM known k WHERE k.job_id = o.job_id)
  ON CONFLICT (job_id, after) DO UPDATE SET state = 'open', upto = excluded.upto, count = excluded.count,
    revision = excluded.revision, term = excluded.term, made_at = excluded.made_at, lapses_at = excluded.lapses_at,
    reason = excluded.reason, answered_at = NULL, answered_by = NULL, note = NULL),
 told AS (
  INSERT INTO events (at, actor, action, job_id, detail)
  SELECT clock_timestamp(), %(node)s, 'claims.held', o.job_id, jsonb_build_object('job', o.name, 'count', o.count,
    'why', %(why)s::text, 'ticks', (SELECT array_agg(to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
      FROM unnest(o.ticks) t))::text
  FROM of_job o)
SELECT job_id, name, count FROM of_job ORDER BY name
"""  # noqa: S608 - the parts are constants of this file
# Granted and not known to have begun: its worker may have begun it, and said so where the ledger was. It ends as lost
# with its lease, unless that worker goes on and says how it ended.
_MAY_HAVE_BEGUN = """
UPDATE claims SET started_at = granted_at WHERE state = 1 AND at_most_once AND started_at IS NULL
"""
_EVENT = """
INSERT INTO events (at, actor, action, detail) VALUES (clock_timestamp(), %(node)s, 'ledger.moved', %(detail)s)
"""


class AdmittedConnection(PostgresConnection):
    """The connection of a store as those see it who grant: each time it was opened anew, the ledger must be in its
    place, or ``DatabaseUnreachable`` is raised. While it is open, no promotion can come between, nor another database;
    other tables can, which the pull sees."""

    def __init__(self, inner: PostgresConnection) -> None:
        super().__init__(inner.options)
        self._inner = inner
        self._admitted: GuardedConnection | None = None

    @contextlib.contextmanager
    def _answering(self) -> Iterator[GuardedConnection]:
        with self._inner._answering() as connection:
            if connection is not self._admitted:
                _admit(connection)
                self._admitted = connection
            yield connection


def _admit(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute(_ADMITTED).fetchone()
    if row is not None and not row[0]:
        raise DatabaseUnreachable(
            "the ledger was restored or promoted, and its terms and tokens have not jumped yet",
            hint="a running `sexton scheduler` sees to that; until then nothing is granted",
        )


def settle(store: PostgresConnection, node: str) -> LedgerMoved | None:
    """``RestoreStore.settle``."""
    return store.retrying(lambda: _settle(store, node), "settling the ledger in its new place")


def _settle(store: PostgresConnection, node: str) -> LedgerMoved | None:
    with store.transaction(LIMITS) as connection:
        row = connection.execute(_LOCK).fetchone()
        if row is None:
            return None  # invariant 6: another node was first
        term, was, here, now, age = row
        term_jump, token_jump = (JUMP + age * each for each in (_TERMS_A_SECOND, _TOKENS_A_SECOND))
        settings = settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall()))
        values: dict[str, Any] = {
            "term_jump": term_jump,
            "token_jump": token_jump,
            "now": now,
            "node": node,
            "term": term + term_jump,
            "why": f"may have run: the ledger moved ({_told(was, here)}), and its newest entries may be lost",
            "hold_above": settings.catch_up_hold_above,
        }
        (tokens,) = connection.execute(_JUMP_TOKENS, values).fetchone() or (0,)
        connection.execute(_JUMP_WORKERS, values)
        connection.execute(_JUMP_TERM, values)
        (due,) = connection.execute(_COUNT_DUE, values).fetchone() or (0,)
        values["all"] = due > settings.catch_up_hold_above
        connection.execute(_LOCK_DOUBTED, values)
        connection.execute(_PROMOTE, values)
        held = connection.execute(_HOLD, values).fetchall()
        connection.execute(_MAY_HAVE_BEGUN)
        detail = {
            "from": was,
            "to": here,
            "term": term + term_jump,
            "token": tokens,
            "held": sum(row[2] for row in held),
        }
        connection.execute(_EVENT, {"node": node, "detail": json.dumps(detail, sort_keys=True)})
        connection.execute("SELECT pg_notify('sexton_jobs', '')")
    return LedgerMoved(was, here, term + term_jump, tokens, tuple((name, count) for _, name, count in held))


def _told(was: str, here: str) -> str:
    """What is other about the place, in words."""
    before, after = was.split("/"), here.split("/")
    if before[1:2] != after[1:2]:
        return "to another server"
    if before[0] != after[0]:
        return f"timeline {before[0].lstrip('0')} to {after[0].lstrip('0')}"
    return "restored from a dump"
