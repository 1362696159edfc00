"""What waits on slots: `overlap: replace`, `queue_limit`, and what a sweep mends. PostgreSQL.

A pull only parks a tick that meets a busy slot. What follows from that is done here, each in a transaction of one
statement that waits for nobody (SKIP LOCKED), after the step that parked, and for all slots in each sweep:

* of several `replace` ticks parked on one slot only the newest stays; the older ones end skipped;
* the run that has held the slot for longest is asked to stop, unless one of the slot's runs was asked already, or a
  row of it is free (then the tick will be promoted). Asking locks the one claim of that run and nothing else. A pull
  holds slot rows and a completing step waits for them with claims locked: done in either, asking could deadlock;
* of `queue` ticks, those with as many newer ones behind them as their job's `queue_limit` end skipped. What waits on
  a slot is read newest first and no further than a limit goes; sweeps take turns where that is much.

All three speak of ticks of origin `schedule` that no worker ever had, and not of paused ones, which cannot run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from sexton.job_rules import QUEUE_LIMIT
from sexton.store.protocol import Channel
from sexton.store.slot_groups import COUNTED_BY_A_STEP

READ_BY_A_SWEEP = 20_000
"""So many waiting ticks a sweep counts, or those of one slot as far as its limit goes; the next one goes on."""
_AT_ONCE = 1000  # so many ticks end in a statement
_STATEMENTS = 10

_WAITING = "c.state = 2 AND c.origin = 0 AND c.attempt = 0 AND NOT c.blocked"
_AT = """to_char({}.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_OF_JOB = """CASE WHEN s.slot < 0 THEN coalesce((SELECT j.name || ' at ' FROM jobs j WHERE j.job_id = n.job_id), '')
   ELSE '' END"""

_LIMIT_OF_JOB = f"""coalesce((SELECT (r.firing::jsonb ->> 'queue_limit')::bigint FROM revisions r
   WHERE r.job_id = j.job_id AND r.revision = j.revision), {QUEUE_LIMIT})"""  # noqa: S608 - built from constants

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

# `OFFSET 0`: looked up row by row, never joined with all that waits.
# The least limit of a slot's jobs says from where on its ticks may be beyond one; what is newer is only counted, in the
# index, and what is not due is not looked at.
_REACH = f"""reach AS MATERIALIZED (
  SELECT s.slot, coalesce(CASE WHEN s.slot < 0
    THEN (SELECT min({_LIMIT_OF_JOB}) FROM jobs j WHERE j.slot = s.slot AND j.retired_at IS NULL)
    ELSE (SELECT {_LIMIT_OF_JOB} FROM jobs j WHERE j.job_id = s.slot) END, {QUEUE_LIMIT}) AS least FROM s)"""  # noqa: S608 - so
_DUE_GIVEN = f"due AS MATERIALIZED (SELECT * FROM reach WHERE least <= {COUNTED_BY_A_STEP})"  # noqa: S608 - so
_DUE_ALL = f"""part AS MATERIALIZED (
  SELECT slot, least, dense_rank() OVER (ORDER BY div(before, {READ_BY_A_SWEEP})) - 1 AS number
  FROM (SELECT slot, least, sum(least) OVER (ORDER BY slot) - least AS before FROM reach) r),
 due AS MATERIALIZED (
  SELECT slot, least FROM part WHERE number = %(turn)s::bigint %% (SELECT max(number) + 1 FROM part))"""  # noqa: S608 - so

_SETTLE = f"""beyond AS MATERIALIZED (
  SELECT q.tid,
   'overlap queue: ' || q.newer || ' newer ticks wait for its slot, and queue_limit is ' || l.most AS reason
  FROM due CROSS JOIN LATERAL (
   SELECT c.scheduled_at, c.job_id FROM claims c WHERE c.slot = due.slot AND c.overlap = 2 AND {_WAITING}
   ORDER BY c.scheduled_at DESC, c.job_id DESC OFFSET due.least LIMIT 1) edge
  CROSS JOIN LATERAL (
   SELECT c.ctid AS tid, c.job_id,
    due.least - 1 + row_number() OVER (ORDER BY c.scheduled_at DESC, c.job_id DESC) AS newer
   FROM claims c WHERE c.slot = due.slot AND c.overlap = 2 AND {_WAITING}
    AND (c.scheduled_at, c.job_id) <= (edge.scheduled_at, edge.job_id)) q
  CROSS JOIN LATERAL (
   SELECT coalesce((SELECT {_LIMIT_OF_JOB} FROM jobs j WHERE j.job_id = q.job_id), {QUEUE_LIMIT}) AS most OFFSET 0) l
  WHERE q.newer >= l.most
  UNION ALL
  SELECT o.tid, 'overlap replace: the newer tick of ' || {_OF_JOB} || {_AT.format("n")} || ' waits in its place'
  FROM s CROSS JOIN {_NEWEST} CROSS JOIN LATERAL (
   SELECT c.ctid AS tid FROM claims c WHERE c.slot = s.slot AND c.overlap = 3 AND {_WAITING}
    AND (c.scheduled_at, c.job_id) < (n.scheduled_at, n.job_id) OFFSET 0) o
  LIMIT {_AT_ONCE}),
 locked AS MATERIALIZED (
  SELECT l.tid, b.reason FROM beyond b CROSS JOIN LATERAL (
   SELECT c.ctid AS tid FROM claims c WHERE c.ctid = b.tid AND {_WAITING} FOR UPDATE OF c SKIP LOCKED) l)
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

_SETTLE_GIVEN = f"WITH {_GIVEN},\n {_REACH},\n {_DUE_GIVEN},\n {_SETTLE}".encode()
_SETTLE_ALL = f"WITH RECURSIVE {_ALL},\n {_REACH},\n {_DUE_ALL},\n {_SETTLE}".encode()
_ASK_GIVEN, _ASK_ALL = f"WITH {_GIVEN},\n {_ASK}".encode(), f"WITH RECURSIVE {_ALL},\n {_ASK}".encode()
# Whatever statistics say of how much waits: it is read in the order of the index that has this order.
_IN_ORDER = b"""SELECT set_config(name, 'off', true)
FROM unnest('{enable_seqscan,enable_bitmapscan,enable_mergejoin,enable_sort,jit}'::text[]) o(name)"""


def settle(connection: psycopg.Connection[Any], parked: Iterable[int], replacing: Iterable[int]) -> None:
    """Apply `queue_limit` and `replace` where a step has parked; ``replacing``: slots on which it parked `replace`."""
    in_order(connection, _SETTLE_GIVEN, {"slots": sorted(parked)}, prepare=True)
    if slots := sorted(replacing):
        in_order(connection, _ASK_GIVEN, {"slots": slots}, prepare=True)


def settle_all(connection: psycopg.Connection[Any], turn: int) -> None:
    """Apply them wherever ticks wait; ``turn``: grows with every call, as many waiting ticks are counted in turns.

    Planned anew each time, for the tables as they are.
    """
    for _ in range(_STATEMENTS):
        if in_order(connection, _SETTLE_ALL, {"turn": turn}, prepare=False).rowcount < _AT_ONCE:
            break
    in_order(connection, _ASK_ALL, {}, prepare=False)


def in_order(
    connection: psycopg.Connection[Any], statement: bytes, values: dict[str, Any], *, prepare: bool
) -> psycopg.Cursor[Any]:
    """Execute the statement in a transaction of its own, sent as a whole, that plans by index and does not sort."""
    with connection.pipeline():
        connection.execute(b"BEGIN")
        connection.execute(_IN_ORDER)
        cursor = connection.execute(statement, values, prepare=prepare)
        connection.execute(b"COMMIT")
    return cursor
