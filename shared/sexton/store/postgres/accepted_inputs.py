"""Other inputs accepted, on PostgreSQL: an edit of the jobs whose ticks differ, and in its transaction the rest."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from typing import Any

import psycopg

from sexton.inputs import Inputs
from sexton.store.postgres.edit_writes import CHANGES_LOCK
from sexton.store.postgres.edits import PostgresEdits
from sexton.store.protocol.restores import InputsStand
from sexton.store.read_inputs import moved_on, revised_alike

# Edits commit one after the other under this lock: no job is made or revised with the older inputs behind this.
_TURN = "SELECT pg_advisory_xact_lock(%s)"
_UNKNOWN = "SELECT name FROM jobs WHERE retired_at IS NULL AND NOT (job_id = ANY (%s::bigint[])) LIMIT 1"
_ACCEPT = """
UPDATE cluster SET inputs_id = %(id)s, term = term + 1, predecessor = coalesce(leader, predecessor),
  left_at = CASE WHEN leader IS NULL THEN left_at ELSE clock_timestamp() END, leader = NULL, resign_requested = false
WHERE id = 1 AND inputs_id = %(before)s
"""
_RECORD = """
INSERT INTO inputs (inputs_id, zone_data, engine, accepted_at, accepted_by)
VALUES (%(id)s, %(zone_data)s, %(engine)s, clock_timestamp(), %(actor)s)
ON CONFLICT (inputs_id) DO UPDATE SET accepted_at = excluded.accepted_at, accepted_by = excluded.accepted_by
"""
_RELABEL = "UPDATE revisions SET inputs_id = %(id)s WHERE job_id = ANY (%(jobs)s::bigint[]) AND in_force_until IS NULL"
_EVENT = """
INSERT INTO events (at, actor, action, detail) VALUES (clock_timestamp(), %(actor)s, 'inputs.accepted', %(detail)s)
"""


def accept_inputs(
    edits: PostgresEdits, stand: InputsStand, accepted: Inputs, changed: Collection[int], actor: str
) -> None:
    """``RestoreStore.accept_inputs``."""
    changes, conditions = revised_alike(edits.current_jobs(), stand, accepted, changed)
    detail = {"from": stand.inputs_id, "to": accepted.inputs_id, "jobs": len(stand.jobs), "edited": len(changes)}
    values = {
        "id": accepted.inputs_id,
        "before": stand.inputs_id,
        "zone_data": accepted.zone_data,
        "engine": accepted.engine,
        "actor": actor,
        "jobs": [job.job_id for job in stand.jobs],
        "detail": json.dumps(detail, sort_keys=True),
    }
    edits.edit_also(changes, actor, conditions, partial(_write, values))


def _write(values: dict[str, Any], connection: psycopg.Connection[Any], _: object) -> None:
    connection.execute(_TURN, [CHANGES_LOCK])
    unknown = connection.execute(_UNKNOWN, [values["jobs"]]).fetchone()
    if unknown is not None:
        raise moved_on(str(unknown[0]))
    if connection.execute(_ACCEPT, values).rowcount != 1:
        raise moved_on("the cluster's inputs")
    for statement in (_RECORD, _RELABEL, _EVENT):
        connection.execute(statement, values)
