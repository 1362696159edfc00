"""Edits, triggers and settings on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sexton.claims import OnWorkerLost, Origin
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
    PlannedEdit,
    check_cluster,
    check_revision,
    edited_ids,
    name_taken,
    new_revisions,
    pick_job,
    plan_edits,
    told_by,
)
from sexton.store.format_rules import format_of_changes
from sexton.store.protocol import (
    ChangeDone,
    ChangeKind,
    Channel,
    CurrentJob,
    EditConditions,
    HaltChange,
    JobChange,
    PauseSeen,
    Triggered,
)
from sexton.store.sqlite import cluster_edits, edit_routine, queue_edits
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.formats import require_format
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.races import switch_strategy
from sexton.store.sqlite.slot_groups import write_groups
from sexton.store.sqlite.terms import record_event
from sexton.store.sqlite.ticks import NEXT_CHANGE
from sexton.store.tables import from_micros

_STATE = """
SELECT job_id, name, revision, hash_seed, paused_at IS NOT NULL, pause_reason, retired_at IS NOT NULL, paused_with_all,
  paused_at, paused_by, quarantined_at,
  (SELECT p.until FROM pauses p WHERE p.job_id = jobs.job_id ORDER BY p.since DESC LIMIT 1)
FROM jobs WHERE job_id = ?
"""
_SEED = "SELECT job_id, hash_seed FROM jobs WHERE job_id = ?"
_JOB_NOW = "SELECT job_id, name, revision, retired_at IS NOT NULL FROM jobs WHERE job_id = ?"
_NAMED = "SELECT job_id FROM jobs WHERE name_key = ? AND retired_at IS NULL AND job_id <> ?"
_LAST_MOVE = """
SELECT actor, action, at FROM events
WHERE job_id = ?1 AND action IN (SELECT value FROM json_each(?2)) ORDER BY event_id DESC LIMIT 1
"""
_CURRENT_JOBS = """
SELECT j.job_id, j.name, j.revision, r.definition, j.hash_seed, j.paused_at, j.paused_by, j.pause_reason,
  j.quarantined_at
FROM jobs j JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision
WHERE j.retired_at IS NULL ORDER BY j.name_key
"""
_TRIGGERED_JOB = """
SELECT j.name, j.revision, r.firing, j.retired_at IS NOT NULL, coalesce(j.slot, j.job_id)
FROM jobs j JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE j.job_id = ?
"""
_TRIGGERED_BEFORE = """
SELECT c.job_id, j.name, c.scheduled_at FROM claims c JOIN jobs j ON j.job_id = c.job_id WHERE c.request_id = ?
"""
_IS_TAKEN = "SELECT 1 FROM claims WHERE job_id = ? AND scheduled_at = ?"
_TRIGGER = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, at_most_once,
  request_id, term, written_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT term FROM cluster WHERE id = 1), ?)
"""
_SET = """
INSERT INTO settings (key, value, changed_at, changed_by) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at,
  changed_by = excluded.changed_by
"""
_RESIGN = """
UPDATE cluster SET resign_requested = (SELECT confirmation = 'confirmed' FROM heartbeat WHERE id = 1)
WHERE id = 1 AND leader = coalesce(?, leader) RETURNING leader, term, (SELECT confirmation FROM heartbeat WHERE id = 1)
"""


AlsoWrites = Callable[[sqlite3.Connection, Mapping[int, int]], None]


def _nothing(connection: sqlite3.Connection, effective_at: Mapping[int, int]) -> None:
    """What most edits write beside."""


class SqliteEdits:
    """Implements ``EditStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def edit(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions | None = None
    ) -> tuple[ChangeDone, ...]:
        return self.edit_also(changes, actor, conditions, _nothing)

    def edit_also(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions | None, also: AlsoWrites
    ) -> tuple[ChangeDone, ...]:
        """``edit``, and in its transaction what ``also`` writes, given the connection and E of each job.

        What ``also`` raises undoes the edit.
        """
        try:
            return self._edit(changes, actor, conditions or EditConditions(), also)
        except MovedOn as error:
            raise self._told_by_whom(error) from None

    def _edit(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions, also: AlsoWrites
    ) -> tuple[ChangeDone, ...]:
        job_ids = edited_ids(changes)
        with self._connection.snapshot() as connection:
            found = [connection.execute(_SEED, [job_id]).fetchone() for job_id in job_ids]
        # Made before the one write lock is held, for which all others wait.
        made, needed_format = new_revisions(changes, dict(row for row in found if row)), format_of_changes(changes)
        with self._connection.transaction() as connection:
            _check_conditions(connection, conditions)
            rows = [connection.execute(_STATE, [job_id]).fetchone() for job_id in job_ids]
            states = {row[0]: _state(row) for row in rows if row}
            (newest,) = connection.execute("SELECT coalesce(max(job_id), 0) FROM jobs").fetchone()
            created = sum(change.kind is ChangeKind.CREATE for change in changes)
            edits = plan_edits(changes, states, range(newest + 1, newest + 1 + created), made)
            cut = self._connection.now_micros()
            require_format(connection, cut, *needed_format)
            effective_at: dict[int, int] = {}
            withdrawn: dict[int, int] = {}
            for edit in edits:
                edit_routine.free_name(connection, edit, cut)
                effective = cut if edit.creates else edit_routine.effective_at(connection, edit.job_id, cut)
                effective_at[edit.job_id] = effective
                withdrawn[edit.job_id] = (
                    0 if edit.creates else edit_routine.withdraw(connection, edit.job_id, effective)
                )
            for edit in edits:
                _write(connection, edit, effective_at[edit.job_id], withdrawn[edit.job_id], cut, actor)
            also(connection, effective_at)
            made_ready = write_groups(connection, edits, cut)
            notify(self._connection, connection, Channel.JOBS)
            if made_ready or any(edit.resumes for edit in edits):
                notify(self._connection, connection, Channel.WORK)
        return tuple(edit.done(from_micros(effective_at[edit.job_id]), withdrawn[edit.job_id]) for edit in edits)

    def _told_by_whom(self, error: MovedOn) -> MovedOn:
        with self._connection.snapshot() as connection:
            row = connection.execute(_LAST_MOVE, [error.job_id, json.dumps(MOVES)]).fetchone()
        return error if row is None else told_by(error, row[0], row[1], from_micros(row[2]))

    def current_jobs(self) -> tuple[CurrentJob, ...]:
        with self._connection.snapshot() as connection:
            rows = connection.execute(_CURRENT_JOBS).fetchall()
        return tuple(_current(row) for row in rows)

    def find_job(self, name: str) -> CurrentJob:
        return pick_job(name, self.current_jobs())

    def trigger(self, job_id: int, actor: str, request_id: str | None = None) -> Triggered:
        with self._connection.transaction() as connection:
            if request_id is not None:
                before = connection.execute(_TRIGGERED_BEFORE, [request_id]).fetchone()
                if before is not None:
                    return _triggered_before(before, job_id, request_id)
            job = connection.execute(_TRIGGERED_JOB, [job_id]).fetchone()
            if job is None or job[3]:
                raise NotFound(f"there is no job with id {job_id} any more", hint="`sexton jobs` lists what there is")
            name, revision, firing_text, _, slot = job
            firing = firing_rules(firing_text)
            now = self._connection.now_micros()
            # Schedules fall on whole milliseconds: a manual claim lies between them, and never takes a tick's place.
            at = now
            while at % 1000 == 0 or connection.execute(_IS_TAKEN, [job_id, at]).fetchone():
                at += 1
            at_most_once = firing.on_worker_lost is OnWorkerLost.FAIL
            where = [firing.queue, firing.priority, int(firing.overlap), slot]
            values = [job_id, at, revision, int(Origin.MANUAL), *where, at, at_most_once, request_id, now]
            connection.execute(_TRIGGER, values)
            detail: dict[str, object] = {
                "job": name,
                "scheduled_at": from_micros(at).isoformat().replace("+00:00", "Z"),
                "request_id": request_id,
            }
            record_event(connection, now, actor, "job.triggered", detail, job_id)
            notify(self._connection, connection, Channel.WORK)
        return Triggered(job_id, name, from_micros(at), existed=False)

    def settings(self) -> ClusterSettings:
        with self._connection.snapshot() as connection:
            return settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall()))

    def set_setting(self, key: str, value: str, actor: str) -> ClusterSettings:
        with self._connection.transaction() as connection:
            before = settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall()))
            after = with_setting(before, key, value)
            after.check()
            now, text = self._connection.now_micros(), setting_text(after, key)
            connection.execute(_SET, [key, text, now, actor])
            if key == "strategy":
                switch_strategy(connection, text, actor, now)
            detail: dict[str, object] = {"key": key, "from": setting_text(before, key), "to": text}
            record_event(connection, now, actor, "setting.changed", detail)
            notify(self._connection, connection, Channel.JOBS)
        return after

    def set_queue_rule(self, name: str, limits: Mapping[str, str], actor: str) -> RuleChange:
        return queue_edits.set_queue_rule(self._connection, name, limits, actor)

    def request_resign(self, actor: str, leader: str | None = None) -> str | None:
        with self._connection.transaction() as connection:
            asked = connection.execute(_RESIGN, [leader]).fetchall()
            if not asked:
                return None
            asked_leader, term, confirmation = asked[0]
            check_resignation(asked_leader, confirmation)  # what it raises rolls the request back
            detail: dict[str, object] = {"leader": asked_leader, "term": term}
            record_event(connection, self._connection.now_micros(), actor, "leader.asked_to_resign", detail)
            notify(self._connection, connection, Channel.JOBS)
        return str(asked_leader)

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
        shown = {key: value.isoformat() if isinstance(value, datetime) else value for key, value in detail.items()}
        with self._connection.transaction() as connection:
            record_event(connection, self._connection.now_micros(), actor, action, shown, job_id)


def _state(row: tuple[Any, ...]) -> JobState:
    job_id, name, revision, seed, is_paused, why, is_retired, with_all, since, who, quarantined, resumed_at = row
    pause = _pause(since, who, why, quarantined)
    flags = bool(is_paused), why, bool(is_retired), bool(with_all)
    return JobState(job_id, name, revision, seed, *flags, pause, _instant(resumed_at))


def _current(row: tuple[Any, ...]) -> CurrentJob:
    job_id, name, revision, definition, seed, since, who, why, quarantined = row
    stands = since is not None, quarantined is not None, _pause(since, who, why, quarantined)
    return CurrentJob(job_id, name, revision, JobDefinition.from_text(definition), seed, *stands)


def _pause(since: int | None, who: str | None, why: str | None, quarantined: int | None) -> PauseSeen:
    return PauseSeen(_instant(since), who or "", why or "", _instant(quarantined))


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _check_conditions(connection: sqlite3.Connection, conditions: EditConditions) -> None:
    row = connection.execute("SELECT cluster_id, inputs_id FROM cluster WHERE id = 1").fetchone()
    check_cluster(conditions, *(row or ("", "")))
    for job_id, expected in conditions.unchanged.items():
        found = connection.execute(_JOB_NOW, [job_id]).fetchone()
        if found is not None:
            check_revision(found[0], found[1], found[2], bool(found[3]), expected)


def _write(
    connection: sqlite3.Connection, edit: PlannedEdit, effective: int, withdrawn: int, now: int, actor: str
) -> None:
    """One job's part of an edit, with its number and its event."""
    try:
        edit_routine.write(connection, edit, effective, now, actor)
    except sqlite3.IntegrityError:
        row = connection.execute(_NAMED, [edit.name_key, edit.job_id]).fetchone()
        raise name_taken(edit.name, None if row is None else row[0]) from None
    ((changed,),) = connection.execute(NEXT_CHANGE).fetchall()
    connection.execute("UPDATE jobs SET changed = ? WHERE job_id = ?", [changed, edit.job_id])
    detail = edit.detail(from_micros(effective), withdrawn)
    record_event(connection, now, actor, edit.action, detail, edit.job_id)


def _triggered_before(row: tuple[int, str, int], job_id: int, request_id: str) -> Triggered:
    if row[0] != job_id:
        raise Refused(f"request id {request_id!r} was used for job {row[1]!r}", hint="choose another request id")
    return Triggered(row[0], row[1], from_micros(row[2]), existed=True)
