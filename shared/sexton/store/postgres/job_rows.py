"""Jobs as the leader reads them, on PostgreSQL: three plain reads in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from sexton.store.job_rows import GrowingRead, PauseRead, RevisionRead, job_rows
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.protocol import JobRow, JobsRead

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_REVISIONS = """
SELECT j.job_id, j.name, c.seq, c.at, j.paused_by, j.pause_reason, j.quarantined_at IS NOT NULL,
       r.revision, r.schedule, r.firing, r.in_force_since, r.in_force_until
FROM jobs j JOIN cursors c ON c.job_id = j.job_id JOIN revisions r ON r.job_id = j.job_id
WHERE (r.in_force_until IS NULL OR r.in_force_until > c.at) {which}
ORDER BY j.job_id, r.revision
"""
_PAUSES = """
SELECT p.job_id, p.since, p.until FROM pauses p JOIN jobs j ON j.job_id = p.job_id JOIN cursors c ON c.job_id = p.job_id
WHERE (p.until IS NULL OR p.until > c.at) {which}
ORDER BY p.job_id, p.since
"""
_GROWING = """
SELECT c.job_id, s.after, s.count
FROM cursors c CROSS JOIN LATERAL
  (SELECT * FROM skips s WHERE s.job_id = c.job_id AND s.after < c.at ORDER BY s.after DESC LIMIT 1) s
WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND s.upto = c.at AND s.reason = 'paused' AND s.resolved_at IS NULL
"""
_ALL, _CHANGED, _THESE = "", "AND j.changed > %(mark)s", "AND j.job_id = ANY (%(job_ids)s::bigint[])"
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
