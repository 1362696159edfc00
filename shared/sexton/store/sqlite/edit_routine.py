"""The edit routine on SQLite: the steps of the PostgreSQL one, in one BEGIN IMMEDIATE transaction, per job.

Holding the one write lock is what steps 1 and 3 are for; what remains is the cut, E, the withdrawal and the writes.
"""

from __future__ import annotations

import sqlite3

from sexton.store.edit_plan import PlannedEdit

_EFFECTIVE_AT = """
SELECT max(?1,
  coalesce((SELECT max(scheduled_at) FROM claims
            WHERE job_id = ?2 AND scheduled_at > ?1 AND origin = 0 AND (state <> 0 OR attempt > 0)), ?1),
  coalesce((SELECT upto FROM skips WHERE job_id = ?2 AND named_by IS NULL ORDER BY after DESC LIMIT 1), ?1))
"""
_WITHDRAW = """
DELETE FROM claims WHERE job_id = ? AND scheduled_at > ? AND origin = 0 AND state = 0 AND attempt = 0
"""
_UNNAME = "DELETE FROM skips WHERE job_id = ? AND named_by IS NOT NULL AND upto > ?"
_STEP_BACK = "UPDATE cursors SET at = min(at, ?), seq = seq + 1 WHERE job_id = ?"
_END_REVISION = "UPDATE revisions SET in_force_until = ? WHERE job_id = ? AND in_force_until IS NULL"
_RETIRE_JOB = "UPDATE jobs SET retired_at = ? WHERE job_id = ?"
_REJECT = """
UPDATE proposals SET state = 'rejected', answered_at = ?, answered_by = ?, note = 'the job was retired'
WHERE job_id = ? AND state = 'open'
"""
_REJECT_GAPS = """
UPDATE skips SET detail = detail || '; rejected by ' || ? || ': the job was retired'
WHERE job_id = ? AND reason = 'held' AND resolved_at IS NULL
  AND after IN (SELECT p.after FROM proposals p WHERE p.job_id = skips.job_id AND p.state = 'open')
"""
_CANCEL = """
UPDATE claims SET state = CASE WHEN state = 11 THEN 8 ELSE 7 END, blocked = 0, start_by = NULL, finished_at = ?,
  reason = CASE WHEN state = 11 THEN 'its proposal was rejected: ' ELSE 'paused when ' END || 'the job was retired'
WHERE job_id = ? AND (state = 11 OR (blocked AND state IN (0, 2)))
"""
_FREE_NAME = "UPDATE jobs SET name_key = '#' || job_id WHERE job_id = ?"
_INSERT_JOB = """
INSERT INTO jobs (job_id, name, name_key, hash_seed, revision, created_at, changed) VALUES (?, ?, ?, ?, 1, ?, 0)
"""
_REVISE_JOB = """
UPDATE jobs SET name = ?, name_key = ?, hash_seed = ?, revision = ?, quarantined_at = NULL, quarantine_reason = NULL
WHERE job_id = ?
"""
_INSERT_REVISION = """
INSERT INTO revisions (job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at,
  applied_by)
VALUES (?, ?, ?, ?, ?, (SELECT inputs_id FROM cluster WHERE id = 1), ?, ?, ?)
"""
_PAUSE_JOB = "UPDATE jobs SET paused_at = ?, paused_by = ?, pause_reason = ? WHERE job_id = ?"
_PAUSE = """
INSERT INTO pauses (job_id, since, who, why) VALUES (?, ?, ?, ?)
ON CONFLICT (job_id, since) DO UPDATE SET until = NULL, who = excluded.who, why = excluded.why
"""
_BLOCK = "UPDATE claims SET blocked = 1 WHERE job_id = ? AND state IN (0, 1, 2) AND origin <> 4"
_RESUME_JOB = """
UPDATE jobs SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, paused_with_all = 0 WHERE job_id = ?
"""
# A job that was paused with all, and is to stay paused when all are resumed.
_KEEP_JOB = "UPDATE jobs SET paused_by = ?, pause_reason = ?, paused_with_all = 0 WHERE job_id = ?"
_KEEP = "UPDATE pauses SET who = ?, why = ? WHERE job_id = ? AND until IS NULL"
_PAUSE_OF_ALL = "SELECT who, why FROM pause_of_all WHERE id = 1"
_PAUSED_WITH_ALL = "UPDATE jobs SET paused_with_all = 1 WHERE job_id = ?"
_END_PAUSE = "UPDATE pauses SET until = ? WHERE job_id = ? AND until IS NULL"
# Time that a claim was paused does not count: one that nobody was ever granted gets its allowance anew.
_UNBLOCK = """
UPDATE claims SET blocked = 0, start_by = CASE WHEN start_by IS NOT NULL AND attempt = 0
    THEN max(?1, available_at) + 1000 *
      (SELECT coalesce(firing ->> '$.missed.start_within_ms', firing ->> '$.missed.grace_ms')
       FROM revisions r WHERE r.job_id = claims.job_id AND r.revision = claims.revision)
    ELSE start_by END
WHERE job_id = ?2 AND blocked
"""
_LIFT = "UPDATE jobs SET quarantined_at = NULL, quarantine_reason = NULL WHERE job_id = ?"


def effective_at(connection: sqlite3.Connection, job_id: int, cut: int) -> int:
    """E of a job."""
    (effective,) = connection.execute(_EFFECTIVE_AT, [cut, job_id]).fetchone()
    return int(effective)


def withdraw(connection: sqlite3.Connection, job_id: int, effective: int) -> int:
    """Delete what was written ahead beyond E: claims that nobody ever had, skip records of ticks that were named. Step
    the cursor back. How many claims were deleted."""
    withdrawn = connection.execute(_WITHDRAW, [job_id, effective]).rowcount
    connection.execute(_UNNAME, [job_id, effective])
    connection.execute(_STEP_BACK, [effective, job_id])
    return withdrawn


def free_name(connection: sqlite3.Connection, edit: PlannedEdit, now: int) -> None:
    """End the job where the edit retires it, and its claim to its name where it may take another."""
    if edit.retires:
        connection.execute(_RETIRE_JOB, [now, edit.job_id])
    elif edit.new_revision is not None and not edit.creates:
        connection.execute(_FREE_NAME, [edit.job_id])


def write(connection: sqlite3.Connection, edit: PlannedEdit, effective: int, now: int, actor: str) -> None:
    """The writes of one job's edit, in force from E on."""
    job_id, new = edit.job_id, edit.new_revision
    if edit.retires or new is not None:
        connection.execute(_END_REVISION, [effective, job_id])
    if edit.retires:
        connection.execute(_REJECT_GAPS, [actor, job_id])
        connection.execute(_REJECT, [now, actor, job_id])
        connection.execute(_CANCEL, [now, job_id])
    if edit.creates and new is not None:
        connection.execute(_INSERT_JOB, [job_id, edit.name, edit.name_key, new.hash_seed, now])
        connection.execute("INSERT INTO cursors (job_id, at) VALUES (?, ?)", [job_id, effective])
        connection.execute("INSERT INTO slots (slot, number) VALUES (?, 1)", [job_id])
    elif new is not None:
        connection.execute(_REVISE_JOB, [edit.name, edit.name_key, new.hash_seed, edit.revision, job_id])
    if new is not None:
        values = [job_id, edit.revision, new.definition, new.schedule, new.firing, effective, now, actor]
        connection.execute(_INSERT_REVISION, values)
    if edit.resumes:
        connection.execute(_RESUME_JOB, [job_id])
        connection.execute(_END_PAUSE, [effective, job_id])
        connection.execute(_UNBLOCK, [now, job_id])
    if edit.pauses is not None:
        _pause(connection, job_id, effective, actor, edit.pauses)
        if edit.with_all:
            connection.execute(_PAUSED_WITH_ALL, [job_id])
    if edit.keeps is not None:
        connection.execute(_KEEP_JOB, [actor, edit.keeps, job_id])
        connection.execute(_KEEP, [actor, edit.keeps, job_id])
    # While all are paused, so is what comes to run by an edit of definitions.
    if edit.comes_to_run and (standing := connection.execute(_PAUSE_OF_ALL).fetchone()) is not None:
        _pause(connection, job_id, effective, *standing)
        connection.execute(_PAUSED_WITH_ALL, [job_id])
    if edit.lifts_quarantine:
        connection.execute(_LIFT, [job_id])


def _pause(connection: sqlite3.Connection, job_id: int, effective: int, who: str, why: str) -> None:
    connection.execute(_PAUSE_JOB, [effective, who, why, job_id])
    connection.execute(_PAUSE, [job_id, effective, who, why])
    connection.execute(_BLOCK, [job_id])
