"""What waits on slots: `overlap: replace`, `queue_limit`, and what a sweep mends. PostgreSQL.

A pull only parks a tick that meets a busy slot. What follows from that is done here, each in one statement that commits
by itself and waits for nobody (SKIP LOCKED), after the step that parked, and for all slots in each sweep:

* of several `replace` ticks parked on one slot only the newest stays; the older ones end skipped;
* the run that has held the slot for longest is asked to stop, unless one of the slot's runs was asked already, or a
  row of it is free (then the tick will be promoted). Asking locks the one claim of that run and nothing else. A pull
  holds slot rows and a completing step waits for them with claims locked: done in either, asking could deadlock;
* of `queue` ticks, those with as many newer ones behind them as their job's `queue_limit` end skipped.

All three speak of ticks of origin `schedule` that no worker ever had, and not of paused ones, which cannot run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from sexton.store.protocol import Channel

_WAITING = "c.state = 2 AND c.origin = 0 AND c.attempt = 0 AND NOT c.blocked"
_AT = """to_char({}.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_OF_JOB = """CASE WHEN s.slot < 0 THEN coalesce((SELECT j.name || ' at ' FROM jobs j WHERE j.job_id = n.job_id), '')
   ELSE '' END"""

_GIVEN = "s AS MATERIALIZED (SELECT DISTINCT slot FROM unnest(%(slots)s::bigint[]) g(slot))"
# Every slot on which a tick waits, by one probe of the index for each.
_ALL = f"""w AS (
  (SELECT c.slot FROM claims c WHERE {_WAITING} ORDER BY c.slot LIMIT 1)
  UNION ALL
  SELECT (SELECT c.slot FROM claims c WHERE {_WAITING} AND c.slot > w.slot ORDER BY c.slot LIMIT 1)
  FROM w WHERE w.slot IS NOT NULL),
 s AS MATERIALIZED (SELECT slot FROM w WHERE slot IS NOT NULL)"""  # noqa: S608 - built from constants
_NEWEST = f"""LATERAL (SELECT c.job_id, c.scheduled_at FROM claims c
   WHERE c.slot = s.slot AND c.overlap = 3 AND {_WAITING}
   ORDER BY c.scheduled_at DESC, c.job_id DESC LIMIT 1) n"""  # noqa: S608 - so

_SETTLE = f"""queued AS MATERIALIZED (
  SELECT q.*, row_number() OVER (PARTITION BY s.slot ORDER BY q.scheduled_at DESC, q.job_id DESC) - 1 AS newer
  FROM s CROSS JOIN LATERAL (SELECT c.job_id, c.scheduled_at FROM claims c
   WHERE c.slot = s.slot AND c.overlap = 2 AND {_WAITING}) q),
 limits AS MATERIALIZED (
  SELECT q.job_id, coalesce((SELECT (r.firing::jsonb ->> 'queue_limit')::bigint FROM jobs j
   JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE j.job_id = q.job_id), 100) AS most
  FROM (SELECT DISTINCT job_id FROM queued) q),
 beyond AS MATERIALIZED (
  SELECT q.job_id, q.scheduled_at,
   'overlap queue: ' || q.newer || ' newer ticks wait for its slot, and queue_limit is ' || l.most AS reason
  FROM queued q JOIN limits l USING (job_id) WHERE q.newer >= l.most
  UNION ALL
  SELECT o.job_id, o.scheduled_at,
   'overlap replace: the newer tick of ' || {_OF_JOB} || {_AT.format("n")} || ' waits in its place'
  FROM s CROSS JOIN {_NEWEST} CROSS JOIN LATERAL (
   SELECT c.job_id, c.scheduled_at FROM claims c WHERE c.slot = s.slot AND c.overlap = 3 AND {_WAITING}
    AND (c.scheduled_at, c.job_id) < (n.scheduled_at, n.job_id)) o),
 locked AS MATERIALIZED (
  SELECT c.ctid AS tid, b.reason FROM beyond b JOIN claims c USING (job_id, scheduled_at)
  WHERE {_WAITING} FOR UPDATE OF c SKIP LOCKED)
UPDATE claims c SET state = 8, finished_at = statement_timestamp(), reason = l.reason
FROM locked l WHERE c.ctid = l.tid"""  # noqa: S608 - so

_ASK = f"""wish AS MATERIALIZED (
  SELECT s.slot, 'overlap replace: asked to stop for the tick of ' || {_OF_JOB} || {_AT.format("n")} AS reason
  FROM s CROSS JOIN {_NEWEST}
  WHERE NOT EXISTS (SELECT 1 FROM slots f WHERE f.slot = s.slot AND f.token IS NULL)
   AND NOT EXISTS (SELECT 1 FROM cluster WHERE halted)),
 holder AS MATERIALIZED (
  SELECT c.slot, c.token, c.cancel_requested FROM claims c WHERE c.state = 1 AND c.token = ANY (ARRAY(
   SELECT t.token FROM wish CROSS JOIN LATERAL (SELECT token FROM slots WHERE slots.slot = wish.slot) t))),
 oldest AS MATERIALIZED (
  SELECT slot, min(token) AS token FROM holder GROUP BY slot HAVING NOT bool_or(cancel_requested)),
 locked AS MATERIALIZED (
  SELECT c.ctid AS tid, c.slot FROM claims c
  WHERE c.state = 1 AND c.token = ANY (ARRAY(SELECT token FROM oldest)) AND NOT c.cancel_requested
  FOR UPDATE OF c SKIP LOCKED),
 asked AS (
  UPDATE claims c SET cancel_requested = true, reason = wish.reason
  FROM locked l JOIN wish ON wish.slot = l.slot WHERE c.ctid = l.tid RETURNING 1)
SELECT pg_notify('{Channel.STOPS.value}', '') WHERE EXISTS (SELECT 1 FROM asked)"""  # noqa: S608 - so

_SETTLE_GIVEN, _SETTLE_ALL = f"WITH {_GIVEN},\n {_SETTLE}".encode(), f"WITH RECURSIVE {_ALL},\n {_SETTLE}".encode()
_ASK_GIVEN, _ASK_ALL = f"WITH {_GIVEN},\n {_ASK}".encode(), f"WITH RECURSIVE {_ALL},\n {_ASK}".encode()


def settle(connection: psycopg.Connection[Any], parked: Iterable[int], replacing: Iterable[int]) -> None:
    """Apply `queue_limit` and `replace` where a step has parked; ``replacing``: slots on which it parked `replace`."""
    connection.execute(_SETTLE_GIVEN, {"slots": sorted(parked)}, prepare=True)
    if slots := sorted(replacing):
        connection.execute(_ASK_GIVEN, {"slots": slots}, prepare=True)


def settle_all(connection: psycopg.Connection[Any]) -> None:
    """Apply them wherever ticks wait. Planned anew each time, for the tables as they are."""
    connection.execute(_SETTLE_ALL, prepare=False)
    connection.execute(_ASK_ALL, prepare=False)
