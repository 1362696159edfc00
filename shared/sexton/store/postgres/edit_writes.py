"""Step 6 of the edit routine on PostgreSQL: what an edit writes from E on. Bulk statements over arrays.

All run in the routine's transaction, under the lock of the jobs' cursors. The server ends a transaction whose client
takes long between two statements, so what is sent is packed here (`arrays`): psycopg's own way with a list of texts
takes a second for 5,000 definitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg

from sexton.store.edit_plan import PlannedEdit
from sexton.store.postgres import arrays
from sexton.store.postgres.slot_groups import write_groups

CHANGES_LOCK = 0x5E871
"""The advisory lock under which numbers of changes are drawn: who holds it commits before the next draws, so that a
reader that has seen number n has seen all below n."""

_FREE_NAMES = "UPDATE jobs SET name_key = '#' || job_id WHERE job_id = ANY (%(job_ids)s::bigint[])"
_END_REVISIONS = """
UPDATE revisions r SET in_force_until = e.at
FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) e(job_id, at)
WHERE r.job_id = e.job_id AND r.in_force_until IS NULL
"""
_RETIRE = """
WITH gone AS (SELECT * FROM unnest(%(job_ids)s::bigint[]) g(job_id)),
 jobs_ended AS (UPDATE jobs j SET retired_at = clock_timestamp() FROM gone g WHERE j.job_id = g.job_id),
 rejected AS (
  UPDATE proposals p SET state = 'rejected', answered_at = clock_timestamp(), answered_by = %(actor)s,
    note = 'the job was retired'
  FROM gone g WHERE p.job_id = g.job_id AND p.state = 'open' RETURNING p.job_id, p.after),
 told AS (
  UPDATE skips s SET detail = s.detail || '; rejected by ' || %(actor)s || ': the job was retired'
  FROM rejected r WHERE s.job_id = r.job_id AND s.after = r.after AND s.reason = 'held' AND s.resolved_at IS NULL)
UPDATE claims c SET state = CASE WHEN c.state = 11 THEN 8 ELSE 7 END, blocked = false, start_by = NULL,
  finished_at = clock_timestamp(),
  reason = CASE WHEN c.state = 11 THEN 'its proposal was rejected: ' ELSE 'paused when ' END || 'the job was retired'
FROM gone g WHERE c.job_id = g.job_id AND (c.state = 11 OR (c.blocked AND c.state IN (0, 2)))
"""
_INSERT_JOBS = """
INSERT INTO jobs (job_id, name, name_key, hash_seed, revision, created_at, changed)
SELECT j.*, 1, clock_timestamp(), 0
FROM unnest(%(job_ids)s::bigint[], %(names)s::text[], %(keys)s::text[], %(seeds)s::text[])
  j(job_id, name, name_key, hash_seed)
"""
_INSERT_CURSORS = """
WITH new AS (SELECT * FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) n(job_id, at)),
 slot AS (INSERT INTO slots (slot, number) SELECT job_id, 1 FROM new)
INSERT INTO cursors (job_id, at) SELECT job_id, at FROM new
"""
_REVISE_JOBS = """
UPDATE jobs j SET name = n.name, name_key = n.name_key, hash_seed = n.hash_seed, revision = n.revision,
  quarantined_at = NULL, quarantine_reason = NULL
FROM unnest(%(job_ids)s::bigint[], %(names)s::text[], %(keys)s::text[], %(seeds)s::text[], %(revisions)s::integer[])
  n(job_id, name, name_key, hash_seed, revision)
WHERE j.job_id = n.job_id
"""
_INSERT_REVISIONS = """
INSERT INTO revisions (job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at,
  applied_by)
SELECT n.job_id, n.revision, n.definition, n.schedule, n.firing, (SELECT inputs_id FROM cluster WHERE id = 1), n.at,
  clock_timestamp(), %(actor)s
FROM unnest(%(job_ids)s::bigint[], %(revisions)s::integer[], %(definitions)s::text[], %(schedules)s::text[],
    %(firings)s::text[], %(effective)s::timestamptz[])
  n(job_id, revision, definition, schedule, firing, at)
"""
# The locks first and in order: workers complete and requeue some of these claims at the same time.
_PAUSE = """
WITH pause AS (
  SELECT * FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[], %(reasons)s::text[]) p(job_id, at, why)),
 claim AS MATERIALIZED (
  SELECT c.job_id, c.scheduled_at FROM claims c
  WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND c.state IN (0, 1, 2) AND c.origin <> 4
  ORDER BY c.job_id, c.scheduled_at FOR UPDATE),
 blocked AS (
  UPDATE claims c SET blocked = true FROM claim l WHERE c.job_id = l.job_id AND c.scheduled_at = l.scheduled_at),
 marked AS (
  UPDATE jobs j SET paused_at = p.at, paused_by = %(actor)s, pause_reason = p.why FROM pause p
  WHERE j.job_id = p.job_id)
INSERT INTO pauses (job_id, since, who, why) SELECT job_id, at, %(actor)s, why FROM pause
ON CONFLICT (job_id, since) DO UPDATE SET until = NULL, who = excluded.who, why = excluded.why
"""
# Time that a claim was paused does not count: one that nobody was ever granted gets its allowance anew.
_RESUME = """
WITH resumed AS (SELECT * FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) r(job_id, at)),
 claim AS MATERIALIZED (
  SELECT c.job_id, c.scheduled_at FROM claims c
  WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND c.blocked ORDER BY c.job_id, c.scheduled_at FOR UPDATE),
 allowance AS (
  SELECT r.job_id, r.revision, make_interval(secs => coalesce(
    (r.firing::jsonb -> 'missed' ->> 'start_within_ms')::bigint, (r.firing::jsonb -> 'missed' ->> 'grace_ms')::bigint)
    / 1000.0) AS span
  FROM revisions r WHERE r.job_id = ANY (%(job_ids)s::bigint[])),
 free AS (
  UPDATE claims c SET blocked = false, start_by = CASE
      WHEN c.start_by IS NOT NULL AND c.attempt = 0 THEN greatest(clock_timestamp(), c.available_at) + a.span
      ELSE c.start_by END
  FROM claim l JOIN allowance a USING (job_id)
  WHERE c.job_id = l.job_id AND c.scheduled_at = l.scheduled_at AND c.revision = a.revision),
 marked AS (
  UPDATE jobs j SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, paused_with_all = false
  FROM resumed r WHERE j.job_id = r.job_id)
UPDATE pauses p SET until = r.at FROM resumed r WHERE p.job_id = r.job_id AND p.until IS NULL
"""
# A job that was paused with all, and is to stay paused when all are resumed.
_KEEP = """
WITH kept AS (SELECT * FROM unnest(%(job_ids)s::bigint[], %(reasons)s::text[]) k(job_id, why)),
 marked AS (
  UPDATE jobs j SET paused_by = %(actor)s, pause_reason = k.why, paused_with_all = false FROM kept k
  WHERE j.job_id = k.job_id)
UPDATE pauses p SET who = %(actor)s, why = k.why FROM kept k WHERE p.job_id = k.job_id AND p.until IS NULL
"""
_PAUSED_WITH_ALL = "UPDATE jobs SET paused_with_all = true WHERE job_id = ANY (%(job_ids)s::bigint[])"
# While all are paused, so is what comes to run by an edit of definitions. After the number of this edit was drawn: a
# pause of all that commits later sees this job, one that committed is seen here.
_JOIN_PAUSE = """
WITH pause AS (
  SELECT n.job_id, n.at, s.who, s.why
  FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) n(job_id, at) JOIN jobs j ON j.job_id = n.job_id,
    pause_of_all s
  WHERE s.id = 1 AND j.paused_at IS NULL),
 blocked AS (
  UPDATE claims c SET blocked = true FROM pause p
  WHERE c.job_id = p.job_id AND c.state IN (0, 1, 2) AND c.origin <> 4),
 marked AS (
  UPDATE jobs j SET paused_at = p.at, paused_by = p.who, pause_reason = p.why, paused_with_all = true FROM pause p
  WHERE j.job_id = p.job_id)
INSERT INTO pauses (job_id, since, who, why) SELECT * FROM pause
ON CONFLICT (job_id, since) DO UPDATE SET until = NULL, who = excluded.who, why = excluded.why
"""
_LIFT_QUARANTINE = """
UPDATE jobs SET quarantined_at = NULL, quarantine_reason = NULL
WHERE job_id = ANY (%(job_ids)s::bigint[]) AND quarantined_at IS NOT NULL
"""
_RECORD = """
INSERT INTO events (at, actor, action, job_id, detail)
SELECT clock_timestamp(), %(actor)s, e.*
FROM unnest(%(actions)s::text[], %(job_ids)s::bigint[], %(details)s::text[]) e(action, job_id, detail)
"""
NUMBER = """
WITH turn AS MATERIALIZED (SELECT 1 AS mine FROM (SELECT pg_advisory_xact_lock(%(lock)s)) l)
UPDATE jobs SET changed = nextval('changes') FROM turn WHERE job_id = ANY (%(job_ids)s::bigint[]) AND turn.mine = 1
"""


_TOLD_AT_ONCE = 1000


class EditWrites:
    """The writes of one edit. ``effective_at`` has E of every job in ``edits``, those that are created included."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        edits: Sequence[PlannedEdit],
        effective_at: Mapping[int, datetime],
        actor: str,
    ) -> None:
        arrays.register(connection)
        self._connection = connection
        self._edits = edits
        self._effective_at = effective_at
        self._actor = actor

    def write(self, withdrawn: Mapping[int, int]) -> None:
        """All of step 6, the events and the notification."""
        changed = [edit for edit in self._edits if edit.retires or (edit.new_revision and not edit.creates)]
        self._run(_END_REVISIONS, changed)
        self._run(_RETIRE, [edit for edit in self._edits if edit.retires])
        self._run(_FREE_NAMES, [edit for edit in self._edits if edit.new_revision and not edit.creates])
        created = [edit for edit in self._edits if edit.creates]
        self._run(_INSERT_JOBS, created)
        self._run(_INSERT_CURSORS, created)
        self._run(_REVISE_JOBS, [edit for edit in self._edits if edit.new_revision and not edit.creates])
        self._run(_INSERT_REVISIONS, [edit for edit in self._edits if edit.new_revision])
        self._run(_RESUME, [edit for edit in self._edits if edit.resumes])
        self._run(_PAUSE, [edit for edit in self._edits if edit.pauses is not None])
        self._run(_PAUSED_WITH_ALL, [edit for edit in self._edits if edit.pauses is not None and edit.with_all])
        self._run(_KEEP, [edit for edit in self._edits if edit.keeps is not None])
        self._run(_LIFT_QUARANTINE, [edit for edit in self._edits if edit.lifts_quarantine])
        self._record(withdrawn)
        self._run(NUMBER, self._edits)
        self._run(_JOIN_PAUSE, [edit for edit in self._edits if edit.comes_to_run])
        made_ready = write_groups(self._connection, self._edits)
        self._connection.execute("SELECT pg_notify('sexton_jobs', '')")
        if made_ready or any(edit.resumes for edit in self._edits):
            self._connection.execute("SELECT pg_notify('sexton_work', '')")

    def _run(self, statement: str, edits: Sequence[PlannedEdit]) -> None:
        if not edits:
            return
        revisions = [edit.new_revision for edit in edits if edit.new_revision is not None]
        texts = {
            "names": [edit.name for edit in edits],
            "keys": [edit.name_key for edit in edits],
            "reasons": [edit.pauses or edit.keeps or "" for edit in edits],
            "seeds": [revision.hash_seed for revision in revisions],
            "definitions": [revision.definition for revision in revisions],
            "schedules": [revision.schedule for revision in revisions],
            "firings": [revision.firing for revision in revisions],
        }
        arguments: dict[str, object] = {
            "job_ids": arrays.big_ints([edit.job_id for edit in edits]),
            "effective": arrays.instants([self._effective_at[edit.job_id] for edit in edits]),
            "revisions": arrays.ints([edit.revision for edit in edits]),
            "actor": self._actor,
            "lock": CHANGES_LOCK,
        }
        arguments |= {name: arrays.texts(values) for name, values in texts.items() if f"%({name})s" in statement}
        self._connection.execute(statement.encode(), arguments)

    def _record(self, withdrawn: Mapping[int, int]) -> None:
        """In parts: writing the details of very many in one go would keep the server waiting."""
        for start in range(0, len(self._edits), _TOLD_AT_ONCE):
            edits = self._edits[start : start + _TOLD_AT_ONCE]
            details = [edit.detail(self._effective_at[edit.job_id], withdrawn.get(edit.job_id, 0)) for edit in edits]
            values = {
                "actor": self._actor,
                "actions": arrays.texts([edit.action for edit in edits]),
                "job_ids": arrays.big_ints([edit.job_id for edit in edits]),
                "details": arrays.texts([json.dumps(detail, sort_keys=True, ensure_ascii=False) for detail in details]),
            }
            self._connection.execute(_RECORD, values)
