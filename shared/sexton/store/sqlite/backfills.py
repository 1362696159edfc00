"""Backfills on SQLite: `sexton.store.postgres.backfills` in one write transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sexton.holds import start_at
from sexton.resolutions import JobStretch, Resolution, Resolved
from sexton.settings import settings_from_rows
from sexton.store.backfill_values import (
    LedgerMoved,
    available_at,
    backfill_detail,
    first_parts,
    jitter_ms,
    new_parts,
    resolved,
    rules_values,
    said_of,
)
from sexton.store.protocol import Channel
from sexton.store.read_stretch import open_pause, read_stretch
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import record_event
from sexton.store.sqlite.ticks import NEXT_CHANGE
from sexton.store.tables import from_micros, to_micros

_CURSOR = "SELECT at FROM cursors WHERE job_id = :job AND seq = :seq"
_JOB = """
SELECT paused_at IS NOT NULL FROM jobs WHERE job_id = :job AND revision = :revision AND retired_at IS NULL
"""
_IS_HELD = "SELECT 1 FROM proposals WHERE job_id = :job AND state = 'open' AND upto >= :first AND after < :last LIMIT 1"
_DRAW = "UPDATE budget SET next_at = max(next_at, ?1) + ?2 WHERE id = 1 RETURNING next_at - ?2"
_AS_FOUND = "job_id = :job AND after = :after AND upto = :upto AND count = :count AND resolved_at IS NULL"
_NEW_PART = f"""
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, resolved_at, resolved_by)
SELECT job_id, :part_after, :part_upto, :part_count, coalesce(:reason, reason), coalesce(:detail, detail), revision,
  term, decided_at, CASE WHEN :is_resolved THEN :now END, CASE WHEN :is_resolved THEN :actor END
FROM skips WHERE {_AS_FOUND}
"""  # noqa: S608 - the part is a constant
_FIRST_PART = f"""
UPDATE skips SET upto = :part_upto, count = :part_count, reason = coalesce(:reason, reason),
  detail = coalesce(:detail, detail), resolved_at = CASE WHEN :is_resolved THEN :now END,
  resolved_by = CASE WHEN :is_resolved THEN :actor END
WHERE {_AS_FOUND}
"""  # noqa: S608 - the part is a constant
_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, blocked,
  at_most_once, jitter_ms, reason, term, written_at)
SELECT j.job_id, :tick, :revision, 3, :queue, :priority, :overlap, coalesce(j.slot, j.job_id), :available, :blocked,
  :once, :jitter, :said, c.term, :now
FROM jobs j, cluster c WHERE j.job_id = :job AND c.id = 1 ON CONFLICT DO NOTHING
"""
# As a rerun, but paced, as revision and rules of the job as it is now, and only where the claim is as it was read.
_OPEN = """
UPDATE claims SET state = 0, origin = 3, revision = :revision, queue = :queue, priority = :priority, overlap = :overlap,
  at_most_once = :once, slot = (SELECT coalesce(slot, job_id) FROM jobs WHERE job_id = :job), available_at = :available,
  start_by = NULL, blocked = :blocked, retries = 0, losses = 0, token = NULL, worker_id = NULL, granted_at = NULL,
  lease_expires_at = NULL, started_at = NULL, finished_at = NULL, cancel_requested = 0, reason = :said
WHERE job_id = :job AND scheduled_at = :tick AND state = :state AND attempt = :attempt
"""
_NEW_SEQ = "UPDATE cursors SET seq = seq + 1 WHERE job_id = ?"


class SqliteBackfills:
    """Implements ``BackfillStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def stretch(self, job_id: int, after: datetime, upto: datetime, limit: int) -> JobStretch:
        with self._connection.reading() as reading:
            return read_stretch(reading, self._connection.now(), job_id, after, upto, limit)

    def pause_of(self, job_id: int) -> datetime | None:
        with self._connection.reading() as reading:
            return open_pause(reading, job_id)

    def backfill(self, resolution: Resolution, actor: str, note: str) -> Resolved | None:
        job_id = resolution.job_id
        try:
            with self._connection.transaction() as connection:
                now = self._connection.now_micros()
                is_paused = _is_paused(connection, resolution)
                starts = draw_starts(connection, len(resolution.order), now)
                values = {"said": said_of(actor, note), "blocked": is_paused, "actor": actor, "now": now}
                write_resolution(connection, resolution, starts, values)
                connection.execute(_NEW_SEQ, [job_id])
                record_event(connection, now, actor, "job.backfilled", dict(backfill_detail(resolution, note)), job_id)
                ((changed,),) = connection.execute(NEXT_CHANGE).fetchall()
                connection.execute("UPDATE jobs SET changed = ? WHERE job_id = ?", [changed, job_id])
                notify(self._connection, connection, Channel.JOBS)
                notify(self._connection, connection, Channel.WORK)
        except LedgerMoved:
            return None
        return resolved(resolution, starts, is_paused=is_paused)


def _is_paused(connection: sqlite3.Connection, resolution: Resolution) -> bool:
    """Whether the job, still as it was read, is paused."""
    values = {"job": resolution.job_id, "seq": resolution.seq, "revision": resolution.newest.revision}
    job = connection.execute(_JOB, values).fetchone()
    if job is None or connection.execute(_CURSOR, values).fetchone() is None:
        raise LedgerMoved
    if resolution.order:
        span = {"first": to_micros(min(resolution.order)), "last": to_micros(max(resolution.order))}
        if connection.execute(_IS_HELD, {**values, **span}).fetchone() is not None:
            raise LedgerMoved
    return bool(job[0])


def draw_starts(connection: sqlite3.Connection, count: int, now: int) -> list[datetime]:
    """So many starts of the catch-up budget, which goes on after the last."""
    if not count:
        return []
    rate = settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall())).catch_up_rate
    span = timedelta(seconds=count / rate) // timedelta(microseconds=1)
    ((first,),) = connection.execute(_DRAW, [now, span]).fetchall()
    return [start_at(from_micros(first), number, rate) for number in range(count)]


def write_resolution(
    connection: sqlite3.Connection, resolution: Resolution, starts: Sequence[datetime], values: Mapping[str, Any]
) -> None:
    """Write all of it; ``values``: ``said``, ``blocked``, ``actor`` and ``now``.

    Raises ``LedgerMoved`` where a row is not as it was read; the transaction is then to be rolled back.
    """
    available = available_at(resolution, starts)
    common = {**values, "job": resolution.job_id, **rules_values(resolution.newest.firing)}
    for statement, parts in ((_NEW_PART, new_parts(resolution)), (_FIRST_PART, first_parts(resolution))):
        for part in parts:
            _expect_one(connection.execute(statement, {**common, **_in_micros(part)}))
    for claim in resolution.claims:
        tick = {"tick": claim.scheduled_at, "available": available[claim.scheduled_at]}
        of_claim = {"revision": claim.revision, "jitter": jitter_ms(claim.jitter)}
        _expect_one(connection.execute(_CLAIM, {**common, **of_claim, **_in_micros(tick)}))
    for found in resolution.opened:
        tick = {"tick": found.scheduled_at, "available": available[found.scheduled_at]}
        as_found = {"state": int(found.state), "attempt": found.attempt, "revision": resolution.newest.revision}
        _expect_one(connection.execute(_OPEN, {**common, **as_found, **_in_micros(tick)}))


def _in_micros(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: to_micros(value) if isinstance(value, datetime) else value for key, value in values.items()}


def _expect_one(done: sqlite3.Cursor) -> None:
    if done.rowcount != 1:
        raise LedgerMoved
