"""Edits, triggers and settings on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

from sexton.claims import OnWorkerLost
from sexton.cluster_views import Halt
from sexton.errors import MovedOn, NotFound, Refused
from sexton.job_rules import firing_rules
from sexton.jobs import JobDefinition
from sexton.queue_rules import RuleChange
from sexton.settings import ClusterSettings, setting_text, settings_from_rows, with_setting
from sexton.store.cluster_rows import check_resignation
from sexton.store.edit_plan import (
    MOVES,
    JobState,
    NewRevision,
    check_cluster,
    check_revision,
    edited_ids,
    name_key,
    name_taken,
    new_revisions,
    pick_job,
    plan_edits,
    told_by,
)
from sexton.store.format_rules import format_of_changes
from sexton.store.postgres import cluster_edits, queue_edits, strategy
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import LIMITS, EditRoutine
from sexton.store.postgres.edit_writes import EditWrites
from sexton.store.postgres.formats import require_format
from sexton.store.protocol import (
    ChangeDone,
    ChangeKind,
    CurrentJob,
    EditConditions,
    HaltChange,
    JobChange,
    PauseSeen,
    Triggered,
)

_NEW_IDS = """
SELECT nextval(pg_get_serial_sequence('jobs', 'job_id')) FROM generate_series(1, %(count)s)
"""
_SEEDS = "SELECT job_id, hash_seed FROM jobs WHERE job_id = ANY (%(job_ids)s::bigint[])"
# Locked before any claim is chosen by its state: a claim that a rerun makes ready at this moment is seen by that, or
# written with what this edit makes of the job (`operations`).
_LOCK_STATES = """
SELECT job_id, name, revision, hash_seed, paused_at IS NOT NULL, pause_reason, retired_at IS NOT NULL, paused_with_all,
  paused_at, paused_by, quarantined_at,
  (SELECT p.until FROM pauses p WHERE p.job_id = jobs.job_id ORDER BY p.since DESC LIMIT 1)
FROM jobs WHERE job_id = ANY (%(job_ids)s::bigint[]) ORDER BY job_id FOR NO KEY UPDATE
"""
# After the number of this edit was drawn: every edit that committed is in this statement's snapshot, and those that
# have not yet wait for the lock under which numbers are drawn.
_MOVED = """
SELECT j.job_id, j.name, j.revision, j.retired_at IS NOT NULL, u.revision
FROM unnest(%(job_ids)s::bigint[], %(revisions)s::integer[]) u(job_id, revision) JOIN jobs j ON j.job_id = u.job_id
WHERE j.retired_at IS NOT NULL OR j.revision <> u.revision ORDER BY j.name_key LIMIT 1
"""
_LAST_MOVE = """
SELECT actor, action, at FROM events WHERE job_id = %s AND action = ANY (%s) ORDER BY event_id DESC LIMIT 1
"""
_CURRENT_JOBS = """
SELECT j.job_id, j.name, j.revision, r.definition, j.hash_seed, j.paused_at, j.paused_by, j.pause_reason,
  j.quarantined_at
FROM jobs j JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision
WHERE j.retired_at IS NULL ORDER BY j.name_key
"""
_TRIGGERED_JOB = """
SELECT j.name, j.revision, r.firing, j.retired_at IS NOT NULL
FROM jobs j JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE j.job_id = %s
"""
_TRIGGERED_BEFORE = """
SELECT c.job_id, j.name, c.scheduled_at FROM claims c JOIN jobs j ON j.job_id = c.job_id WHERE c.request_id = %s
"""
# Schedules fall on whole milliseconds: a manual claim lies between them, and never takes a tick's place. The job's row
# is locked, so that an edit that moves its claims to another slot sees this one, or this one the edit.
_TRIGGER = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
 instant AS MATERIALIZED (
  SELECT now + CASE WHEN extract(microseconds FROM now)::bigint %% 1000 = 0 THEN interval '1 microsecond'
                    ELSE interval '0' END AS at FROM clock),
 claim AS (
  INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at,
    at_most_once, request_id, term, written_at)
  SELECT j.job_id, i.at, j.revision, 4, %(queue)s, %(priority)s, %(overlap)s, coalesce(j.slot, j.job_id), i.at,
    %(at_most_once)s, %(request_id)s, c.term, i.at
  FROM jobs j, instant i, cluster c
  WHERE j.job_id = %(job_id)s AND j.revision = %(revision)s AND j.retired_at IS NULL AND c.id = 1
  FOR SHARE OF j ON CONFLICT DO NOTHING RETURNING job_id, scheduled_at),
 told AS (
  INSERT INTO events (at, actor, action, job_id, detail)
  SELECT clock_timestamp(), %(actor)s, 'job.triggered', job_id, jsonb_build_object('job', %(name)s::text,
    'scheduled_at', to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'request_id', %(request_id)s::text)::text FROM claim)
SELECT scheduled_at, pg_notify('sexton_work', '') FROM claim
"""
_SET = """
INSERT INTO settings (key, value, changed_at, changed_by) VALUES (%(key)s, %(value)s, clock_timestamp(), %(actor)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at,
  changed_by = excluded.changed_by
"""
_RESIGN = """
WITH seen AS MATERIALIZED (
  SELECT c.leader, c.term, h.confirmation FROM cluster c, heartbeat h WHERE c.id = 1 AND h.id = 1
    AND c.leader = coalesce(%(leader)s, c.leader)),
 asked AS (
  UPDATE cluster c SET resign_requested = true FROM seen
  WHERE c.id = 1 AND c.term = seen.term AND c.leader = seen.leader AND seen.confirmation = 'confirmed'
  RETURNING c.leader, c.term),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), %(actor)s, 'leader.asked_to_resign',
    jsonb_build_object('leader', leader, 'term', term)::text FROM asked)
SELECT leader, confirmation, (SELECT pg_notify('sexton_jobs', '') FROM asked) FROM seen
"""
_EVENT = """
INSERT INTO events (at, actor, action, job_id, detail) VALUES (clock_timestamp(), %s, %s, %s, %s)
"""
_TRIGGER_TRIES = 20


AlsoWrites = Callable[[psycopg.Connection[Any], Mapping[int, datetime]], None]


def _nothing(connection: psycopg.Connection[Any], effective_at: Mapping[int, datetime]) -> None:
    """What most edits write beside."""


class _Prepared(NamedTuple):
    """An edit as far as it is known before any lock is held."""

    changes: Sequence[JobChange]
    job_ids: Sequence[int]
    new_ids: Sequence[int]
    new_revisions: Sequence[NewRevision | None]
    needed_format: tuple[int, str]


class PostgresEdits:
    """Implements ``EditStore``."""

    routine: type[EditRoutine] = EditRoutine

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def edit(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions | None = None
    ) -> tuple[ChangeDone, ...]:
        return self.edit_also(changes, actor, conditions, _nothing)

    def edit_also(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions | None, also: AlsoWrites
    ) -> tuple[ChangeDone, ...]:
        """``edit``, and in its transaction what ``also`` writes, given the connection and E of each job.

        What ``also`` raises undoes the edit; where locks are not had it is called again.
        """
        job_ids = edited_ids(changes)
        created = sum(change.kind is ChangeKind.CREATE for change in changes)
        # Before any lock is held, and outside of the transaction, which the server ends where the client takes long. A
        # number that an edit in vain leaves unused is no loss.
        with self._connection.autocommit() as connection:
            new_ids = [row[0] for row in connection.execute(_NEW_IDS, {"count": created})]
            seeds = dict(connection.execute(_SEEDS, {"job_ids": job_ids}).fetchall())
        prepared = _Prepared(changes, job_ids, new_ids, new_revisions(changes, seeds), format_of_changes(changes))
        try:
            return self._connection.retrying(
                lambda: self._edit(prepared, actor, conditions or EditConditions(), also), "this edit"
            )
        except errors.UniqueViolation as violation:
            raise self._told_by_whom(self._name_taken(changes, violation)) from None
        except MovedOn as error:
            raise self._told_by_whom(error) from None

    def _edit(
        self, prepared: _Prepared, actor: str, conditions: EditConditions, also: AlsoWrites
    ) -> tuple[ChangeDone, ...]:
        job_ids, new_ids = prepared.job_ids, prepared.new_ids
        with self._connection.transaction(LIMITS) as connection:
            row = connection.execute("SELECT cluster_id, inputs_id FROM cluster WHERE id = 1").fetchone()
            check_cluster(conditions, *(row or ("", "")))
            routine = self.routine(connection, job_ids)
            routine.lock_cursors()
            rows = connection.execute(_LOCK_STATES, {"job_ids": list(job_ids)}).fetchall()
            states = {row[0]: _state(row) for row in rows}
            edits = plan_edits(prepared.changes, states, new_ids, prepared.new_revisions)
            require_format(connection, *prepared.needed_format)
            cut = routine.cut()
            effective_at = dict.fromkeys(new_ids, cut)
            withdrawn: Mapping[int, int] = {}
            if job_ids:
                routine.lock_claims(cut)
                effective_at |= routine.effective_at(cut)
                withdrawn = routine.withdraw({job_id: effective_at[job_id] for job_id in job_ids})
            EditWrites(connection, edits, effective_at, actor).write(withdrawn)
            also(connection, effective_at)
            # The writes took the lock that lets edits commit one after the other: nobody moves on behind this.
            _check_unchanged(connection, conditions.unchanged)
        return tuple(edit.done(effective_at[edit.job_id], withdrawn.get(edit.job_id, 0)) for edit in edits)

    def _told_by_whom(self, error: MovedOn) -> MovedOn:
        with self._connection.autocommit() as connection:
            row = connection.execute(_LAST_MOVE, [error.job_id, list(MOVES)]).fetchone()
        return error if row is None else told_by(error, *row)

    def _name_taken(self, changes: Sequence[JobChange], violation: errors.UniqueViolation) -> MovedOn:
        taken = {name_key(job.name): job.job_id for job in self.current_jobs()}
        names = [change.definition.name for change in changes if change.definition is not None]
        known = [name for name in names if name_key(name) in taken]
        name = (known or names or [str(violation.diag.constraint_name)])[0]
        return name_taken(name, taken.get(name_key(name)))

    def current_jobs(self) -> tuple[CurrentJob, ...]:
        with self._connection.autocommit() as connection:
            rows = connection.execute(_CURRENT_JOBS).fetchall()
        return tuple(_current(row) for row in rows)

    def find_job(self, name: str) -> CurrentJob:
        return pick_job(name, self.current_jobs())

    def trigger(self, job_id: int, actor: str, request_id: str | None = None) -> Triggered:
        for _ in range(_TRIGGER_TRIES):  # again where the job was revised meanwhile, or the microsecond was taken
            with self._connection.autocommit() as connection:
                before = None if request_id is None else _triggered_before(connection, job_id, request_id)
                if before is not None:
                    return before
                job = connection.execute(_TRIGGERED_JOB, [job_id]).fetchone()
                if job is None or job[3]:
                    raise NotFound(
                        f"there is no job with id {job_id} any more", hint="`sexton jobs` lists what there is"
                    )
                name, revision, firing_text, _ = job
                firing = firing_rules(firing_text)
                values = {
                    "job_id": job_id,
                    "name": name,
                    "revision": revision,
                    "queue": firing.queue,
                    "priority": firing.priority,
                    "overlap": int(firing.overlap),
                    "at_most_once": firing.on_worker_lost is OnWorkerLost.FAIL,
                    "request_id": request_id,
                    "actor": actor,
                }
                row = connection.execute(_TRIGGER, values).fetchone()
            if row is not None:
                return Triggered(job_id, name, row[0], existed=False)
        raise Refused(f"job id {job_id} changed through {_TRIGGER_TRIES} tries to trigger it", hint="try again")

    def settings(self) -> ClusterSettings:
        with self._connection.autocommit() as connection:
            return settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall()))

    def set_setting(self, key: str, value: str, actor: str) -> ClusterSettings:
        after = self._connection.retrying(lambda: self._set(key, value, actor), f"setting {key}")
        if key == "strategy":
            strategy.await_racers(self._connection)
        return after

    def _set(self, key: str, value: str, actor: str) -> ClusterSettings:
        with self._connection.transaction(LIMITS) as connection:
            # One at a time: two settings that are right alone may contradict each other.
            connection.execute("LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE")
            before = settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall()))
            after = with_setting(before, key, value)
            after.check()
            values = {"key": key, "value": setting_text(after, key), "actor": actor}
            connection.execute(_SET, values)
            if key == "strategy":
                strategy.switch(connection, values)
            detail = {"key": key, "from": setting_text(before, key), "to": setting_text(after, key)}
            connection.execute(_EVENT, [actor, "setting.changed", None, json.dumps(detail)])
            connection.execute("SELECT pg_notify('sexton_jobs', '')")
        return after

    def set_queue_rule(self, name: str, limits: Mapping[str, str], actor: str) -> RuleChange:
        return queue_edits.set_queue_rule(self._connection, name, limits, actor)

    def request_resign(self, actor: str, leader: str | None = None) -> str | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_RESIGN, {"actor": actor, "leader": leader}).fetchone()
        if row is None:
            return None
        check_resignation(row[0], row[1])
        return str(row[0])

    def halt(self, actor: str, reason: str) -> HaltChange:
        return cluster_edits.halt(self._connection, actor, reason)

    def lift_halt(self, actor: str, expected: Halt | None = None) -> HaltChange:
        return cluster_edits.lift_halt(self._connection, actor, expected)

    def force_leader(self, node: str, actor: str) -> bool:
        return cluster_edits.force_leader(self._connection, node, actor)

    def lift_force(self, actor: str) -> str | None:
        return cluster_edits.lift_force(self._connection, actor)

    def accept_clock(self, actor: str) -> int:
        return cluster_edits.accept_clock(self._connection, actor)

    def record(self, actor: str, action: str, detail: Mapping[str, object], job_id: int | None = None) -> None:
        text = json.dumps(detail, sort_keys=True, ensure_ascii=False, default=_iso)
        with self._connection.autocommit() as connection:
            connection.execute(_EVENT, [actor, action, job_id, text])


def _state(row: tuple[Any, ...]) -> JobState:
    job_id, name, revision, seed, is_paused, why, is_retired, with_all, since, who, quarantined, resumed_at = row
    pause = PauseSeen(since, who or "", why or "", quarantined)
    return JobState(job_id, name, revision, seed, is_paused, why, is_retired, with_all, pause, resumed_at)


def _current(row: tuple[Any, ...]) -> CurrentJob:
    job_id, name, revision, definition, seed, since, who, why, quarantined = row
    stands = since is not None, quarantined is not None, PauseSeen(since, who or "", why or "", quarantined)
    return CurrentJob(job_id, name, revision, JobDefinition.from_text(definition), seed, *stands)


def _check_unchanged(connection: psycopg.Connection[Any], unchanged: Mapping[int, int]) -> None:
    if not unchanged:
        return
    values = {"job_ids": list(unchanged), "revisions": list(unchanged.values())}
    if (row := connection.execute(_MOVED, values).fetchone()) is not None:
        check_revision(*row)


def _triggered_before(connection: psycopg.Connection[Any], job_id: int, request_id: str) -> Triggered | None:
    row = connection.execute(_TRIGGERED_BEFORE, [request_id]).fetchone()
    if row is None:
        return None
    if row[0] != job_id:
        raise Refused(f"request id {request_id!r} was used for job {row[1]!r}", hint="choose another request id")
    return Triggered(row[0], row[1], row[2], existed=True)


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
