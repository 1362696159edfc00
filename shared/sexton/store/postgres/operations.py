"""What operators do to claims and workers, on PostgreSQL: `PostgresOperations` implements `protocol.OperationStore`.

The claims are locked first, in the order of their ticks. Whoever pulls or completes one of them meanwhile was before,
and the lock returns what it made of the claim, or comes after, and finds what was decided here. A rerun locks the job
before its claim: the claim comes back to those that edits choose by their state. Very many are cancelled in parts: the
server ends a transaction in whose middle this process computes for two seconds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from sexton.claims import State
from sexton.errors import NotFound
from sexton.job_formats import POOL_FORMAT
from sexton.store.operation_rules import (
    CANCELLED_AT_ONCE,
    HEARD_WITHIN,
    TOLD,
    cancel_detail,
    check_rerun,
    drain_action,
    drain_detail,
    instant_text,
    is_chosen,
    no_claim,
    stop_outcome,
    stop_reason,
)
from sexton.store.postgres import completion
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.postgres.refusals import note_refused
from sexton.store.protocol.grants import RunResult
from sexton.store.protocol.operations import DrainAsked, Rerun, StopOutcome, StoppedClaim, WorkerChoice

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_FIRST = datetime.min.replace(tzinfo=UTC)
_LOCK_JOB = """
SELECT scheduled_at, state, cancel_requested, token, attempt FROM claims
WHERE job_id = %(job)s AND state = ANY (%(states)s::smallint[]) AND scheduled_at <= statement_timestamp()
  AND scheduled_at > %(after)s
  AND (%(among)s::timestamptz[] IS NULL OR scheduled_at = ANY (%(among)s::timestamptz[]))
ORDER BY scheduled_at LIMIT %(most)s FOR UPDATE
"""
_LOCK_ONE = """
SELECT scheduled_at, state, cancel_requested, token, attempt FROM claims
WHERE job_id = %(job)s AND scheduled_at = %(tick)s FOR UPDATE
"""
_CANCEL = """
UPDATE claims SET state = 7, finished_at = statement_timestamp(), reason = %(reason)s, start_by = NULL, blocked = false
WHERE job_id = %(job)s AND scheduled_at = ANY (%(ticks)s::timestamptz[]) AND state IN (0, 2) RETURNING slot
"""
_ASK = """
UPDATE claims SET cancel_requested = true, reason = %(reason)s
WHERE job_id = %(job)s AND scheduled_at = ANY (%(ticks)s::timestamptz[]) AND state = 1 RETURNING slot
"""
_STATES = "SELECT scheduled_at, state FROM claims WHERE job_id = %s AND scheduled_at = ANY (%s::timestamptz[])"
_UNENDED = """
SELECT scheduled_at, state FROM claims
WHERE job_id = %s AND state IN (0, 1, 2) AND scheduled_at <= statement_timestamp() ORDER BY scheduled_at
"""
_JOB = "SELECT name, statement_timestamp() FROM jobs WHERE job_id = %s"
# The job's row before its claim, as edits lock them: an edit that moves, blocks or ends the job's claims sees this one,
# or this one what the edit made of the job.
_LOCK_JOB_ROW = """
SELECT name, retired_at IS NOT NULL, paused_at IS NOT NULL, statement_timestamp() FROM jobs WHERE job_id = %s FOR SHARE
"""
_LOCK_ENDED = """
SELECT state, revision, attempt, origin FROM claims WHERE job_id = %s AND scheduled_at = %s FOR UPDATE
"""
# A tick that was cancelled ahead of its time waits for it. Paused claims wait for the end of the pause, as those that
# are written meanwhile. A tick that nobody ever ran counts as granted once: what was granted before is neither decided
# as late nor swept from a full queue. What ran under `allow` takes a slot once its job has a concurrency key, as one
# that waited would.
_RERUN = """
UPDATE claims c SET state = 0, start_by = NULL, retries = 0, losses = 0,
  available_at = greatest(statement_timestamp(), c.scheduled_at + c.jitter_ms * interval '1 ms'),
  attempt = greatest(c.attempt, 1), overlap = CASE WHEN c.overlap = 0 AND j.slot IS NULL THEN 0 ELSE 2 END,
  slot = coalesce(j.slot, j.job_id), token = NULL, worker_id = NULL, granted_at = NULL, lease_expires_at = NULL,
  started_at = NULL, finished_at = NULL, cancel_requested = false, reason = NULL,
  blocked = j.paused_at IS NOT NULL AND c.origin <> 4
FROM jobs j WHERE j.job_id = c.job_id AND c.job_id = %s AND c.scheduled_at = %s
"""
_POISONED = """
SELECT j.job_id, j.name FROM jobs j CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE state = 6 AND losses >= %(losses)s) AS lost FROM (
   SELECT state, losses FROM claims c WHERE c.job_id = j.job_id AND state IN (3, 4, 5, 6, 7)
   ORDER BY scheduled_at DESC LIMIT 2) newest) n
WHERE j.job_id = ANY (%(jobs)s::bigint[]) AND n.lost = 2 AND j.paused_at IS NULL AND j.retired_at IS NULL
ORDER BY j.job_id
"""
_WORKERS = """
SELECT worker_id, name, version, queues, job_format FROM workers
WHERE stopped_at IS NULL AND seen_at > statement_timestamp() - %s ORDER BY name, worker_id
"""
# A statement of its own, so that the next one sees the events of whoever had the rows before.
_LOCK_WORKERS = """
SELECT count(*) FROM (
  SELECT 1 FROM workers WHERE worker_id = ANY (%(workers)s::bigint[]) ORDER BY worker_id FOR UPDATE) locked
"""
_DRAIN = """
UPDATE workers w SET drain_requested = %(asked)s
WHERE w.worker_id = ANY (%(workers)s::bigint[]) AND w.stopped_at IS NULL AND w.drain_requested <> %(asked)s
  AND (w.job_format >= %(format)s OR NOT %(asked)s)
  AND (%(since)s::bigint IS NULL OR NOT EXISTS (
    SELECT 1 FROM events e WHERE e.event_id > %(since)s::bigint
      AND e.action IN ('workers.asked_to_drain', 'workers.drain_taken_back')
      AND (jsonb_array_length(e.detail::jsonb -> 'workers') >= %(told)s OR e.detail::jsonb -> 'workers' ? w.name)))
RETURNING w.worker_id
"""
_EVENT = """
INSERT INTO events (at, actor, action, job_id, detail) VALUES (clock_timestamp(), %s, %s, %s, %s)
"""
_NUMBERED_EVENT = _EVENT + "RETURNING event_id"
_NOTIFY_STOPS = "SELECT pg_notify('sexton_stops', '')"
_NOTIFY_WORK = "SELECT pg_notify('sexton_work', '')"


class _Ask(NamedTuple):
    """A part of a request to cancel: claims ``after`` an instant; ``slots``: where those of earlier parts waited."""

    job_id: int
    actor: str
    reason: str
    running_only: bool
    among: tuple[datetime, ...] | None = None
    after: datetime = _FIRST
    slots: frozenset[int] = frozenset()

    def values(self) -> dict[str, object]:
        states = [State.RUNNING] if self.running_only else [State.READY, State.RUNNING, State.PARKED]
        numbers = [int(state) for state in states]
        among = None if self.among is None else list(self.among)
        return {"job": self.job_id, "states": numbers, "after": self.after, "among": among, "most": CANCELLED_AT_ONCE}


class _Part(NamedTuple):
    stopped: tuple[StoppedClaim, ...]
    slots: frozenset[int]


class PostgresOperations:
    """Implements ``OperationStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    # --- cancel -------------------------------------------------------------------------------------

    def cancel(
        self,
        job_id: int,
        actor: str,
        reason: str,
        tick: datetime | None = None,
        *,
        running_only: bool = False,
        among: Collection[datetime] | None = None,
    ) -> tuple[StoppedClaim, ...]:
        ask = _Ask(job_id, actor, reason, running_only, None if among is None else tuple(among))
        if tick is not None:
            return self._part(ask, tick).stopped
        stopped: list[StoppedClaim] = []
        part = _Part((), frozenset())
        while True:
            after = stopped[-1].scheduled_at if stopped else _FIRST
            part = self._part(ask._replace(after=after, slots=part.slots))
            stopped += part.stopped
            if len(part.stopped) < CANCELLED_AT_ONCE:
                return tuple(stopped)

    def _part(self, ask: _Ask, tick: datetime | None = None) -> _Part:
        return self._connection.retrying(lambda: self._cancel(ask, tick), "cancelling these runs")

    def _cancel(self, ask: _Ask, tick: datetime | None) -> _Part:
        with self._connection.transaction(LIMITS) as connection:
            name, now = _job(connection, ask.job_id)
            if tick is not None:
                rows = connection.execute(_LOCK_ONE, {"job": ask.job_id, "tick": tick}).fetchall()
                if not rows:
                    raise no_claim(name, tick, now)
            else:
                rows = connection.execute(_LOCK_JOB, ask.values()).fetchall()
            stopped = tuple(
                StoppedClaim(at, State(state), stop_outcome(State(state), is_asked), token, attempt)
                for at, state, is_asked, token, attempt in rows
            )
            ended = _write(connection, _CANCEL, ask, stopped, StopOutcome.CANCELLED)
            asked = _write(connection, _ASK, ask, stopped, StopOutcome.ASKED)
            slots = ask.slots | ended
            if slots and (tick is not None or len(rows) < CANCELLED_AT_ONCE):
                # A claim that was promoted and had not taken its slot yet: the next one may, once no more of the job
                # are to be cancelled.
                completion.promote_slots(connection, sorted(slots))
                connection.execute(_NOTIFY_WORK)
            if asked:
                connection.execute(_NOTIFY_STOPS)
            detail = cancel_detail(name, stopped, ask.reason)
            if detail is not None:
                connection.execute(_EVENT, [ask.actor, "job.cancelled", ask.job_id, _json(detail)])
        return _Part(stopped, slots)

    def states(self, job_id: int, ticks: Sequence[datetime] | None = None) -> dict[datetime, State]:
        with self._connection.autocommit() as connection:
            if ticks is None:
                rows = connection.execute(_UNENDED, [job_id]).fetchall()
            else:
                rows = connection.execute(_STATES, [job_id, list(ticks)]).fetchall()
        return {at: State(state) for at, state in rows}

    # --- rerun --------------------------------------------------------------------------------------

    def rerun(self, job_id: int, tick: datetime, actor: str, reason: str) -> Rerun:
        return self._connection.retrying(lambda: self._rerun(job_id, tick, actor, reason), "running this tick again")

    def _rerun(self, job_id: int, tick: datetime, actor: str, reason: str) -> Rerun:
        with self._connection.transaction(LIMITS) as connection:
            job = connection.execute(_LOCK_JOB_ROW, [job_id]).fetchone()
            if job is None:
                raise _no_job(job_id)
            name, is_retired, is_paused, now = job
            row = connection.execute(_LOCK_ENDED, [job_id, tick]).fetchone()
            if row is None:
                raise no_claim(name, tick, now)
            was, revision, attempt, origin = row
            check_rerun(name, tick, State(was), is_retired)
            connection.execute(_RERUN, [job_id, tick])
            detail = {"job": name, "scheduled_at": instant_text(tick), "was": State(was).word, "reason": reason}
            connection.execute(_EVENT, [actor, "job.rerun", job_id, _json(detail)])
            connection.execute(_NOTIFY_WORK)
        return Rerun(tick, State(was), revision, max(attempt, 1), is_paused and origin != 4)

    # --- poison -------------------------------------------------------------------------------------

    def poisoned(self, job_ids: Sequence[int], losses: int = 3) -> tuple[tuple[int, str], ...]:
        with self._connection.autocommit() as connection:
            rows = connection.execute(_POISONED, {"jobs": sorted(job_ids), "losses": losses}).fetchall()
        return tuple((job_id, name) for job_id, name in rows)

    # --- drain --------------------------------------------------------------------------------------

    def note_refused(self, worker_id: int, results: Sequence[RunResult]) -> int:
        return note_refused(self._connection, worker_id, results)

    def drain(
        self, choice: WorkerChoice, actor: str, *, asked: bool = True, since: int | None = None
    ) -> tuple[DrainAsked, ...]:
        with self._connection.transaction(LIMITS) as connection:
            rows = connection.execute(_WORKERS, [HEARD_WITHIN]).fetchall()
            chosen = {row[0]: row[1] for row in rows if is_chosen(choice, row[1], row[2], row[3])}
            heeding = {row[0] for row in rows if row[4] >= POOL_FORMAT}
            values = {"workers": list(chosen), "asked": asked, "format": POOL_FORMAT, "since": since, "told": TOLD}
            connection.execute(_LOCK_WORKERS, values)
            changed = {row[0] for row in connection.execute(_DRAIN, values).fetchall()}
            event = None
            if changed:
                detail = drain_detail(choice, [name for key, name in chosen.items() if key in changed])
                told = [actor, drain_action(asked), None, _json(detail)]
                ((event,),) = connection.execute(_NUMBERED_EVENT, told).fetchall()
                connection.execute(_NOTIFY_STOPS)
        return tuple(
            DrainAsked(key, name, key in changed, key in heeding, event if key in changed else None)
            for key, name in chosen.items()
        )


def _write(
    connection: psycopg.Connection[Any],
    statement: str,
    ask: _Ask,
    stopped: Sequence[StoppedClaim],
    outcome: StopOutcome,
) -> frozenset[int]:
    """Write what becomes of the claims of this outcome; their slots."""
    ticks = [one.scheduled_at for one in stopped if one.outcome is outcome]
    if not ticks:
        return frozenset()
    said = stop_reason(outcome, ask.actor, ask.reason)
    rows = connection.execute(statement, {"job": ask.job_id, "ticks": ticks, "reason": said}).fetchall()
    return frozenset(slot for (slot,) in rows)


def _job(connection: psycopg.Connection[Any], job_id: int) -> tuple[str, datetime]:
    row = connection.execute(_JOB, [job_id]).fetchone()
    if row is None:
        raise _no_job(job_id)
    return row[0], row[1]


def _no_job(job_id: int) -> NotFound:
    return NotFound(f"there is no job with id {job_id}", hint="`sexton jobs` lists what there is")


def _json(detail: object) -> str:
    return json.dumps(detail, ensure_ascii=False)
