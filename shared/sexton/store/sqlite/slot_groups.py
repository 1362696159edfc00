"""The slot groups of concurrency keys on SQLite: `sexton.store.postgres.slot_groups` inside one write transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from sexton.store.edit_plan import PlannedEdit
from sexton.store.slot_groups import limits_of, wanted_keys
from sexton.store.sqlite.completion import promote

_ANY_GROUPED = "SELECT 1 FROM jobs WHERE slot IS NOT NULL LIMIT 1"
_OTHERS = """
SELECT g.key, min(g.size), min(j.name) FROM slot_groups g JOIN jobs j ON j.slot = -g.group_id
WHERE j.retired_at IS NULL AND g.key IN (SELECT value FROM json_each(?1))
  AND j.job_id NOT IN (SELECT value FROM json_each(?2)) GROUP BY g.key
"""
_SIZE = """
INSERT INTO slot_groups (key, size) VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET size = excluded.size WHERE slot_groups.size <> excluded.size
"""
_GROUP = "SELECT group_id FROM slot_groups WHERE key = ?"
_ENTER = "UPDATE jobs SET slot = ?1 WHERE job_id = ?2 AND slot IS NOT ?1"
_FOLLOW = """
UPDATE claims SET slot = coalesce(?1, job_id),
  overlap = CASE WHEN overlap = 0 AND ?1 IS NOT NULL THEN 2 ELSE overlap END,
  state = CASE WHEN state = 2 THEN 0 ELSE state END,
  start_by = CASE WHEN state = 2 AND start_by IS NOT NULL THEN ?2 + coalesce(1000 *
      (SELECT coalesce(firing ->> '$.missed.start_within_ms', firing ->> '$.missed.grace_ms')
       FROM revisions r WHERE r.job_id = claims.job_id AND r.revision = claims.revision), start_by - available_at)
    ELSE start_by END
WHERE job_id = ?3 AND state IN (0, 2, 11)
"""
_WRONG_SIZES = """
SELECT g.group_id, g.size FROM slot_groups g
WHERE g.size <> (SELECT count(*) FROM slots s WHERE s.slot = -g.group_id)
"""
_ADD_ROW = "INSERT INTO slots (slot, number) VALUES (?, ?) ON CONFLICT DO NOTHING"
_TAKE_ROWS = """
DELETE FROM slots WHERE (slot, number) IN (
  SELECT slot, number FROM slots WHERE slot = ?1 AND token IS NULL ORDER BY number DESC
  LIMIT max(0, (SELECT count(*) FROM slots WHERE slot = ?1) - ?2))
"""


def write_groups(connection: sqlite3.Connection, edits: Sequence[PlannedEdit], now: int) -> bool:
    """Have the edited jobs enter the groups of their keys, or leave them, and their waiting claims follow; whether
    any claim may be ready by that. Raises ``Refused`` where a key would have two limits."""
    wanted = wanted_keys(edits)
    keys = sorted({key.key for key in wanted.values() if key is not None})
    if not wanted or not (keys or connection.execute(_ANY_GROUPED).fetchone()):
        return False
    groups: dict[str, int] = {}
    is_resized = False
    if keys:
        others = connection.execute(_OTHERS, (json.dumps(keys), json.dumps(list(wanted)))).fetchall()
        sizes = limits_of(wanted, edits, {key: (size, name) for key, size, name in others})
        for key in keys:
            is_changed = connection.execute(_SIZE, (key, sizes[key])).rowcount > 0
            (groups[key],) = connection.execute(_GROUP, (key,)).fetchone()
            if is_changed:
                is_resized = True
                _resize(connection, groups[key], sizes[key])
                promote(connection, now, [-groups[key]], all_free=True)
    entered = False
    for job_id, wanted_key in wanted.items():
        slot = None if wanted_key is None else -groups[wanted_key.key]
        if connection.execute(_ENTER, (slot, job_id)).rowcount:
            entered = True
            connection.execute("UPDATE cursors SET slot = ? WHERE job_id = ?", (slot, job_id))
            connection.execute(_FOLLOW, (slot, now, job_id))
    return entered or is_resized


def trim(connection: sqlite3.Connection) -> None:
    """Give every group as many rows as its limit says, as far as rows are free."""
    for group, size in connection.execute(_WRONG_SIZES).fetchall():
        _resize(connection, group, size)


def _resize(connection: sqlite3.Connection, group: int, size: int) -> None:
    connection.executemany(_ADD_ROW, [(-group, number + 1) for number in range(size)])
    connection.execute(_TAKE_ROWS, (-group, size))
