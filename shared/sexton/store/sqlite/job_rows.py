"""Jobs as the leader reads them, on SQLite: three plain reads in one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from sexton.store.job_rows import GrowingRead, PauseRead, RevisionRead, job_rows
from sexton.store.protocol import JobRow, JobsPage, JobsRead
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.tables import from_micros

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
SELECT c.job_id, s.after, s.count FROM cursors c JOIN skips s ON s.job_id = c.job_id AND s.upto = c.at
WHERE c.job_id = ? AND s.reason = 'paused' AND s.resolved_at IS NULL ORDER BY s.after DESC LIMIT 1
"""
_ALL, _CHANGED = "", "AND j.changed > :mark"
_PAGE = "AND j.job_id > :after AND j.job_id <= :upto"
_END_OF_PAGE = """
SELECT max(job_id), count(*) FROM (SELECT job_id FROM jobs WHERE job_id > ? ORDER BY job_id LIMIT ?)
"""
_MARK = "SELECT coalesce(max(changed), 0) FROM jobs"
_THESE = "AND j.job_id IN (SELECT value FROM json_each(:job_ids))"


def load_jobs(store: SqliteConnection, changed_after: int | None) -> JobsRead:
    """``TickStore.load_jobs``."""
    with store.snapshot() as connection:
        (mark,) = connection.execute(_MARK).fetchone()
        if changed_after is None:
            return JobsRead(_read(connection, _ALL, {}), (), mark)
        if mark <= changed_after:
            return JobsRead((), (), changed_after)
        jobs = _read(connection, _CHANGED, {"mark": changed_after})
        changed = connection.execute("SELECT job_id FROM jobs WHERE changed > ? ORDER BY job_id", [changed_after])
        known = {job.job_id for job in jobs}
        return JobsRead(jobs, tuple(job_id for (job_id,) in changed if job_id not in known), mark)


def job_page(store: SqliteConnection, after: int, limit: int) -> JobsPage:
    """``TickStore.job_page``."""
    with store.snapshot() as connection:
        (mark,) = connection.execute(_MARK).fetchone()
        upto, count = connection.execute(_END_OF_PAGE, [after, limit]).fetchone()
        jobs = () if upto is None else _read(connection, _PAGE, {"after": after, "upto": upto})
    return JobsPage(jobs, upto if count == limit else None, mark)


def read_jobs(store: SqliteConnection, job_ids: Sequence[int]) -> tuple[JobRow, ...]:
    """``TickStore.read_jobs``."""
    with store.snapshot() as connection:
        return _read(connection, _THESE, {"job_ids": json.dumps(list(job_ids))})


def _read(connection: sqlite3.Connection, which: str, values: Mapping[str, object]) -> tuple[JobRow, ...]:
    revisions = [
        RevisionRead(
            job_id,
            name,
            seq,
            from_micros(at),
            paused_by,
            pause_reason,
            bool(is_quarantined),
            revision,
            schedule,
            firing,
            *_interval(since, until),
        )
        for (
            job_id,
            name,
            seq,
            at,
            paused_by,
            pause_reason,
            is_quarantined,
            revision,
            schedule,
            firing,
            since,
            until,
        ) in connection.execute(_REVISIONS.format(which=which), values)
    ]
    pauses = [
        PauseRead(job_id, *_interval(since, until), who, why)
        for job_id, since, until, who, why in connection.execute(_PAUSES.format(which=which), values)
    ]
    growing = [
        GrowingRead(job_id, from_micros(after), count)
        for paused in sorted({pause.job_id for pause in pauses})
        for job_id, after, count in connection.execute(_GROWING, [paused])
    ]
    return job_rows(revisions, pauses, growing)


def _interval(since: int, until: int | None) -> tuple[datetime, datetime | None]:
    return from_micros(since), None if until is None else from_micros(until)
