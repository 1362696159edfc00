"""Claims that no worker took within ``start_within``, on SQLite: read per job, decided together or not at all."""

from __future__ import annotations

import json
import sqlite3

from sexton.claims import State
from sexton.decisions import LatePlan, NewProposal
from sexton.store.hold_rules import IS_GAP, OPENED_ANEW
from sexton.store.late_claims import ENDED_JOBS, WAITING, ended_job, late_job_rows, late_state
from sexton.store.protocol import Channel, LateJobRow
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.job_rows import read_jobs
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.races import count_fired, is_within
from sexton.store.sqlite.tick_commit import EXPLAIN, PROPOSE, SOON, decision_values, fence, proposal_values
from sexton.store.tables import from_micros, to_micros

# The inner limit bounds the scan where one job alone has very many late claims.
_LATE_JOBS = """
SELECT DISTINCT job_id FROM (
  SELECT job_id FROM claims WHERE state = 0 AND start_by IS NOT NULL AND start_by < :now AND NOT blocked
  ORDER BY start_by LIMIT 20000) late
ORDER BY job_id LIMIT :limit
"""
_IS_LATE = "state = 0 AND attempt = 0 AND NOT blocked AND (start_by < :now OR (origin = 1 AND start_by IS NULL))"
_LATE_CLAIMS = f"""
SELECT job_id, scheduled_at, origin, jitter_ms, revision FROM claims
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) AND {_IS_LATE} ORDER BY job_id, scheduled_at
"""  # noqa: S608 - the part is a constant
_REVISION = """
SELECT job_id, revision, schedule, firing, in_force_since, in_force_until FROM revisions
WHERE job_id = ? AND revision = ?
"""
_ENDED = f"{ENDED_JOBS} AND j.job_id IN (SELECT value FROM json_each(:job_ids))"  # noqa: S608 - the part is a constant
_CURSOR = "SELECT 1 FROM cursors WHERE job_id = ? AND seq = ?"
_STILL_LATE = f"SELECT 1 FROM claims WHERE job_id = :job_id AND scheduled_at = :tick AND {_IS_LATE}"  # noqa: S608 - so
_FIRE = """
UPDATE claims SET start_by = NULL, origin = :origin, available_at = coalesce(:available, available_at), reason = :reason
WHERE job_id = :job_id AND scheduled_at = :tick
"""
_END = """
UPDATE claims SET state = :state, start_by = NULL, finished_at = :now, reason = :reason
WHERE job_id = :job_id AND scheduled_at = :tick
"""
# The job's open proposal of such claims, never that of a gap, whose ticks its skip record says.
_EXTEND = f"""
UPDATE proposals SET upto = max(upto, ?), count = count + ?, after = min(after, ?), lapses_at = max(lapses_at, ?)
WHERE proposal_id = (
  SELECT max(q.proposal_id) FROM proposals q WHERE q.job_id = ? AND q.state = 'open' AND NOT {IS_GAP.format("q")})
"""  # noqa: S608 - the part is a constant
_PROPOSE = f"{PROPOSE.partition('ON CONFLICT')[0]} ON CONFLICT (job_id, after) DO UPDATE SET {OPENED_ANEW}"


def waiting_catch_up(store: SqliteConnection, limit: int) -> int:
    """``TickStore.waiting_catch_up``."""
    with store.snapshot() as connection:
        ((found,),) = connection.execute(WAITING.format("?"), [limit]).fetchall()
    return int(found)


def late_jobs(store: SqliteConnection, limit: int) -> tuple[LateJobRow, ...]:
    """``TickStore.late_jobs``."""
    now = store.now_micros()
    with store.snapshot() as connection:
        job_ids = [row[0] for row in connection.execute(_LATE_JOBS, {"now": now, "limit": limit})]
        if not job_ids:
            return ()
        found = connection.execute(_LATE_CLAIMS, {"now": now, "job_ids": json.dumps(job_ids)})
        claims = [(job_id, from_micros(tick), *rest) for job_id, tick, *rest in found]
        newest = {claim[0]: claim[4] for claim in claims}
        revisions = [
            (*row[:4], from_micros(row[4]), None if row[5] is None else from_micros(row[5]))
            for pair in newest.items()
            for row in connection.execute(_REVISION, pair)
        ]
        ended = connection.execute(_ENDED, {"job_ids": json.dumps(list(newest))}).fetchall()
    jobs = {job_id: ended_job(job_id, name, seq, from_micros(at)) for job_id, name, seq, at in ended}
    jobs.update((job.job_id, job) for job in read_jobs(store, list(newest)))
    return late_job_rows(claims, revisions, jobs)


def decide_late(store: SqliteConnection, plan: LatePlan) -> int:
    """``TickStore.decide_late``."""
    with store.transaction() as connection:
        now = store.now()
        _, may_write = fence(connection, plan.term)
        if not may_write or connection.execute(_CURSOR, [plan.job_id, plan.seq]).fetchone() is None:
            return 0
        values = [
            {
                "job_id": plan.job_id,
                "tick": to_micros(verdict.scheduled_at),
                "now": to_micros(now),
                "state": int(late_state(verdict)),
                "origin": int(verdict.origin),
                "available": None if verdict.available_at is None else to_micros(verdict.available_at),
                "reason": plan.decision.reason,
            }
            for verdict in plan.verdicts
        ]
        if not all(connection.execute(_STILL_LATE, one).fetchone() for one in values):
            return 0
        if plan.share is not None:
            if not is_within(connection, plan.share):
                return 0
            count_fired(connection, plan.share, plan.share.fires)
        for one in values:
            connection.execute(_FIRE if one["state"] == State.READY else _END, one)
        if plan.proposal is not None:
            _propose(connection, plan.proposal, plan.term, to_micros(now))
        connection.execute(EXPLAIN, decision_values(plan.decision, plan.term, to_micros(now)))
        fires = [verdict for verdict in plan.verdicts if late_state(verdict) is State.READY]
        if any(verdict.available_at is None or verdict.available_at < now + SOON for verdict in fires):
            notify(store, connection, Channel.WORK)
    return len(values)


def _propose(connection: sqlite3.Connection, proposal: NewProposal, term: int, now: int) -> None:
    ends = [to_micros(proposal.upto), proposal.count, to_micros(proposal.after), to_micros(proposal.lapses_at)]
    if connection.execute(_EXTEND, [*ends, proposal.job_id]).rowcount == 0:
        connection.execute(_PROPOSE, proposal_values(proposal, term, now))
