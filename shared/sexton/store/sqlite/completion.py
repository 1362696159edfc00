"""Results become history, and what they free is promoted: `sexton.store.postgres.completion` on SQLite."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from sexton.claims import State
from sexton.store.protocol import RunResult
from sexton.store.tables import from_micros, to_micros

Claim = tuple[int, int]  # job_id, scheduled_at in microseconds

_CURRENT = """SELECT rowid, attempt, revision, slot, overlap, jitter_ms, cancel_requested FROM claims
 WHERE job_id = ? AND scheduled_at = ? AND token = ? AND state = 1"""
_BACK = """UPDATE claims SET state = 0, available_at = coalesce(?, available_at), retries = retries + ?,
 losses = losses + ?, token = NULL, worker_id = NULL, granted_at = NULL, started_at = NULL, finished_at = NULL,
 lease_expires_at = NULL WHERE rowid = ?"""
_END = """UPDATE claims SET state = ?, losses = losses + ?, started_at = coalesce(?, started_at), finished_at = ?,
 lease_expires_at = NULL WHERE rowid = ?"""
_KEEP_RUN = """INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, exit_code, error,
 started_at, finished_at, lateness_ms, stdout_bytes, stderr_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_KEEP_OUTPUT = "INSERT INTO outputs (token, stdout, stderr) VALUES (?, ?, ?)"
_FREE_SLOT = "UPDATE slots SET token = NULL WHERE slot = ? AND token = ?"
_FREE_ROWS = "SELECT count(*) FROM slots WHERE slot = ? AND token IS NULL"

# First the newest tick that replaces, for which a run was stopped. Live claims before paced ones: a paced claim may
# have to wait for its class, and must not keep a live one waiting.
_HEADS = """SELECT c.rowid, c.job_id, c.scheduled_at, c.start_by, c.start_by - c.available_at,
  coalesce(r.firing ->> '$.missed.start_within_ms', r.firing ->> '$.missed.grace_ms') * 1000
 FROM claims c LEFT JOIN revisions r ON r.job_id = c.job_id AND r.revision = c.revision
 WHERE c.state = 2 AND c.slot = ? AND NOT c.blocked
 ORDER BY CASE WHEN c.overlap = 3 AND c.origin = 0 AND c.attempt = 0 THEN -c.scheduled_at END NULLS LAST,
  c.origin IN (1, 2, 3), c.scheduled_at LIMIT ?"""
# What was promoted for a key may be of a queue that nobody serves now, or whose limit holds it back: what waits for the
# same key in another queue is promoted beside it.
_OF_EACH_QUEUE = _HEADS.replace(
    "NOT c.blocked",
    """NOT c.blocked AND c.rowid IN (SELECT id FROM (
   SELECT rowid AS id, row_number() OVER (PARTITION BY queue ORDER BY origin IN (1, 2, 3), scheduled_at) AS place
   FROM claims WHERE state = 2 AND slot = ?1 AND NOT blocked) WHERE place = 1)""",
)
_PROMOTE = "UPDATE claims SET state = 0, start_by = ? WHERE rowid = ?"


def complete(
    connection: sqlite3.Connection, worker_id: int, results: Iterable[RunResult]
) -> tuple[dict[int, State], list[int]]:
    """Write the results whose token still counts; what became of each claim by token, and the slots freed."""
    outcomes: dict[int, State] = {}
    freed: list[int] = []
    for result in results:
        key = (result.job_id, to_micros(result.scheduled_at), result.token)
        row = connection.execute(_CURRENT, key).fetchone()
        if row is None:
            continue
        rowid, attempt, revision, slot, overlap, jitter_ms, cancel_requested = row
        state = State.CANCELLED if cancel_requested and result.outcome == State.READY else result.outcome
        started = None if result.started_at is None else to_micros(result.started_at)
        finished = to_micros(result.finished_at)
        if state == State.READY:
            retry_at = None if result.retry_at is None else to_micros(result.retry_at)
            connection.execute(_BACK, (retry_at, int(result.uses_retry), int(result.is_loss), rowid))
        else:
            connection.execute(_END, (int(state), int(result.is_loss), started, finished, rowid))
        run = (result.token, result.job_id, key[1], attempt, revision, worker_id, int(state), result.exit_code)
        lateness = lateness_ms(started, key[1], jitter_ms)
        sizes = (result.stdout_bytes, result.stderr_bytes)
        connection.execute(_KEEP_RUN, (*run, result.error or None, started, finished, lateness, *sizes))
        if result.stdout or result.stderr:
            connection.execute(_KEEP_OUTPUT, (result.token, result.stdout, result.stderr))
        if overlap:
            connection.execute(_FREE_SLOT, (slot, result.token))
            freed.append(slot)
        outcomes[result.token] = state
    return outcomes, freed


def promote(connection: sqlite3.Connection, now: int, slots: Iterable[int], *, all_free: bool = False) -> set[Claim]:
    """Promote of each slot the oldest parked claims: one each time it is named, for it was freed so often.

    ``all_free``: as many as rows of it are free; of a key's also the oldest of each queue.
    """
    promoted: set[Claim] = set()
    for slot, freed in sorted(Counter(slots).items()):
        (free,) = connection.execute(_FREE_ROWS, (slot,)).fetchone()
        free = free if all_free else min(free, freed)
        heads = connection.execute(_HEADS, (slot, free)).fetchall() if free else []
        if free and all_free and slot < 0:
            heads += connection.execute(_OF_EACH_QUEUE, (slot, -1)).fetchall()
        for rowid, job_id, scheduled_at, start_by, written_with, allowance in heads:
            # start_by is set anew, so that the time it was parked does not count; its place in the queue stays.
            anew = None if start_by is None else now + int(written_with if allowance is None else allowance)
            connection.execute(_PROMOTE, (anew, rowid))
            promoted.add((job_id, scheduled_at))
    return promoted


def lateness_ms(started: int | None, scheduled_at: int, jitter_ms: int) -> int | None:
    """How late a run started, in milliseconds; arguments in microseconds but for the jitter."""
    if started is None:
        return None
    late = from_micros(started) - from_micros(scheduled_at)
    return round(late.total_seconds() * 1000) - jitter_ms
