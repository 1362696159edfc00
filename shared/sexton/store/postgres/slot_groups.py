"""The slot groups of concurrency keys on PostgreSQL: made, sized and entered by edits, kept in size by sweeps.

A group's rows are numbered -group_id in `slots`; `slot_groups.size` is its limit. An edit works on groups last, under
the lock that lets edits commit one after the other, so that two of them never size a group differently. It waits for
claims, never for slot rows: a completing step holds claims while it waits for slot rows.

A limit that was lowered takes away the free rows; a row that is busy goes by a later trim, once it is free. Until
then the pull grants no more than the limit leaves (`sexton.store.postgres.pull`). A group outlives its last job: what
still runs, and what comes back to be tried again, names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from sexton.store.edit_plan import PlannedEdit
from sexton.store.postgres.completion import ALLOWANCE, promote_slots
from sexton.store.slot_groups import limits_of, wanted_keys

_ANY_GROUPED = "SELECT 1 FROM jobs WHERE slot IS NOT NULL LIMIT 1"
_OTHERS = """
SELECT g.key, min(g.size), min(j.name) FROM slot_groups g JOIN jobs j ON j.slot = -g.group_id
WHERE j.slot IS NOT NULL AND j.retired_at IS NULL AND g.key = ANY (%(keys)s::text[])
  AND j.job_id <> ALL (%(job_ids)s::bigint[]) GROUP BY g.key
"""
_SIZE = """
INSERT INTO slot_groups (key, size) SELECT * FROM unnest(%(keys)s::text[], %(sizes)s::integer[])
ON CONFLICT (key) DO UPDATE SET size = excluded.size WHERE slot_groups.size <> excluded.size
RETURNING group_id, size
"""
_GROUPS = "SELECT key, group_id FROM slot_groups WHERE key = ANY (%(keys)s::text[])"
# A job's row is locked by who triggers it, so that no manual claim is on its way to the old slot after this.
_ENTER = """
WITH entered AS (
  UPDATE jobs j SET slot = n.slot FROM unnest(%(job_ids)s::bigint[], %(slots)s::bigint[]) n(job_id, slot)
  WHERE j.job_id = n.job_id AND j.slot IS DISTINCT FROM n.slot RETURNING j.job_id, j.slot)
UPDATE cursors c SET slot = e.slot FROM entered e WHERE c.job_id = e.job_id RETURNING c.job_id
"""
# What was parked is ready again: the new slot may be free. Nobody had an `allow` claim of the old revision take a slot;
# in a group it takes one. Order and locks as in a pause.
_FOLLOW = f"""
WITH claim AS MATERIALIZED (
  SELECT c.job_id, c.scheduled_at FROM claims c
  WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND c.state IN (0, 2, 11)
  ORDER BY c.job_id, c.scheduled_at FOR UPDATE)
UPDATE claims c SET slot = coalesce(j.slot, j.job_id),
  overlap = CASE WHEN c.overlap = 0 AND j.slot IS NOT NULL THEN 2 ELSE c.overlap END,
  state = CASE WHEN c.state = 2 THEN 0 ELSE c.state END,
  start_by = CASE WHEN c.state = 2 AND c.start_by IS NOT NULL THEN statement_timestamp() + {ALLOWANCE}
    ELSE c.start_by END
FROM claim l JOIN jobs j ON j.job_id = l.job_id WHERE c.job_id = l.job_id AND c.scheduled_at = l.scheduled_at
"""  # noqa: S608 - built from constants
_LOCK_SIZES = """
SELECT g.group_id, g.size FROM slot_groups g
WHERE g.size <> (SELECT count(*) FROM slots s WHERE s.slot = -g.group_id) ORDER BY g.group_id FOR UPDATE SKIP LOCKED
"""
_ADD_ROWS = """
INSERT INTO slots (slot, number)
SELECT -g.group_id, n FROM unnest(%(groups)s::bigint[], %(sizes)s::integer[]) g(group_id, size)
  CROSS JOIN LATERAL generate_series(1, g.size) n
ON CONFLICT DO NOTHING
"""
_TAKE_ROWS = """
DELETE FROM slots WHERE ctid = ANY (ARRAY(
  SELECT w.tid FROM unnest(%(groups)s::bigint[], %(sizes)s::integer[]) g(group_id, size) CROSS JOIN LATERAL (
    SELECT ctid AS tid FROM slots WHERE slot = -g.group_id AND token IS NULL ORDER BY number DESC
    LIMIT greatest(0, (SELECT count(*) FROM slots WHERE slot = -g.group_id) - g.size) FOR UPDATE SKIP LOCKED) w))
"""


def write_groups(connection: psycopg.Connection[Any], edits: Sequence[PlannedEdit]) -> bool:
    """Have the edited jobs enter the groups of their keys, or leave them, and their waiting claims follow; whether
    any claim may be ready by that. Raises ``Refused`` where a key would have two limits."""
    wanted = wanted_keys(edits)
    keys = sorted({key.key for key in wanted.values() if key is not None})
    if not wanted or not (keys or connection.execute(_ANY_GROUPED).fetchone()):
        return False
    groups: dict[str, int] = {}
    resized: list[tuple[int, int]] = []
    if keys:
        sizes = limits_of(wanted, edits, _others(connection, keys, list(wanted)))
        resized = connection.execute(_SIZE, {"keys": keys, "sizes": [sizes[key] for key in keys]}).fetchall()
        groups = dict(connection.execute(_GROUPS, {"keys": keys}).fetchall())
        _resize(connection, resized)
        promote_slots(connection, [-group for group, _ in resized])
    slots = [None if key is None else -groups[key.key] for key in wanted.values()]
    entered = connection.execute(_ENTER, {"job_ids": list(wanted), "slots": slots}).fetchall()
    if entered:
        connection.execute(_FOLLOW, {"job_ids": [job_id for (job_id,) in entered]})
    return bool(entered or resized)


def trim(connection: psycopg.Connection[Any]) -> None:
    """In an open transaction, give every group as many rows as its limit says, as far as rows are free."""
    _resize(connection, connection.execute(_LOCK_SIZES).fetchall())


def _resize(connection: psycopg.Connection[Any], groups: Sequence[tuple[int, int]]) -> None:
    if groups:
        values = {"groups": [group for group, _ in groups], "sizes": [size for _, size in groups]}
        connection.execute(_ADD_ROWS, values)
        connection.execute(_TAKE_ROWS, values)


def _others(connection: psycopg.Connection[Any], keys: list[str], job_ids: list[int]) -> dict[str, tuple[int, str]]:
    rows = connection.execute(_OTHERS, {"keys": keys, "job_ids": job_ids}).fetchall()
    return {key: (size, name) for key, size, name in rows}
