"""The leader's ledger on SQLite: one class over the transactions of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.decisions import CommitResult, LatePlan, TickBatch, UnfinishedPass
from sexton.store.protocol import Channel, CursorsRead, JobRow, JobsPage, JobsRead, LateJobRow
from sexton.store.sqlite import job_rows, late_claims, tick_commit
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.gaps import tell_gap
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import record_event
from sexton.store.tables import from_micros

_RESERVE = "UPDATE budget SET next_at = max(next_at, ?) + ? WHERE id = 1 RETURNING next_at"

# A takeover's pass is told by its gap, a late leader's by the row, which also says whether either holds.
_UNFINISHED = """
SELECT p.is_open AND p.holds, CASE WHEN p.is_open THEN p.fired ELSE 0 END
  + (SELECT coalesce(sum(d.fired), 0) FROM decisions d JOIN takeovers t USING (term)
     WHERE t.gap_until IS NULL AND d.cause = 'takeover')
  + (SELECT coalesce(sum(d.fired), 0) FROM decisions d
     WHERE p.is_open AND d.term = p.term AND d.decided_at >= p.opened_at AND d.cause = 'late leader')
FROM race_pass p WHERE p.id = 1
"""

# A pass that is noted again, for the answer was lost, was open before: its gap is told already.
_BEFORE_NOTE = "SELECT p.is_open, coalesce(c.leader, 'leader') FROM race_pass p, cluster c WHERE p.id = 1 AND c.id = 1"
_NOTE = """
UPDATE race_pass SET is_open = 1, number = number + (NOT is_open), holds = :holds OR (is_open AND holds),
  fired = CASE WHEN is_open THEN fired ELSE 0 END, term = CASE WHEN is_open THEN term ELSE :term END,
  opened_at = CASE WHEN is_open THEN opened_at ELSE :now END
WHERE id = 1
"""

# A pass that its leader, or the race, did not live to finish was gone on with by this one: it ends with it.
_FINISH = """
UPDATE takeovers SET gap_until = :now,
  planning_ms = CASE WHEN term = :term THEN :planning_ms ELSE planning_ms END,
  jobs = CASE WHEN term = :term THEN :jobs ELSE jobs END
WHERE term <= :term AND gap_until IS NULL AND EXISTS (SELECT 1 FROM cluster WHERE id = 1 AND term = :term)
"""
_FINISH_RACE = """
UPDATE race_pass SET is_open = 0
WHERE id = 1 AND is_open AND EXISTS (SELECT 1 FROM cluster WHERE id = 1 AND term = ? AND strategy = 'leader')
"""

NEXT_CHANGE = "UPDATE counters SET value = value + 1 WHERE name = 'changes' RETURNING value"

_QUARANTINE = """
UPDATE jobs SET quarantined_at = ?, quarantine_reason = ?, changed = ?
WHERE job_id = ? AND quarantined_at IS NULL RETURNING name
"""


class SqliteTicks:
    """Implements ``TickStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def load_jobs(self, changed_after: int | None = None) -> JobsRead:
        return job_rows.load_jobs(self._connection, changed_after)

    def read_jobs(self, job_ids: Sequence[int]) -> tuple[JobRow, ...]:
        return job_rows.read_jobs(self._connection, job_ids)

    def job_page(self, after: int, limit: int) -> JobsPage:
        return job_rows.job_page(self._connection, after, limit)

    def cursor_mark(self) -> int:
        return 0

    def moved_cursors(self, since: int) -> CursorsRead:
        """All of them: SQLite keeps no number by which a row could tell when it was written."""
        with self._connection.snapshot() as connection:
            rows = connection.execute("SELECT job_id, seq, at FROM cursors").fetchall()
        return CursorsRead([(job_id, seq, from_micros(at)) for job_id, seq, at in rows], 0)

    def commit(self, batch: TickBatch) -> CommitResult:
        return tick_commit.commit(self._connection, batch)

    def reserve_budget(self, term: int, count: int, rate: float) -> datetime | None:
        span = round(count / rate * 1_000_000)
        with self._connection.transaction() as connection:
            _, may_write = tick_commit.fence(connection, term)
            if not may_write:
                return None
            ((after,),) = connection.execute(_RESERVE, [self._connection.now_micros(), span]).fetchall()
        return from_micros(after - span)

    def waiting_catch_up(self, limit: int) -> int:
        return late_claims.waiting_catch_up(self._connection, limit)

    def unfinished_pass(self) -> UnfinishedPass:
        with self._connection.snapshot() as connection:
            holds, fired = connection.execute(_UNFINISHED).fetchone()
        return UnfinishedPass(int(fired), bool(holds))

    def note_pass(self, term: int, *, holds: bool, gap_from: datetime | None = None) -> bool:
        with self._connection.transaction() as connection:
            _, may_write = tick_commit.fence(connection, term)
            if may_write:
                now = self._connection.now_micros()
                was_open, leader = connection.execute(_BEFORE_NOTE).fetchone()
                connection.execute(_NOTE, {"term": term, "holds": holds, "now": now})
                if gap_from is not None and not was_open:
                    tell_gap(connection, now, leader, term, gap_from)
        return may_write

    def finish_pass(self, term: int, planning: timedelta, jobs: int) -> None:
        planning_ms = planning / timedelta(milliseconds=1)
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            connection.execute(_FINISH, {"now": now, "term": term, "planning_ms": planning_ms, "jobs": jobs})
            connection.execute(_FINISH_RACE, [term])

    def late_jobs(self, limit: int = 100) -> tuple[LateJobRow, ...]:
        return late_claims.late_jobs(self._connection, limit)

    def decide_late(self, plan: LatePlan) -> int:
        return late_claims.decide_late(self._connection, plan) if plan.verdicts else 0

    def quarantine(self, term: int, job_id: int, reason: str) -> bool:
        with self._connection.transaction() as connection:
            _, may_write = tick_commit.fence(connection, term)
            if not may_write:
                return False
            now = self._connection.now_micros()
            ((changed,),) = connection.execute(NEXT_CHANGE).fetchall()
            put = connection.execute(_QUARANTINE, [now, reason, changed, job_id]).fetchall()
            if not put:
                return False
            detail = {"job": put[0][0], "reason": reason, "term": term}
            record_event(connection, now, "leader", "job.quarantined", detail, job_id)
            notify(self._connection, connection, Channel.JOBS)
        return True
