"""The leader's ledger on PostgreSQL: one class over the statements of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.decisions import CommitResult, LatePlan, TickBatch, UnfinishedPass
from sexton.store.postgres import job_rows, late_claims, tick_commit
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_writes import CHANGES_LOCK
from sexton.store.postgres.gaps import GAP_TOLD, HAS_GAP, TELL_GAP
from sexton.store.protocol import CursorsRead, JobRow, JobsPage, JobsRead, LateJobRow
from sexton.terms import gap_told

_RESERVE = f"""
WITH {tick_commit.FENCE}
UPDATE budget SET next_at = greatest(next_at, clock_timestamp()) + %(span)s::interval
WHERE id = 1 AND {tick_commit.MAY_WRITE} RETURNING next_at - %(span)s::interval
"""  # noqa: S608 - the parts are constants

# A takeover's pass is told by its gap, a late leader's by the row, which also says whether either holds.
_UNFINISHED = """
SELECT p.is_open AND p.holds, CASE WHEN p.is_open THEN p.fired ELSE 0 END
  + (SELECT coalesce(sum(d.fired), 0)::bigint FROM decisions d JOIN takeovers t USING (term)
     WHERE t.gap_until IS NULL AND d.cause = 'takeover')
  + (SELECT coalesce(sum(d.fired), 0)::bigint FROM decisions d
     WHERE p.is_open AND d.term = p.term AND d.decided_at >= p.opened_at AND d.cause = 'late leader')
FROM race_pass p WHERE p.id = 1
"""

# A pass that is noted again, for the answer was lost, was open before: its gap is told already.
_NOTE = f"""
WITH {tick_commit.FENCE},
 before AS MATERIALIZED (SELECT is_open FROM race_pass WHERE id = 1),
 noted AS (
  UPDATE race_pass SET is_open = true, number = number + (NOT is_open)::int, holds = %(holds)s OR (is_open AND holds),
    fired = CASE WHEN is_open THEN fired ELSE 0 END, term = CASE WHEN is_open THEN term ELSE %(term)s END,
    opened_at = CASE WHEN is_open THEN opened_at ELSE clock_timestamp() END
  WHERE id = 1 AND {tick_commit.MAY_WRITE} RETURNING opened_at),
 told AS (
  {TELL_GAP} SELECT n.opened_at, coalesce(c.leader, 'leader'), {GAP_TOLD}
  FROM noted n, cluster c, before b WHERE c.id = 1 AND NOT b.is_open AND {HAS_GAP})
SELECT 1 FROM noted
"""  # noqa: S608 - the parts are constants

# A pass that its leader, or the race, did not live to finish was gone on with by this one: it ends with it.
_FINISH = """
WITH race_too AS (UPDATE race_pass SET is_open = false WHERE id = 1 AND is_open
  AND EXISTS (SELECT 1 FROM cluster WHERE id = 1 AND term = %(term)s AND strategy = 'leader'))
UPDATE takeovers SET gap_until = statement_timestamp(),
  planning_ms = CASE WHEN term = %(term)s THEN %(planning_ms)s ELSE planning_ms END,
  jobs = CASE WHEN term = %(term)s THEN %(jobs)s ELSE jobs END
WHERE term <= %(term)s AND gap_until IS NULL AND EXISTS (SELECT 1 FROM cluster WHERE id = 1 AND term = %(term)s)
"""

# The number is drawn under the lock that all who number changes hold until they commit (postgres/edit_writes.py).
_QUARANTINE = f"""
WITH {tick_commit.FENCE},
 turn AS MATERIALIZED (SELECT 1 AS mine FROM (SELECT pg_advisory_xact_lock(%(lock)s)) l WHERE {tick_commit.MAY_WRITE}),
 put AS (
  UPDATE jobs SET quarantined_at = clock_timestamp(), quarantine_reason = %(reason)s, changed = nextval('changes')
  FROM turn WHERE job_id = %(job_id)s AND quarantined_at IS NULL AND turn.mine = 1 RETURNING job_id, name),
 told AS (
  INSERT INTO events (at, actor, action, job_id, detail)
  SELECT clock_timestamp(), 'leader', 'job.quarantined', job_id,
    jsonb_build_object('job', name, 'reason', %(reason)s::text, 'term', %(term)s::bigint)::text FROM put)
SELECT pg_notify('sexton_jobs', '') FROM put
"""  # noqa: S608 - the parts are constants


class PostgresTicks:
    """Implements ``TickStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def load_jobs(self, changed_after: int | None = None) -> JobsRead:
        return job_rows.load_jobs(self._connection, changed_after)

    def read_jobs(self, job_ids: Sequence[int]) -> tuple[JobRow, ...]:
        return job_rows.read_jobs(self._connection, job_ids)

    def job_page(self, after: int, limit: int) -> JobsPage:
        return job_rows.job_page(self._connection, after, limit)

    def cursor_mark(self) -> int:
        return job_rows.cursor_mark(self._connection)

    def moved_cursors(self, since: int) -> CursorsRead:
        return job_rows.moved_cursors(self._connection, since)

    def commit(self, batch: TickBatch) -> CommitResult:
        return tick_commit.commit(self._connection, batch)

    def reserve_budget(self, term: int, count: int, rate: float) -> datetime | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_RESERVE, {"term": term, "span": timedelta(seconds=count / rate)}).fetchone()
        first: datetime | None = None if row is None else row[0]
        return first

    def waiting_catch_up(self, limit: int) -> int:
        return late_claims.waiting_catch_up(self._connection, limit)

    def unfinished_pass(self) -> UnfinishedPass:
        with self._connection.autocommit() as connection:
            holds, fired = connection.execute(_UNFINISHED).fetchone() or (False, 0)
        return UnfinishedPass(int(fired), holds)

    def note_pass(self, term: int, *, holds: bool, gap_from: datetime | None = None) -> bool:
        values = {"term": term, "holds": holds, "gap_from": None if gap_from is None else gap_told(gap_from)}
        with self._connection.autocommit() as connection:
            return connection.execute(_NOTE, values).rowcount == 1

    def finish_pass(self, term: int, planning: timedelta, jobs: int) -> None:
        values = {"term": term, "planning_ms": planning / timedelta(milliseconds=1), "jobs": jobs}
        with self._connection.autocommit() as connection:
            connection.execute(_FINISH, values)

    def late_jobs(self, limit: int = 100) -> tuple[LateJobRow, ...]:
        return late_claims.late_jobs(self._connection, limit)

    def decide_late(self, plan: LatePlan) -> int:
        return late_claims.decide_late(self._connection, plan)

    def quarantine(self, term: int, job_id: int, reason: str) -> bool:
        values = {"term": term, "job_id": job_id, "reason": reason, "lock": CHANGES_LOCK}
        with self._connection.autocommit() as connection:
            return connection.execute(_QUARANTINE, values).rowcount == 1
