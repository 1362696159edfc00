"""Answers to proposals on SQLite: `sexton.store.postgres.holds` in one write transaction."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sexton.claims import OnWorkerLost
from sexton.hold_views import HoldAnswer
from sexton.holds import ProposalState, start_at
from sexton.settings import settings_from_rows
from sexton.store.hold_rules import (
    IS_GAP,
    LAPSED_BY,
    Answer,
    action_of,
    answer_detail,
    ends,
    no_proposal,
    said,
    said_of_rest,
)
from sexton.store.protocol import Channel
from sexton.store.protocol.holds import Approval
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import record_event
from sexton.store.tables import from_micros, to_micros

_JOB = """
SELECT j.job_id, j.name, j.paused_at IS NOT NULL FROM proposals p JOIN jobs j ON j.job_id = p.job_id
WHERE p.proposal_id = ?
"""
_ANSWER = """
UPDATE proposals SET state = :state, answered_at = :now, answered_by = :actor, note = :note, approved = :approved,
  approved_from = :first, approved_upto = :last
WHERE proposal_id = :id AND state = 'open'
"""
_AS_READ = "AND count = :count AND upto = :upto"
_IS_DUE = "AND lapses_at <= :now AND NOT (SELECT halted FROM cluster WHERE id = 1)"
_RETURNING = "RETURNING after, count"
_WINNER = "SELECT state, count, approved, answered_at, answered_by, note FROM proposals WHERE proposal_id = ?"
_DRAW = "UPDATE budget SET next_at = max(next_at, ?) + ? WHERE id = 1 RETURNING next_at"
# `ticks`: a JSON list of [tick, jitter in ms], in the order of their starts.
_START = "(:first_start + CAST(round(t.key * 1000000 / :rate) AS INTEGER))"
# Claims of a proposal that is not a gap's: all of the job's that are held.
_REOPEN = f"""
UPDATE claims SET state = 0, origin = 2, available_at = {_START}, start_by = NULL, finished_at = NULL, reason = NULL,
  blocked = :blocked, slot = (SELECT coalesce(j.slot, j.job_id) FROM jobs j WHERE j.job_id = :job)
FROM json_each(:ticks) t
WHERE claims.job_id = :job AND claims.scheduled_at = t.value ->> 0 AND claims.state = 11
"""  # noqa: S608 - the part is a constant
_CLOSE = "UPDATE claims SET state = 8, finished_at = ?, reason = ? WHERE job_id = ? AND state = 11"
_CLAIM = f"""
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, blocked,
  at_most_once, jitter_ms, term, written_at)
SELECT j.job_id, t.value ->> 0, p.revision, 2, :queue, :priority, :overlap, coalesce(j.slot, j.job_id), {_START},
  :blocked, :once, t.value ->> 1, c.term, :now
FROM json_each(:ticks) t, jobs j, proposals p, cluster c WHERE j.job_id = :job AND p.proposal_id = :id AND c.id = 1
ON CONFLICT DO NOTHING
"""  # noqa: S608 - the part is a constant
# A gap's record, or one part of it; resolved where its ticks run after all. Further parts are copies made before.
_RECORD = """
UPDATE skips SET detail = detail || '; ' || :said, upto = coalesce(:upto, upto), count = coalesce(:count, count),
  resolved_at = :resolved_at, resolved_by = :resolved_by
WHERE job_id = :job AND after = :record AND reason = 'held' AND resolved_at IS NULL
"""
_FURTHER_PART = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, resolved_at, resolved_by)
SELECT job_id, :after, :upto, :count, reason, detail || '; ' || :said, revision, term, decided_at, :resolved_at,
  :resolved_by
FROM skips WHERE job_id = :job AND after = :record AND reason = 'held' AND resolved_at IS NULL
"""
_IS_GAP = f"SELECT {IS_GAP.format('p')} FROM proposals p WHERE p.proposal_id = ?"  # noqa: S608 - a constant
_DUE = """
SELECT proposal_id FROM proposals WHERE state = 'open' AND lapses_at <= ?
  AND NOT (SELECT halted FROM cluster WHERE id = 1) ORDER BY lapses_at LIMIT ?
"""
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class _Won:
    """The proposal that this transaction has answered; instants in microseconds."""

    job_id: int
    job: str
    is_paused: bool
    after: int
    count: int


class SqliteHolds:
    """Implements ``HoldStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def approve(self, approval: Approval, actor: str) -> HoldAnswer:
        count, upto = approval.mark
        first, last = ends(approval.ticks)
        seen: dict[str, object] = {"approved": len(approval.ticks), "first": to_micros(first), "last": to_micros(last)}
        seen |= {"count": count, "upto": to_micros(upto)}
        answer = Answer(approval.proposal_id, ProposalState.APPROVED, actor, approval.note, _AS_READ, seen)
        values = _claim_values(approval)  # written before the one write lock is held, for which all others wait
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            won = _answer(connection, answer, now)
            if isinstance(won, HoldAnswer):
                return won
            start, rate = _draw(connection, len(approval.ticks), now)
            of_job = {"id": approval.proposal_id, "job": won.job_id, "blocked": won.is_paused, "now": now}
            starts = {"first_start": to_micros(start), "rate": rate}
            connection.execute(_CLAIM if approval.parts else _REOPEN, {**values, **of_job, **starts})
            rest = said_of_rest(actor, approval.note, len(approval.ticks), count)
            if approval.parts:
                _cut(connection, approval, answer, won, rest, now)
            else:
                connection.execute(_CLOSE, [now, f"held, and {rest}", won.job_id])
            detail = answer_detail(approval.proposal_id, won.job, count, approval.note, approval.ticks)
            record_event(connection, now, actor, action_of(answer.state), detail, won.job_id)
            notify(self._connection, connection, Channel.WORK)
        done = _done(answer, won, len(approval.ticks), now)
        return replace(done, first_start=start, last_start=start_at(start, len(approval.ticks) - 1, rate))

    def reject(
        self, proposal_id: int, actor: str, note: str = "", mark: tuple[int, datetime] | None = None
    ) -> HoldAnswer:
        answer = Answer(proposal_id, ProposalState.REJECTED, actor, note)
        if mark is not None:
            answer = replace(answer, condition=_AS_READ, values={"count": mark[0], "upto": to_micros(mark[1])})
        return self._close(answer)

    def lapse(self, limit: int = 100) -> tuple[HoldAnswer, ...]:
        with self._connection.snapshot() as connection:
            rows = connection.execute(_DUE, [self._connection.now_micros(), limit]).fetchall()
        answers = [self._close(Answer(row[0], ProposalState.LAPSED, LAPSED_BY, "", _IS_DUE)) for row in rows]
        return tuple(answer for answer in answers if answer.is_done)

    def _close(self, answer: Answer) -> HoldAnswer:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            won = _answer(connection, answer, now)
            if isinstance(won, HoldAnswer):
                return won
            (is_gap,) = connection.execute(_IS_GAP, [answer.proposal_id]).fetchone()
            told = said(answer.state, answer.actor, answer.note)
            if is_gap:
                connection.execute(_RECORD, {**_unresolved(won, told), "upto": None, "count": None})
            else:
                connection.execute(_CLOSE, [now, f"held, and {told}", won.job_id])
            detail = answer_detail(answer.proposal_id, won.job, won.count, answer.note)
            record_event(connection, now, answer.actor, action_of(answer.state), detail, won.job_id)
        return _done(answer, won, 0, now)


def _answer(connection: sqlite3.Connection, answer: Answer, now: int) -> _Won | HoldAnswer:
    """The compare-and-set; where it is lost, the proposal as another left it. Raises ``NotFound``."""
    job = connection.execute(_JOB, [answer.proposal_id]).fetchone()
    if job is None:
        raise no_proposal(answer.proposal_id)
    job_id, name, is_paused = job
    values = {"id": answer.proposal_id, "state": answer.state.value, "actor": answer.actor, "note": answer.note or None}
    none = {"approved": 0, "first": None, "last": None, "now": now}
    statement = f"{_ANSWER} {answer.condition} {_RETURNING}"
    found = connection.execute(statement, {**values, **none, **answer.values}).fetchall()
    if found:
        return _Won(job_id, name, bool(is_paused), *found[0])
    state, count, approved, answered_at, by, note = connection.execute(_WINNER, [answer.proposal_id]).fetchone()
    at = None if answered_at is None else from_micros(answered_at)
    return HoldAnswer(answer.proposal_id, job_id, name, False, ProposalState(state), count, approved, at, by, note)


def _draw(connection: sqlite3.Connection, count: int, now: int) -> tuple[datetime, float]:
    """The first of so many starts of the catch-up budget, drawn in this transaction, and the starts a second."""
    rate = settings_from_rows(dict(connection.execute("SELECT key, value FROM settings").fetchall())).catch_up_rate
    span = round(count / rate * 1_000_000)
    ((after,),) = connection.execute(_DRAW, [now, span]).fetchall()
    return from_micros(after - span), rate


def _claim_values(approval: Approval) -> dict[str, object]:
    firing = approval.firing
    return {
        "ticks": json.dumps([[to_micros(tick.scheduled_at), tick.jitter // _MILLISECOND] for tick in approval.ticks]),
        "queue": firing.queue,
        "priority": firing.priority,
        "overlap": int(firing.overlap),
        "once": firing.on_worker_lost is OnWorkerLost.FAIL,
    }


def _cut(connection: sqlite3.Connection, approval: Approval, answer: Answer, won: _Won, rest: str, now: int) -> None:
    """The gap's skip record in parts: resolved where its ticks run after all, and the others say why not."""
    resolved = {
        "said": said(answer.state, answer.actor, approval.note),
        "resolved_at": now,
        "resolved_by": answer.actor,
    }
    of_part = [
        {
            **_unresolved(won, rest),
            "after": to_micros(part.after),
            "upto": to_micros(part.upto),
            "count": part.count,
            **(resolved if part.is_approved else {}),
        }
        for part in approval.parts
    ]
    for values in of_part[1:]:
        connection.execute(_FURTHER_PART, values)
    connection.execute(_RECORD, of_part[0])


def _unresolved(won: _Won, told: str) -> dict[str, object]:
    return {"job": won.job_id, "record": won.after, "said": told, "resolved_at": None, "resolved_by": None}


def _done(answer: Answer, won: _Won, approved: int, now: int) -> HoldAnswer:
    return HoldAnswer(
        proposal_id=answer.proposal_id,
        job_id=won.job_id,
        job=won.job,
        is_done=True,
        state=answer.state,
        count=won.count,
        approved=approved,
        answered_at=from_micros(now),
        answered_by=answer.actor,
        note=answer.note or None,
        is_paused=won.is_paused,
    )
