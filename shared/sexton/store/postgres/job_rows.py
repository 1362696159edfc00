"""Jobs as the leader reads them, on PostgreSQL: three plain reads in one snapshot; and the cursors that have moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from sexton.store.job_rows import GrowingRead, PauseRead, RevisionRead, job_rows
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.protocol import CursorsRead, JobRow, JobsPage, JobsRead

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_REVISIONS = """
SELECT j.job_id, j.name, c.seq, c.at, j.paused_by, j.pause_reason, j.quarantined_at IS NOT NULL,
       r.revision, r.schedule, r.firing, r.in_force_since, r.in_force_until
FROM jobs j JOIN cursors c ON c.job_id = j.job_id JOIN revisions r ON r.job_id = j.job_id
WHERE (r.in_force_until IS NULL OR r.in_force_until > c.at) {which}
ORDER BY j.job_id, r.revision
"""
_PAUSES = """
SELECT p.job_id, p.since, p.until, p.who, p.why
FROM pauses p JOIN jobs j ON j.job_id = p.job_id JOIN cursors c ON c.job_id = p.job_id
WHERE (p.until IS NULL OR p.until > c.at) {which}
ORDER BY p.job_id, p.since
"""
_GROWING = """
SELECT c.job_id, s.after, s.count
FROM cursors c CROSS JOIN LATERAL
  (SELECT * FROM skips s WHERE s.job_id = c.job_id AND s.after < c.at ORDER BY s.after DESC LIMIT 1) s
WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND s.upto = c.at AND s.reason = 'paused' AND s.resolved_at IS NULL
"""
# age() counts back from the newest transaction: it compares across the wrap of the 32 bits that a row keeps.
_MOVED = """
SELECT job_id, seq, at FROM cursors
WHERE age(xmin) <= age(%(since)s::text::xid8::xid) OR %(since)s > %(mark)s
"""
_ALL, _CHANGED, _THESE = "", "AND j.changed > %(mark)s", "AND j.job_id = ANY (%(job_ids)s::bigint[])"
_PAGE = "AND j.job_id > %(after)s AND j.job_id <= %(upto)s"
_END_OF_PAGE = """
SELECT max(job_id), count(*) FROM (SELECT job_id FROM jobs WHERE job_id > %(after)s ORDER BY job_id LIMIT %(limit)s) p
"""
_MARK = "SELECT coalesce(max(changed), 0) FROM jobs"
_CHANGED_IDS = "SELECT job_id FROM jobs WHERE changed > %(mark)s ORDER BY job_id"


def load_jobs(store: PostgresConnection, changed_after: int | None) -> JobsRead:
    """``TickStore.load_jobs``."""
    with store.transaction(_SNAPSHOT) as connection:
        (mark,) = connection.execute(_MARK).fetchone() or (0,)
        if changed_after is None:
            return JobsRead(_read(connection, _ALL, {}), (), mark)
        if mark <= changed_after:
            return JobsRead((), (), changed_after)
        values = {"mark": changed_after}
        jobs = _read(connection, _CHANGED, values)
        changed = [row[0] for row in connection.execute(_CHANGED_IDS, values)]
    known = {job.job_id for job in jobs}
    return JobsRead(jobs, tuple(job_id for job_id in changed if job_id not in known), mark)


def job_page(store: PostgresConnection, after: int, limit: int) -> JobsPage:
    """``TickStore.job_page``."""
    with store.transaction(_SNAPSHOT) as connection:
        (mark,) = connection.execute(_MARK).fetchone() or (0,)
        (upto, count) = connection.execute(_END_OF_PAGE, {"after": after, "limit": limit}).fetchone() or (None, 0)
        jobs = () if upto is None else _read(connection, _PAGE, {"after": after, "upto": upto})
    return JobsPage(jobs, upto if count == limit else None, mark)


def cursor_mark(store: PostgresConnection) -> int:
    """``TickStore.cursor_mark``: every transaction before it has ended, so that its writes are to be seen."""
    with store.autocommit() as connection:
        (mark,) = connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").fetchone() or (0,)
    return int(mark)


def moved_cursors(store: PostgresConnection, since: int) -> CursorsRead:
    """``TickStore.moved_cursors``: rows whose writing transaction is not older than the mark's.

    A whole scan, which costs little beside sending all rows; a server whose numbers have gone back sends all.
    """
    mark = cursor_mark(store)
    with store.autocommit() as connection:
        rows = connection.execute(_MOVED, {"since": since, "mark": mark}, binary=True).fetchall()
    return CursorsRead(rows, mark)


def read_jobs(store: PostgresConnection, job_ids: Sequence[int]) -> tuple[JobRow, ...]:
    """``TickStore.read_jobs``."""
    with store.transaction(_SNAPSHOT) as connection:
        return _read(connection, _THESE, {"job_ids": list(job_ids)})


def _read(connection: psycopg.Connection[Any], which: str, values: Mapping[str, object]) -> tuple[JobRow, ...]:
    revisions = connection.execute(_REVISIONS.format(which=which).encode(), values, binary=True).fetchall()
    pauses = connection.execute(_PAUSES.format(which=which).encode(), values, binary=True).fetchall()
    paused = sorted({row[0] for row in pauses})
    growing = connection.execute(_GROWING, {"job_ids": paused}).fetchall() if paused else []
    return job_rows(
        [RevisionRead(*row) for row in revisions],
        [PauseRead(*row) for row in pauses],
        [GrowingRead(*row) for row in growing],
    )
