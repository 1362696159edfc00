"""How jobs stand before an edit: one statement a question, for all the jobs together, never one a job.

Each costs what the named jobs have ahead of now, or a fixed number of their newest rows: nothing here walks a history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Connection, Integer, Row, bindparam, select, text

from sexton.job_standing import JobStanding, NamedTick, RunsInFlight, Standings
from sexton.store import tables
from sexton.store.read_cluster import read_workers
from sexton.store.tables import Instant

_IDS_POSTGRES = "ids AS (SELECT unnest(:job_ids) AS job_id)"
_IDS_SQLITE = "ids AS (SELECT value AS job_id FROM json_each(:job_ids))"
_JOBS = """
SELECT j.job_id, CASE WHEN j.paused_at IS NOT NULL THEN coalesce(j.pause_reason, '') END AS word,
  m.applied_by AS who, m.applied_at AS at
FROM ids i JOIN jobs j ON j.job_id = i.job_id
LEFT JOIN revisions m ON m.job_id = j.job_id AND m.revision = j.revision
"""
# As an edit has it (its E): what is not ready or was granted stays, with all before it, and so does a skip record.
_AHEAD = """,
decided AS MATERIALIZED (
  SELECT i.job_id, {greatest}(:now,
    coalesce((SELECT max(c.scheduled_at) FROM claims c WHERE c.job_id = i.job_id AND c.scheduled_at > :now
      AND c.origin = 0 AND (c.state <> 0 OR c.attempt > 0)), :now),
    coalesce((SELECT s.upto FROM skips s WHERE s.job_id = i.job_id AND s.named_by IS NULL
      ORDER BY s.after DESC LIMIT 1), :now)) AS upto
  FROM ids i)
SELECT d.job_id, d.upto AS decided, count(c.job_id) AS number, max(c.scheduled_at) AS at
FROM decided d LEFT JOIN claims c ON c.job_id = d.job_id AND c.scheduled_at > d.upto AND c.origin = 0 AND c.state = 0
  AND c.attempt = 0
GROUP BY d.job_id, d.upto
"""
_NAMED = """
SELECT s.job_id, s.upto AS at, s.named_by AS who FROM ids i JOIN skips s ON s.job_id = i.job_id
WHERE s.named_by IS NOT NULL AND s.upto > :now ORDER BY s.job_id, s.upto
"""
# The order lets the index of leases serve it: by the jobs' keys, it would read all the claims they ever had.
_IN_FLIGHT = """,
running AS MATERIALIZED (
  SELECT job_id, revision, granted_at, lease_expires_at FROM claims WHERE state = 1 ORDER BY lease_expires_at)
SELECT r.job_id, r.revision AS revision, count(*) AS number, min(coalesce(r.granted_at, r.lease_expires_at)) AS at
FROM running r JOIN ids i ON i.job_id = r.job_id GROUP BY r.job_id, r.revision ORDER BY r.job_id, r.revision
"""
_PROPOSALS = """
SELECT p.job_id, count(*) AS number, sum(p.count) AS ticks FROM ids i JOIN proposals p ON p.job_id = i.job_id
WHERE p.state = 'open' GROUP BY p.job_id
"""
_NEWEST_POSTGRES = """
SELECT r.job_id, r.started_at AS since, r.finished_at AS at
FROM ids i CROSS JOIN LATERAL (
  SELECT * FROM runs WHERE runs.job_id = i.job_id ORDER BY runs.scheduled_at DESC LIMIT :runs) r
WHERE r.started_at IS NOT NULL AND r.outcome IN (3, 4, 5) ORDER BY r.job_id, r.scheduled_at DESC, r.token DESC
"""
_NEWEST_SQLITE = """
SELECT r.job_id, r.started_at AS since, r.finished_at AS at
FROM ids i JOIN runs r ON r.token IN (
  SELECT n.token FROM runs n WHERE n.job_id = i.job_id ORDER BY n.scheduled_at DESC LIMIT :runs)
WHERE r.started_at IS NOT NULL AND r.outcome IN (3, 4, 5) ORDER BY r.job_id, r.scheduled_at DESC, r.token DESC
"""
_TYPES: dict[str, Any] = {"at": Instant(), "decided": Instant(), "since": Instant()}


def read_standings(connection: Connection, now: datetime, job_ids: Sequence[int], runs: int) -> Standings:
    """How these jobs stand at ``now``; ``runs``: how many of each job's newest runs tell its usual duration."""
    workers = read_workers(connection, now)
    inputs_id = connection.execute(select(tables.cluster.c.inputs_id).where(tables.cluster.c.id == 1)).scalar() or ""
    queues = frozenset(queue for worker in workers for queue in worker.queues)
    if not job_ids:
        return Standings(now, {}, queues, len(workers), inputs_id)
    found: dict[int, dict[str, Any]] = {job_id: {} for job_id in job_ids}
    rows = _Rows(connection, job_ids, now, runs)
    for row in rows.of(_JOBS, "word", "who", "at"):
        found[row.job_id] |= {"pause_reason": row.word, "made_by": row.who, "made_at": row.at}
    for row in rows.of(_AHEAD, "decided", "number", "at"):
        of_job = found[row.job_id]
        of_job["ahead"], of_job["ahead_upto"] = row.number, row.at
        of_job["decided_upto"] = row.decided if row.decided > now else None
    for row in rows.of(_NAMED, "at", "who"):
        if row.at > (found[row.job_id].get("decided_upto") or now):
            found[row.job_id].setdefault("named", []).append(NamedTick(row.at, row.who))
    for row in rows.of(_IN_FLIGHT, "revision", "number", "at"):
        found[row.job_id].setdefault("in_flight", []).append(RunsInFlight(row.revision, row.number, row.at))
    for row in rows.of(_PROPOSALS, "number", "ticks"):
        found[row.job_id]["proposals"], found[row.job_id]["held_ticks"] = row.number, int(row.ticks)
    for job_id, durations in read_durations(connection, now, job_ids, runs).items():
        found[job_id]["durations"] = durations
    standings = {job_id: _standing(job_id, values) for job_id, values in found.items()}
    return Standings(now, standings, queues, len(workers), inputs_id)


def read_durations(
    connection: Connection, now: datetime, job_ids: Sequence[int], runs: int
) -> dict[int, list[timedelta]]:
    """How long the newest ``runs`` runs of each of these jobs took, newest first; those that have none are left out."""
    if not job_ids:
        return {}
    found: dict[int, list[timedelta]] = {}
    rows = _Rows(connection, job_ids, now, runs)
    for row in rows.of(_NEWEST_SQLITE if rows.is_sqlite else _NEWEST_POSTGRES, "since", "at"):
        found.setdefault(row.job_id, []).append(max(row.at - row.since, timedelta(0)))
    return found


def _standing(job_id: int, values: dict[str, Any]) -> JobStanding:
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return JobStanding(job_id, **{**values, **lists})


class _Rows:
    """Rows of a statement over ``ids``, in either database's spelling."""

    def __init__(self, connection: Connection, job_ids: Sequence[int], now: datetime, runs: int) -> None:
        self._connection = connection
        self.is_sqlite = connection.dialect.name == "sqlite"
        self._values = {
            "job_ids": json.dumps(list(job_ids)) if self.is_sqlite else list(job_ids),
            "now": now,
            "runs": runs,
        }

    def of(self, statement: str, *columns: str) -> Iterable[Row[Any]]:
        """The rows, with ``job_id`` and these columns."""
        ids = _IDS_SQLITE if self.is_sqlite else _IDS_POSTGRES
        statement = statement.replace("{greatest}", "max" if self.is_sqlite else "greatest")
        types = {"job_ids": None if self.is_sqlite else ARRAY(BigInteger()), "now": Instant(), "runs": Integer()}
        used = {name: type_ for name, type_ in types.items() if name == "job_ids" or f":{name}" in statement}
        query = text(f"WITH {ids}{statement}").bindparams(
            *(bindparam(name, type_=type_) for name, type_ in used.items())
        )
        typed = {name: _TYPES[name] for name in columns if name in _TYPES}
        return self._connection.execute(query.columns(**typed), {name: self._values[name] for name in used}).all()
