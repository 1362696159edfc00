"""Answers to proposals on PostgreSQL: `PostgresHolds` implements `protocol.HoldStore`.

One transaction, in the order in which edits lock: the job's row (a pause, a retirement or another slot of the job comes
before or after, never between), then the proposal, by the compare-and-set that decides who answers, then claims. The
claims are written in a statement of their own, which sees what was held until the proposal was locked; housekeeping,
which extends a proposal by claims, finds it closed and makes another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg

from sexton.claims import OnWorkerLost
from sexton.hold_views import HoldAnswer
from sexton.holds import ProposalState
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
from sexton.store.postgres import arrays, budget
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.protocol.holds import Approval

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_LOCK_JOB = """
SELECT j.job_id, j.name, j.paused_at IS NOT NULL FROM proposals p JOIN jobs j ON j.job_id = p.job_id
WHERE p.proposal_id = %s FOR SHARE OF j
"""
_ANSWER = """
UPDATE proposals SET state = %(state)s, answered_at = clock_timestamp(), answered_by = %(actor)s, note = %(note)s,
  approved = %(approved)s, approved_from = %(first)s, approved_upto = %(last)s
WHERE proposal_id = %(id)s AND state = 'open'
"""
_AS_READ = "AND count = %(count)s AND upto = %(upto)s"
_IS_DUE = "AND lapses_at <= clock_timestamp() AND NOT (SELECT halted FROM cluster WHERE id = 1)"
_RETURNING = "RETURNING after, count, answered_at"
_WINNER = "SELECT state, count, approved, answered_at, answered_by, note FROM proposals WHERE proposal_id = %s"
# Claims of a proposal that is not a gap's: all of the job's that are held.
_REOPEN = """
UPDATE claims c SET state = 0, origin = 2, available_at = t.available_at + %(later)s::interval, start_by = NULL,
  finished_at = NULL, reason = NULL, blocked = %(blocked)s, slot = coalesce(j.slot, j.job_id)
FROM unnest(%(ticks)s::timestamptz[], %(available)s::timestamptz[]) t(scheduled_at, available_at), jobs j
WHERE j.job_id = %(job)s AND c.job_id = %(job)s AND c.scheduled_at = t.scheduled_at AND c.state = 11
"""
_CLOSE = """
UPDATE claims SET state = 8, finished_at = clock_timestamp(), reason = %(reason)s WHERE job_id = %(job)s AND state = 11
"""
_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, blocked,
  at_most_once, jitter_ms, term, written_at)
SELECT j.job_id, t.scheduled_at, p.revision, 2, %(queue)s, %(priority)s, %(overlap)s, coalesce(j.slot, j.job_id),
  t.available_at + %(later)s::interval, %(blocked)s, %(once)s, t.jitter_ms, c.term, clock_timestamp()
FROM unnest(%(ticks)s::timestamptz[], %(available)s::timestamptz[], %(jitter)s::integer[])
    t(scheduled_at, available_at, jitter_ms), jobs j, proposals p, cluster c
WHERE j.job_id = %(job)s AND p.proposal_id = %(id)s AND c.id = 1
ON CONFLICT DO NOTHING
"""
# A gap's record, or one part of it; resolved where its ticks run after all. Further parts are copies made before.
_RECORD = """
UPDATE skips SET detail = detail || '; ' || %(said)s, upto = coalesce(%(upto)s::timestamptz, upto),
  count = coalesce(%(count)s::bigint, count), resolved_at = %(resolved_at)s, resolved_by = %(resolved_by)s
WHERE job_id = %(job)s AND after = %(record)s AND reason = 'held' AND resolved_at IS NULL
"""
_FURTHER_PART = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, resolved_at, resolved_by)
SELECT job_id, %(after)s::timestamptz, %(upto)s::timestamptz, %(count)s::bigint, reason,
  detail || '; ' || %(said)s, revision, term, decided_at, %(resolved_at)s::timestamptz, %(resolved_by)s::text
FROM skips WHERE job_id = %(job)s AND after = %(record)s AND reason = 'held' AND resolved_at IS NULL
"""
_IS_GAP = f"SELECT {IS_GAP.format('p')} FROM proposals p WHERE p.proposal_id = %s"  # noqa: S608 - a constant
_DUE = """
SELECT proposal_id FROM proposals WHERE state = 'open' AND lapses_at <= clock_timestamp()
  AND NOT (SELECT halted FROM cluster WHERE id = 1) ORDER BY lapses_at LIMIT %s
"""
_EVENT = "INSERT INTO events (at, actor, action, job_id, detail) VALUES (clock_timestamp(), %s, %s, %s, %s)"
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class _Won:
    """The proposal that this transaction has answered."""

    job_id: int
    job: str
    is_paused: bool
    after: datetime
    count: int
    answered_at: datetime


class PostgresHolds:
    """Implements ``HoldStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def approve(self, approval: Approval, actor: str) -> HoldAnswer:
        planned = budget.planned(self._connection, len(approval.ticks))
        values = _claim_values(approval, planned.starts)  # packed before any lock is held
        return self._retrying(lambda: self._approve(approval, actor, planned, values))

    def reject(
        self, proposal_id: int, actor: str, note: str = "", mark: tuple[int, datetime] | None = None
    ) -> HoldAnswer:
        answer = Answer(proposal_id, ProposalState.REJECTED, actor, note)
        if mark is not None:
            answer = replace(answer, condition=_AS_READ, values={"count": mark[0], "upto": mark[1]})
        return self._retrying(lambda: self._close(answer))

    def lapse(self, limit: int = 100) -> tuple[HoldAnswer, ...]:
        with self._connection.autocommit() as connection:
            due = [row[0] for row in connection.execute(_DUE, [limit])]
        lapsed = []
        for proposal_id in due:
            answer = Answer(proposal_id, ProposalState.LAPSED, LAPSED_BY, "", _IS_DUE)
            lapsed.append(self._retrying(partial(self._close, answer)))
        return tuple(answer for answer in lapsed if answer.is_done)

    # --- inside -------------------------------------------------------------------------------------

    def _approve(
        self, approval: Approval, actor: str, planned: budget.PlannedStarts, values: dict[str, object]
    ) -> HoldAnswer:
        count, upto = approval.mark
        first, last = ends(approval.ticks)
        seen = {"approved": len(approval.ticks), "first": first, "last": last, "count": count, "upto": upto}
        answer = Answer(approval.proposal_id, ProposalState.APPROVED, actor, approval.note, _AS_READ, seen)
        with self._connection.transaction(LIMITS) as connection:
            won = _answer(connection, answer)
            if isinstance(won, HoldAnswer):
                return won
            arrays.register(connection)
            later = planned.draw(connection)
            of_job = {"id": approval.proposal_id, "job": won.job_id, "blocked": won.is_paused, "later": later}
            connection.execute(_CLAIM if approval.parts else _REOPEN, {**values, **of_job})
            rest = said_of_rest(actor, approval.note, len(approval.ticks), count)
            if approval.parts:
                _cut(connection, approval, answer, won, rest)
            else:
                connection.execute(_CLOSE, {"job": won.job_id, "reason": f"held, and {rest}"})
            detail = answer_detail(approval.proposal_id, won.job, count, approval.note, approval.ticks)
            connection.execute(_EVENT, [actor, action_of(answer.state), won.job_id, _json(detail)])
            connection.execute("SELECT pg_notify('sexton_work', '')")
        first_start, last_start = planned.ends(later)
        return replace(_done(answer, won, len(approval.ticks)), first_start=first_start, last_start=last_start)

    def _close(self, answer: Answer) -> HoldAnswer:
        with self._connection.transaction(LIMITS) as connection:
            won = _answer(connection, answer)
            if isinstance(won, HoldAnswer):
                return won
            (is_gap,) = connection.execute(_IS_GAP, [answer.proposal_id]).fetchone() or (False,)
            told = said(answer.state, answer.actor, answer.note)
            if is_gap:
                connection.execute(_RECORD, {**_unresolved(won, told), "upto": None, "count": None})
            else:
                connection.execute(_CLOSE, {"job": won.job_id, "reason": f"held, and {told}"})
            detail = answer_detail(answer.proposal_id, won.job, won.count, answer.note)
            connection.execute(_EVENT, [answer.actor, action_of(answer.state), won.job_id, _json(detail)])
        return _done(answer, won, 0)

    def _retrying(self, attempt: Callable[[], HoldAnswer]) -> HoldAnswer:
        return self._connection.retrying(attempt, "answering this proposal")


def _answer(connection: psycopg.Connection[Any], answer: Answer) -> _Won | HoldAnswer:
    """The compare-and-set; where it is lost, the proposal as another left it. Raises ``NotFound``."""
    job = connection.execute(_LOCK_JOB, [answer.proposal_id]).fetchone()
    if job is None:
        raise no_proposal(answer.proposal_id)
    job_id, name, is_paused = job
    values = {"id": answer.proposal_id, "state": answer.state.value, "actor": answer.actor, "note": answer.note or None}
    none = {"approved": 0, "first": None, "last": None}
    statement = f"{_ANSWER} {answer.condition} {_RETURNING}".encode()
    row = connection.execute(statement, {**values, **none, **answer.values}).fetchone()
    if row is not None:
        return _Won(job_id, name, is_paused, *row)
    state, *rest = connection.execute(_WINNER, [answer.proposal_id]).fetchone() or ("open", 0, 0, None, None, None)
    return HoldAnswer(answer.proposal_id, job_id, name, False, ProposalState(state), *rest)


def _cut(connection: psycopg.Connection[Any], approval: Approval, answer: Answer, won: _Won, rest: str) -> None:
    """The gap's skip record in parts: resolved where its ticks run after all, and the others say why not."""
    resolved = {
        "said": said(answer.state, answer.actor, approval.note),
        "resolved_at": won.answered_at,
        "resolved_by": answer.actor,
    }
    of_part = [
        {
            **_unresolved(won, rest),
            "after": part.after,
            "upto": part.upto,
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


def _done(answer: Answer, won: _Won, approved: int) -> HoldAnswer:
    return HoldAnswer(
        proposal_id=answer.proposal_id,
        job_id=won.job_id,
        job=won.job,
        is_done=True,
        state=answer.state,
        count=won.count,
        approved=approved,
        answered_at=won.answered_at,
        answered_by=answer.actor,
        note=answer.note or None,
        is_paused=won.is_paused,
    )


def _claim_values(approval: Approval, starts: Sequence[datetime]) -> dict[str, object]:
    firing = approval.firing
    return {
        "ticks": arrays.instants([tick.scheduled_at for tick in approval.ticks]),
        "available": arrays.instants(starts),
        "jitter": arrays.ints([tick.jitter // _MILLISECOND for tick in approval.ticks]),
        "queue": firing.queue,
        "priority": firing.priority,
        "overlap": int(firing.overlap),
        "once": firing.on_worker_lost is OnWorkerLost.FAIL,
    }


def _json(detail: object) -> str:
    return json.dumps(detail, ensure_ascii=False)
