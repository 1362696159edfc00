"""Leases: renewed while a worker lives, and what becomes of a claim when one runs out.

Each function is one statement that commits by itself: a process stopped anywhere in here holds no lock. They are rare
and planned anew each time, for the tables as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from sexton.claims import State
from sexton.store.postgres.places import in_place
from sexton.store.postgres.pull import GRANT_COLUMNS, grant_of
from sexton.store.protocol import Grant, Renewal, Requeued, StopRequests

# A claim locked by someone else (its own completion, an edit) is still held; its lease is renewed at the next beat.
_RENEW = b"""WITH mine AS MATERIALIZED (
  SELECT token, cancel_requested FROM claims
  WHERE state = 1 AND worker_id = %(worker)s AND token = ANY (%(tokens)s::bigint[])),
 free AS MATERIALIZED (
  SELECT ctid AS tid FROM claims WHERE state = 1 AND worker_id = %(worker)s AND token = ANY (%(tokens)s::bigint[])
  FOR UPDATE SKIP LOCKED),
 renewed AS (UPDATE claims c SET lease_expires_at = statement_timestamp() + %(lease)s
  FROM free WHERE c.ctid = free.tid)
SELECT statement_timestamp(), array_agg(token), array_agg(token) FILTER (WHERE cancel_requested) FROM mine"""

# A claim whose slot row is locked by a puller stays for the next round: waiting for it could wait for a stopped one.
_REQUEUE = b"""WITH dead AS MATERIALIZED (
  SELECT ctid AS tid, token, slot, overlap FROM claims WHERE state = 1 AND lease_expires_at < statement_timestamp()
  ORDER BY lease_expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED),
 locked AS MATERIALIZED (
  SELECT s.slot, s.number, s.token FROM slots s JOIN dead ON s.slot = dead.slot AND s.token = dead.token
  FOR UPDATE OF s SKIP LOCKED),
 ripe AS MATERIALIZED (
  SELECT dead.tid, dead.token AS lost_token, locked.number, c.worker_id AS lost_worker, c.started_at AS lost_started,
   c.lease_expires_at AS lost_lease,
   CASE WHEN c.at_most_once AND c.started_at IS NOT NULL OR c.losses + 1 >= %(poison)s THEN 6
    WHEN c.cancel_requested THEN 7 ELSE 0 END AS verdict,
   'lease lost: '
    || coalesce((SELECT w.name FROM workers w WHERE w.worker_id = c.worker_id), 'worker ' || c.worker_id)
    || ' did not renew it by '
    || to_char(c.lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || CASE WHEN c.at_most_once AND c.started_at IS NOT NULL THEN '; started, and on_worker_lost is fail'
     WHEN c.losses + 1 >= %(poison)s THEN '; ' || (c.losses + 1) || ' leases lost, it may be what kills workers'
     WHEN c.cancel_requested THEN '; cancelled' ELSE '' END AS error
  FROM dead JOIN claims c ON c.ctid = dead.tid LEFT JOIN locked ON locked.slot = dead.slot AND locked.token = dead.token
  WHERE locked.number IS NOT NULL
   OR NOT EXISTS (SELECT 1 FROM slots s WHERE s.slot = dead.slot AND s.token = dead.token)),
 moved AS (UPDATE claims c SET state = r.verdict, losses = c.losses + 1, lease_expires_at = NULL,
   token = CASE WHEN r.verdict <> 0 THEN c.token END, worker_id = CASE WHEN r.verdict <> 0 THEN c.worker_id END,
   granted_at = CASE WHEN r.verdict <> 0 THEN c.granted_at END,
   started_at = CASE WHEN r.verdict <> 0 THEN c.started_at END,
   finished_at = CASE WHEN r.verdict <> 0 THEN statement_timestamp() END,
   reason = CASE WHEN r.verdict <> 0 THEN r.error ELSE c.reason END
  FROM ripe r WHERE c.ctid = r.tid
  RETURNING c.job_id, c.scheduled_at, c.revision, c.attempt, c.state, c.slot, c.jitter_ms, r.*),
 kept AS (INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, error, started_at,
   finished_at, lateness_ms)
  SELECT lost_token, job_id, scheduled_at, attempt, revision, lost_worker, state, error, lost_started,
   statement_timestamp(), round(extract(epoch FROM lost_started - scheduled_at) * 1000)::bigint - jitter_ms
  FROM moved),
 freed AS (UPDATE slots s SET token = NULL FROM moved m
  WHERE s.slot = m.slot AND s.number = m.number AND s.token = m.lost_token)
SELECT job_id, scheduled_at, lost_token, state FROM moved"""

_STOP_REQUESTS = b"""SELECT (SELECT array_agg(token) FROM claims
  WHERE state = 1 AND worker_id = %(worker)s AND cancel_requested),
 coalesce((SELECT drain_requested FROM workers WHERE worker_id = %(worker)s), false)"""

# What began was begun by somebody, perhaps where the ledger was before it was restored.
_ORPHANS = f"""SELECT {GRANT_COLUMNS} FROM claims
 WHERE state = 1 AND worker_id = %(worker)s AND token <> ALL (%(known)s::bigint[])
  AND NOT (at_most_once AND started_at IS NOT NULL) AND EXISTS (SELECT 1 FROM cluster WHERE {in_place()})
 ORDER BY token""".encode()  # noqa: S608 - built from constants


def renew(connection: psycopg.Connection[Any], worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
    """Renew what is still held and not locked by anyone else."""
    row = connection.execute(
        _RENEW, {"worker": worker_id, "tokens": list(tokens), "lease": lease}, prepare=False
    ).fetchone()
    assert row is not None  # noqa: S101 - an aggregate is one row
    now, held, cancel = row
    return Renewal(frozenset(held or ()), frozenset(cancel or ()), now, now + lease)


def stop_requests(connection: psycopg.Connection[Any], worker_id: int) -> StopRequests:
    """The runs of this worker that are asked to stop, and whether it is asked to drain."""
    row = connection.execute(_STOP_REQUESTS, {"worker": worker_id}, prepare=False).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM is one row
    return StopRequests(frozenset(row[0] or ()), row[1])


def requeue(connection: psycopg.Connection[Any], limit: int, poison_after: int) -> tuple[Requeued, ...]:
    """Take claims from workers that let their lease run out; their slot rows are free then."""
    rows = connection.execute(_REQUEUE, {"limit": limit, "poison": poison_after}, prepare=False)
    return tuple(Requeued(job_id, at, token, State(state)) for job_id, at, token, state in rows)


def orphans(connection: psycopg.Connection[Any], worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
    """Running claims of this worker under other tokens, but for those that must not run twice and began."""
    rows = connection.execute(_ORPHANS, {"worker": worker_id, "known": list(known)}, prepare=False)
    return tuple(grant_of(row) for row in rows)
