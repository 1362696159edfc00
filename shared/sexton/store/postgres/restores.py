"""Cursors set by hand, on PostgreSQL.

A forward step is a compare-and-set on the cursor, as a leader's commit is: whoever is first decides the ticks. A step
back follows the edit routine (`edit_routine`): lock the cursors, lock the claims beyond the place, and only then, in a
new statement that sees what was committed before the locks were had, look whether anything bars the step, and take
back what was decided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any

import psycopg

from sexton.cursor_moves import CursorStep
from sexton.inputs import Inputs
from sexton.store.postgres import accepted_inputs, places
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.postgres.edit_writes import CHANGES_LOCK, NUMBER
from sexton.store.postgres.edits import PostgresEdits
from sexton.store.protocol.restores import CursorStands, InputsStand, LedgerMoved
from sexton.store.read_cursors import read_stands
from sexton.store.read_inputs import read_inputs, read_zone_data

_AT_ONCE = 500

_KEEP_ZONES = "INSERT INTO zone_data (version, files) VALUES (%s, %s) ON CONFLICT DO NOTHING"

_STEP = """step AS (
  SELECT * FROM unnest(%(jobs)s::bigint[], %(names)s::text[], %(seqs)s::bigint[], %(was)s::timestamptz[],
      %(to)s::timestamptz[], %(revisions)s::integer[], %(skipped)s::bigint[], %(cut_after)s::timestamptz[],
      %(cut_count)s::bigint[])
    s(job_id, name, seq, was, upto, revision, skipped, cut_after, cut_count))"""

_ISO = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_TOLD = f"""told AS (
  INSERT INTO events (at, actor, action, job_id, detail)
  SELECT clock_timestamp(), %(actor)s, 'cursor.set', s.job_id, jsonb_strip_nulls(jsonb_build_object('job', s.name,
    'from', {_ISO.format("s.was")}, 'to', {_ISO.format("s.upto")}, 'skipped', nullif(s.skipped, 0),
    'withdrawn', {{withdrawn}}, 'why', %(why)s::text))::text
  FROM step s WHERE s.job_id IN (SELECT job_id FROM moved))"""  # noqa: S608 - the parts are constants of this file

# A claim beyond the cursor is never expected; were there one, the record would be a second decision of its tick.
_FORWARD = f"""
WITH {_STEP},
 free AS (
  SELECT c.job_id FROM cursors c JOIN step s ON c.job_id = s.job_id AND c.seq = s.seq AND c.at = s.was
  WHERE s.upto > s.was AND s.upto <= clock_timestamp() AND NOT EXISTS (
    SELECT 1 FROM claims k WHERE k.job_id = s.job_id AND k.scheduled_at > s.was AND k.scheduled_at <= s.upto
      AND k.origin <> 4)
  ORDER BY c.job_id FOR UPDATE OF c),
 moved AS (
  UPDATE cursors c SET at = s.upto, seq = c.seq + 1 FROM step s
  WHERE c.job_id = s.job_id AND c.job_id IN (SELECT job_id FROM free) RETURNING c.job_id),
 skipped AS (
  INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at)
  SELECT s.job_id, s.was, s.upto, s.skipped, 'skipped', %(why)s, s.revision,
    (SELECT term FROM cluster WHERE id = 1), clock_timestamp()
  FROM step s WHERE s.job_id IN (SELECT job_id FROM moved)),
 {_TOLD.format(withdrawn="NULL::bigint")}
SELECT job_id FROM moved
"""  # noqa: S608 - the parts are constants of this file

_LOCK_CURSORS = f"""
WITH {_STEP}
SELECT count(*) FROM (
  SELECT 1 FROM cursors c JOIN step s USING (job_id) ORDER BY c.job_id FOR UPDATE OF c) locked
"""  # noqa: S608 - the parts are constants of this file
_LOCK_CLAIMS = f"""
WITH {_STEP}
SELECT count(*) FROM (
  SELECT 1 FROM claims c JOIN step s ON c.job_id = s.job_id AND c.scheduled_at > s.upto
  WHERE c.origin <> 4 ORDER BY c.scheduled_at, c.job_id FOR UPDATE OF c) locked
"""  # noqa: S608 - the parts are constants of this file
_BACK = f"""
WITH {_STEP},
 barred AS (
  SELECT c.job_id FROM claims c JOIN step s ON c.job_id = s.job_id AND c.scheduled_at > s.upto
  WHERE c.origin <> 4 AND (c.attempt > 0 OR c.state IN (1, 11) OR c.origin NOT IN (0, 1))
  UNION ALL
  SELECT k.job_id FROM skips k JOIN step s ON k.job_id = s.job_id AND k.upto > s.upto WHERE k.resolved_at IS NOT NULL
  UNION ALL
  SELECT p.job_id FROM proposals p JOIN step s ON p.job_id = s.job_id AND p.upto > s.upto WHERE p.state = 'open'),
 free AS MATERIALIZED (
  SELECT s.* FROM step s JOIN cursors c ON c.job_id = s.job_id AND c.seq = s.seq AND c.at = s.was
  WHERE s.upto < s.was AND s.job_id NOT IN (SELECT job_id FROM barred)
    AND NOT EXISTS (SELECT 1 FROM skips k WHERE k.job_id = s.job_id AND k.after < s.upto AND k.upto > s.upto
      AND s.cut_after IS DISTINCT FROM k.after)),
 withdrawn AS (
  DELETE FROM claims c USING free f
  WHERE c.job_id = f.job_id AND c.scheduled_at > f.upto AND c.origin IN (0, 1) AND c.attempt = 0 RETURNING c.job_id),
 removed AS (DELETE FROM skips k USING free f WHERE k.job_id = f.job_id AND k.after >= f.upto),
 cut AS (
  UPDATE skips k SET upto = f.upto, count = f.cut_count FROM free f
  WHERE k.job_id = f.job_id AND k.after = f.cut_after AND k.upto > f.upto),
 closed AS (DELETE FROM proposals p USING free f WHERE p.job_id = f.job_id AND p.after >= f.upto),
 moved AS (
  UPDATE cursors c SET at = f.upto, seq = c.seq + 1 FROM free f WHERE c.job_id = f.job_id RETURNING c.job_id),
 {_TOLD.format(withdrawn="(SELECT count(*) FROM withdrawn w WHERE w.job_id = s.job_id)")}
SELECT job_id FROM moved
"""  # noqa: S608 - the parts are constants of this file


class PostgresRestores:
    """Implements ``RestoreStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def settle(self, node: str) -> LedgerMoved | None:
        return places.settle(self._connection, node)

    def cursor_stands(self, to: datetime | None = None, job_ids: Sequence[int] | None = None) -> CursorStands:
        with self._connection.reading() as reading:
            return read_stands(reading, self._now(), to, job_ids)

    def inputs(self) -> InputsStand:
        with self._connection.reading() as reading:
            return read_inputs(reading, self._now())

    def zone_data(self, version: str) -> bytes | None:
        with self._connection.reading() as reading:
            return read_zone_data(reading, version)

    def keep_zone_data(self, version: str, packed: bytes) -> None:
        with self._connection.autocommit() as connection:
            connection.execute(_KEEP_ZONES, [version, packed])

    def accept_inputs(self, stand: InputsStand, accepted: Inputs, changed: Collection[int], actor: str) -> None:
        accepted_inputs.accept_inputs(PostgresEdits(self._connection), stand, accepted, changed, actor)

    def step_cursors(self, steps: Sequence[CursorStep], actor: str, why: str) -> frozenset[int]:
        moved: set[int] = set()
        for is_forward in (True, False):
            of_kind = sorted((s for s in steps if s.is_forward == is_forward), key=attrgetter("job_id"))
            for start in range(0, len(of_kind), _AT_ONCE):
                some = of_kind[start : start + _AT_ONCE]
                values = {**_values(some), "actor": actor, "why": why, "lock": CHANGES_LOCK}
                attempt = partial(self._step, values, is_forward=is_forward)
                moved |= self._connection.retrying(attempt, f"setting the cursors of {len(some)} jobs")
        return frozenset(moved)

    def _now(self) -> datetime:
        with self._connection.autocommit() as connection:
            (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
        assert isinstance(now, datetime)  # noqa: S101 - a SELECT without FROM returns one row
        return now

    def _step(self, values: dict[str, Any], *, is_forward: bool) -> set[int]:
        with self._connection.transaction(LIMITS) as connection:
            if is_forward:
                moved = _run(connection, _FORWARD, values)
            else:
                connection.execute(_LOCK_CURSORS, values)
                connection.execute(_LOCK_CLAIMS, values)
                moved = _run(connection, _BACK, values)
            if moved:
                connection.execute(NUMBER, {"job_ids": sorted(moved), "lock": values["lock"]})
                connection.execute("SELECT pg_notify('sexton_jobs', '')")
        return moved


def _run(connection: psycopg.Connection[Any], statement: str, values: dict[str, Any]) -> set[int]:
    return {row[0] for row in connection.execute(statement.encode(), values)}


def _values(steps: Sequence[CursorStep]) -> dict[str, Any]:
    return {
        "jobs": [step.job_id for step in steps],
        "names": [step.name for step in steps],
        "seqs": [step.seq for step in steps],
        "was": [step.was for step in steps],
        "to": [step.to for step in steps],
        "revisions": [step.revision for step in steps],
        "skipped": [step.skipped for step in steps],
        "cut_after": [None if step.cut is None else step.cut.after for step in steps],
        "cut_count": [None if step.cut is None else step.cut.count for step in steps],
    }
