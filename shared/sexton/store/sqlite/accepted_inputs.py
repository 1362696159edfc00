"""Other inputs accepted, on SQLite: an edit of the jobs whose ticks differ, and in its transaction the rest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime
from functools import partial

from sexton.inputs import Inputs
from sexton.store.protocol.restores import InputsStand
from sexton.store.read_inputs import moved_on, revised_alike
from sexton.store.sqlite.edits import SqliteEdits
from sexton.store.sqlite.terms import record_event
from sexton.store.tables import to_micros

_UNKNOWN = """
SELECT name FROM jobs WHERE retired_at IS NULL AND job_id NOT IN (SELECT value FROM json_each(?)) LIMIT 1
"""
_ACCEPT = """
UPDATE cluster SET inputs_id = :id, term = term + 1, predecessor = coalesce(leader, predecessor),
  left_at = CASE WHEN leader IS NULL THEN left_at ELSE :now END, leader = NULL, resign_requested = 0
WHERE id = 1 AND inputs_id = :before
"""
_RECORD = """
INSERT INTO inputs (inputs_id, zone_data, engine, accepted_at, accepted_by) VALUES (:id, :zone_data, :engine, :now,
  :actor)
ON CONFLICT (inputs_id) DO UPDATE SET accepted_at = excluded.accepted_at, accepted_by = excluded.accepted_by
"""
_RELABEL = """
UPDATE revisions SET inputs_id = :id
WHERE job_id IN (SELECT value FROM json_each(:jobs)) AND in_force_until IS NULL
"""


def accept_inputs(
    edits: SqliteEdits, now: datetime, stand: InputsStand, accepted: Inputs, changed: Collection[int], actor: str
) -> None:
    """``RestoreStore.accept_inputs``."""
    changes, conditions = revised_alike(edits.current_jobs(), stand, accepted, changed)
    detail: dict[str, object] = {
        "from": stand.inputs_id,
        "to": accepted.inputs_id,
        "jobs": len(stand.jobs),
        "edited": len(changes),
    }
    values: dict[str, object] = {
        "id": accepted.inputs_id,
        "before": stand.inputs_id,
        "zone_data": accepted.zone_data,
        "engine": accepted.engine,
        "actor": actor,
        "jobs": json.dumps([job.job_id for job in stand.jobs]),
        "now": to_micros(now),
    }
    edits.edit_also(changes, actor, conditions, partial(_write, values, detail))


def _write(values: dict[str, object], detail: dict[str, object], connection: sqlite3.Connection, _: object) -> None:
    unknown = connection.execute(_UNKNOWN, [values["jobs"]]).fetchone()
    if unknown is not None:
        raise moved_on(str(unknown[0]))
    if connection.execute(_ACCEPT, values).rowcount != 1:
        raise moved_on("the cluster's inputs")
    connection.execute(_RECORD, values)
    connection.execute(_RELABEL, values)
    now, actor = values["now"], values["actor"]
    assert isinstance(now, int)  # noqa: S101 - set above
    record_event(connection, now, str(actor), "inputs.accepted", detail)
