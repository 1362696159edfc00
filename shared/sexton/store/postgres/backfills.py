"""Backfills on PostgreSQL: `PostgresBackfills` implements `protocol.BackfillStore`.

One transaction, in the order in which edits lock: the job's cursor (no tick of it is decided, and no late claim, until
this commits), the job, then skip records and claims. Each write is a compare-and-set on the row as it was read; where
one is lost, all is rolled back. `seq` grows, so that a leader that holds a record which has been split reads anew.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from sexton.resolutions import JobStretch, Resolution, Resolved
from sexton.store.backfill_values import (
    LedgerMoved,
    backfill_detail,
    first_parts,
    jitter_ms,
    new_parts,
    resolved,
    rules_values,
    said_of,
)
from sexton.store.postgres import arrays, budget
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.postgres.edit_writes import CHANGES_LOCK, NUMBER
from sexton.store.read_stretch import open_pause, read_stretch

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_LOCK_CURSOR = """
SELECT at FROM cursors WHERE job_id = %(job)s AND seq = %(seq)s FOR UPDATE
"""
_LOCK_JOB = """
SELECT paused_at IS NOT NULL FROM jobs WHERE job_id = %(job)s AND revision = %(revision)s AND retired_at IS NULL
FOR NO KEY UPDATE
"""
_IS_HELD = """
SELECT 1 FROM proposals WHERE job_id = %(job)s AND state = 'open' AND upto >= %(first)s AND after < %(last)s LIMIT 1
"""
_AS_FOUND = """
job_id = %(job)s AND after = %(after)s AND upto = %(upto)s AND count = %(count)s AND resolved_at IS NULL
"""
_NEW_PART = f"""
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, resolved_at, resolved_by)
SELECT job_id, %(part_after)s, %(part_upto)s, %(part_count)s, coalesce(%(reason)s, reason),
  coalesce(%(detail)s, detail), revision, term, decided_at, CASE WHEN %(is_resolved)s THEN clock_timestamp() END,
  CASE WHEN %(is_resolved)s THEN %(actor)s END
FROM skips WHERE {_AS_FOUND}
"""  # noqa: S608 - the part is a constant
_FIRST_PART = f"""
UPDATE skips SET upto = %(part_upto)s, count = %(part_count)s, reason = coalesce(%(reason)s, reason),
  detail = coalesce(%(detail)s, detail), resolved_at = CASE WHEN %(is_resolved)s THEN clock_timestamp() END,
  resolved_by = CASE WHEN %(is_resolved)s THEN %(actor)s END
WHERE {_AS_FOUND}
"""  # noqa: S608 - the part is a constant
_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, blocked,
  at_most_once, jitter_ms, reason, term, written_at)
SELECT j.job_id, t.scheduled_at, t.revision, 3, %(queue)s, %(priority)s, %(overlap)s, coalesce(j.slot, j.job_id),
  greatest(t.earliest, t.start + %(later)s::interval), %(blocked)s, %(once)s, t.jitter_ms, %(said)s, c.term,
  clock_timestamp()
FROM unnest(%(ticks)s::timestamptz[], %(revisions)s::integer[], %(starts)s::timestamptz[], %(earliest)s::timestamptz[],
    %(jitter)s::integer[])
    t(scheduled_at, revision, start, earliest, jitter_ms), jobs j, cluster c
WHERE j.job_id = %(job)s AND c.id = 1 ON CONFLICT DO NOTHING
"""
# As a rerun, but paced, as revision and rules of the job as it is now, and only where the claim is as it was read.
_OPEN = """
UPDATE claims c SET state = 0, origin = 3, revision = %(revision)s, queue = %(queue)s, priority = %(priority)s,
  overlap = %(overlap)s, at_most_once = %(once)s, slot = coalesce(j.slot, j.job_id),
  available_at = greatest(t.scheduled_at, t.start + %(later)s::interval), start_by = NULL, blocked = %(blocked)s,
  retries = 0, losses = 0, token = NULL, worker_id = NULL, granted_at = NULL, lease_expires_at = NULL,
  started_at = NULL, finished_at = NULL, cancel_requested = false, reason = %(said)s
FROM unnest(%(ticks)s::timestamptz[], %(starts)s::timestamptz[], %(states)s::smallint[], %(attempts)s::integer[])
    t(scheduled_at, start, state, attempt), jobs j
WHERE j.job_id = %(job)s AND c.job_id = %(job)s AND c.scheduled_at = t.scheduled_at AND c.state = t.state
  AND c.attempt = t.attempt
"""
_NEW_SEQ = "UPDATE cursors SET seq = seq + 1 WHERE job_id = %s"
_EVENT = "INSERT INTO events (at, actor, action, job_id, detail) VALUES (clock_timestamp(), %s, %s, %s, %s)"
_NOTIFY = "SELECT pg_notify('sexton_jobs', ''), pg_notify('sexton_work', '')"


class PostgresBackfills:
    """Implements ``BackfillStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def stretch(self, job_id: int, after: datetime, upto: datetime, limit: int) -> JobStretch:
        with self._connection.autocommit() as connection:
            (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
        assert isinstance(now, datetime)  # noqa: S101 - a SELECT without FROM returns one row
        with self._connection.reading() as reading:
            return read_stretch(reading, now, job_id, after, upto, limit)

    def pause_of(self, job_id: int) -> datetime | None:
        with self._connection.reading() as reading:
            return open_pause(reading, job_id)

    def backfill(self, resolution: Resolution, actor: str, note: str) -> Resolved | None:
        planned = budget.planned(self._connection, len(resolution.order))
        values = claim_values(resolution, planned, said_of(actor, note))  # packed before any lock is held
        try:
            return self._connection.retrying(lambda: self._backfill(resolution, values, actor, note), "this backfill")
        except LedgerMoved:
            return None

    def _backfill(self, resolution: Resolution, values: dict[str, Any], actor: str, note: str) -> Resolved:
        with self._connection.transaction(LIMITS) as connection:
            is_paused = _lock(connection, resolution)
            job_id = resolution.job_id
            connection.execute(_NEW_SEQ, [job_id])
            detail = json.dumps(backfill_detail(resolution, note), ensure_ascii=False)
            connection.execute(_EVENT, [actor, "job.backfilled", job_id, detail])
            # Under the lock of edits, which draw on the budget under it too: in one order.
            connection.execute(NUMBER, {"job_ids": [job_id], "lock": CHANGES_LOCK})
            starts = write_resolution(connection, resolution, {**values, "blocked": is_paused, "actor": actor})
            connection.execute(_NOTIFY)
        return resolved(resolution, starts, is_paused=is_paused)


def _lock(connection: psycopg.Connection[Any], resolution: Resolution) -> bool:
    """Lock the job as it was read; whether it is paused."""
    values: dict[str, object] = {"job": resolution.job_id, "seq": resolution.seq}
    if connection.execute(_LOCK_CURSOR, values).fetchone() is None:
        raise LedgerMoved
    job = connection.execute(_LOCK_JOB, {**values, "revision": resolution.newest.revision}).fetchone()
    if job is None:
        raise LedgerMoved
    if resolution.order:
        span = {"first": min(resolution.order), "last": max(resolution.order)}
        if connection.execute(_IS_HELD, {**values, **span}).fetchone() is not None:
            raise LedgerMoved
    return bool(job[0])


def claim_values(resolution: Resolution, planned: budget.PlannedStarts, said: str) -> dict[str, Any]:
    """The new claims and the opened ones as parameters."""
    starts = dict(zip(resolution.order, planned.starts, strict=True))
    claims, opened = resolution.claims, resolution.opened
    return {
        "job": resolution.job_id,
        "revision": resolution.newest.revision,
        "said": said,
        "planned": planned,
        **rules_values(resolution.newest.firing),
        "new": {
            "ticks": arrays.instants([claim.scheduled_at for claim in claims]),
            "revisions": arrays.ints([claim.revision for claim in claims]),
            "starts": arrays.instants([starts[claim.scheduled_at] for claim in claims]),
            "earliest": arrays.instants([claim.scheduled_at + claim.jitter for claim in claims]),
            "jitter": arrays.ints([jitter_ms(claim.jitter) for claim in claims]),
        },
        "opened": {
            "ticks": arrays.instants([claim.scheduled_at for claim in opened]),
            "starts": arrays.instants([starts[claim.scheduled_at] for claim in opened]),
            "states": arrays.small_ints([int(claim.state) for claim in opened]),
            "attempts": arrays.ints([claim.attempt for claim in opened]),
        },
    }


def write_resolution(
    connection: psycopg.Connection[Any], resolution: Resolution, values: dict[str, Any]
) -> tuple[datetime, ...]:
    """Write all of it; ``values``: those of ``claim_values``, ``blocked`` and ``actor``. The first and the last start
    that were drawn from the catch-up budget, if any.

    Raises ``LedgerMoved`` where a row is not as it was read; the transaction is then to be rolled back.
    """
    arrays.register(connection)
    parts = [(_NEW_PART, new_parts(resolution)), (_FIRST_PART, first_parts(resolution))]
    with connection.cursor() as cursor:
        for statement, rows in parts:
            if rows:
                cursor.executemany(statement, [{**row, "actor": values["actor"]} for row in rows])
                _expect(cursor.rowcount, len(rows))
    planned: budget.PlannedStarts = values["planned"]
    later = planned.draw(connection)
    for statement, kind, claims in ((_CLAIM, "new", resolution.claims), (_OPEN, "opened", resolution.opened)):
        if claims:
            found = connection.execute(statement, {**values, **values[kind], "later": later}).rowcount
            _expect(found, len(claims))
    return planned.ends(later)


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise LedgerMoved
