"""What operators do to claims and workers, on SQLite: `sexton.store.postgres.operations` in one write transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

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
from sexton.store.protocol import Channel
from sexton.store.protocol.grants import RunResult
from sexton.store.protocol.operations import DrainAsked, Rerun, StopOutcome, StoppedClaim, WorkerChoice
from sexton.store.sqlite.completion import promote
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.refusals import note_refused
from sexton.store.sqlite.terms import record_event
from sexton.store.tables import from_micros, to_micros

_CLAIMS = "SELECT scheduled_at, state, cancel_requested, token, attempt, slot FROM claims WHERE job_id = ? AND "
_OF_JOB = _CLAIMS + "state IN (0, 1, 2) AND (state = 1 OR NOT ?) AND scheduled_at <= ? ORDER BY scheduled_at"
_AMONG = "AND scheduled_at > ? AND (? IS NULL OR scheduled_at IN (SELECT value FROM json_each(?))) "
_PART = _OF_JOB.replace("ORDER BY", _AMONG + "ORDER BY") + " LIMIT ?"
_ONE = _CLAIMS + "scheduled_at = ?"
_CANCEL = """UPDATE claims SET state = 7, finished_at = ?, reason = ?, start_by = NULL, blocked = 0
 WHERE job_id = ? AND scheduled_at = ?"""
_ASK = "UPDATE claims SET cancel_requested = 1, reason = ? WHERE job_id = ? AND scheduled_at = ?"
_ENDED = """SELECT c.state, c.revision, c.attempt, c.origin, j.name, j.retired_at IS NOT NULL, j.paused_at IS NOT NULL
 FROM claims c JOIN jobs j ON j.job_id = c.job_id WHERE c.job_id = ? AND c.scheduled_at = ?"""
_RERUN = """UPDATE claims SET state = 0, start_by = NULL, retries = 0, losses = 0,
 available_at = max(?, scheduled_at + 1000 * jitter_ms), attempt = max(attempt, 1),
 overlap = CASE WHEN overlap = 0 AND j.slot IS NULL THEN 0 ELSE 2 END, slot = coalesce(j.slot, j.job_id), token = NULL,
 worker_id = NULL, granted_at = NULL, lease_expires_at = NULL, started_at = NULL, finished_at = NULL,
 cancel_requested = 0, reason = NULL, blocked = ?
 FROM jobs j WHERE j.job_id = claims.job_id AND claims.job_id = ? AND scheduled_at = ?"""
_POISONED = """SELECT job_id, name FROM jobs WHERE job_id = ?1 AND paused_at IS NULL AND retired_at IS NULL AND 2 = (
 SELECT count(*) FROM (SELECT state, losses FROM claims WHERE job_id = ?1 AND state IN (3, 4, 5, 6, 7)
  ORDER BY scheduled_at DESC LIMIT 2) WHERE state = 6 AND losses >= ?2)"""
_DRAIN = """UPDATE workers SET drain_requested = :asked
 WHERE worker_id = :worker AND drain_requested <> :asked AND (job_format >= :format OR NOT :asked)
  AND (:since IS NULL OR NOT EXISTS (SELECT 1 FROM events e WHERE e.event_id > :since
    AND e.action IN ('workers.asked_to_drain', 'workers.drain_taken_back')
    AND (json_array_length(e.detail, '$.workers') >= :told
     OR workers.name IN (SELECT value FROM json_each(e.detail, '$.workers')))))"""
_WORKERS = """SELECT worker_id, name, version, queues, drain_requested, job_format FROM workers
 WHERE stopped_at IS NULL AND seen_at > ? ORDER BY name, worker_id"""


class SqliteOperations:
    """Implements ``OperationStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

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
        which = int(running_only), None if among is None else json.dumps([to_micros(at) for at in among])
        stopped, slots = self._cancel(job_id, actor, reason, tick, which, None, set())
        met = len(stopped)
        while tick is None and met == CANCELLED_AT_ONCE:
            after = stopped[-1].scheduled_at
            part, slots = self._cancel(job_id, actor, reason, None, which, after, slots)
            met = len(part)
            stopped += part
        return tuple(stopped)

    def _cancel(
        self,
        job_id: int,
        actor: str,
        reason: str,
        tick: datetime | None,
        which: tuple[int, str | None],
        after: datetime | None,
        slots: set[int],
    ) -> tuple[list[StoppedClaim], set[int]]:
        """The next of the claims ``after`` an instant, and the ``slots`` where cancelled ones waited, earlier parts'
        included."""
        with self._connection.transaction() as connection:
            name, now = _job_name(connection, job_id), self._connection.now_micros()
            if tick is None:
                first = -1 if after is None else to_micros(after)
                values = (job_id, which[0], now, first, which[1], which[1], CANCELLED_AT_ONCE)
                rows = connection.execute(_PART, values).fetchall()
            else:
                rows = connection.execute(_ONE, (job_id, to_micros(tick))).fetchall()
                if not rows:
                    raise no_claim(name, tick, from_micros(now))
            stopped = []
            for at, state, is_asked, token, attempt, slot in rows:
                outcome = stop_outcome(State(state), bool(is_asked))
                reason_text = stop_reason(outcome, actor, reason)
                if outcome is StopOutcome.CANCELLED:
                    connection.execute(_CANCEL, (now, reason_text, job_id, at))
                    slots = slots | {slot}
                elif outcome is StopOutcome.ASKED:
                    connection.execute(_ASK, (reason_text, job_id, at))
                stopped.append(StoppedClaim(from_micros(at), State(state), outcome, token, attempt))
            if slots and (tick is not None or len(rows) < CANCELLED_AT_ONCE):
                # A claim that was promoted and had not taken its slot yet: the next one may.
                promote(connection, now, slots, all_free=True)
                notify(self._connection, connection, Channel.WORK)
            if any(one.outcome is StopOutcome.ASKED for one in stopped):
                notify(self._connection, connection, Channel.STOPS)
            detail = cancel_detail(name, stopped, reason)
            if detail is not None:
                record_event(connection, now, actor, "job.cancelled", detail, job_id)
        return stopped, slots

    def states(self, job_id: int, ticks: Sequence[datetime] | None = None) -> dict[datetime, State]:
        with self._connection.snapshot() as connection:
            if ticks is None:
                rows = connection.execute(_OF_JOB, (job_id, 0, self._connection.now_micros())).fetchall()
            else:
                asked = [(job_id, to_micros(tick)) for tick in ticks]
                rows = [row for one in asked for row in connection.execute(_ONE, one)]
        return {from_micros(row[0]): State(row[1]) for row in rows}

    def rerun(self, job_id: int, tick: datetime, actor: str, reason: str) -> Rerun:
        at = to_micros(tick)
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            row = connection.execute(_ENDED, (job_id, at)).fetchone()
            if row is None:
                raise no_claim(_job_name(connection, job_id), tick, from_micros(now))
            was, revision, attempt, origin, name, is_retired, is_paused = row
            check_rerun(name, tick, State(was), bool(is_retired))
            is_blocked = bool(is_paused) and origin != 4
            connection.execute(_RERUN, (now, int(is_blocked), job_id, at))
            detail: dict[str, object] = {"job": name, "scheduled_at": instant_text(tick)}
            detail |= {"was": State(was).word, "reason": reason}
            record_event(connection, now, actor, "job.rerun", detail, job_id)
            notify(self._connection, connection, Channel.WORK)
        return Rerun(tick, State(was), revision, max(attempt, 1), is_blocked)

    def poisoned(self, job_ids: Sequence[int], losses: int = 3) -> tuple[tuple[int, str], ...]:
        found: list[tuple[int, str]] = []
        with self._connection.snapshot() as connection:
            for job_id in sorted(job_ids):
                found += connection.execute(_POISONED, (job_id, losses)).fetchall()
        return tuple(found)

    def note_refused(self, worker_id: int, results: Sequence[RunResult]) -> int:
        return note_refused(self._connection, worker_id, results)

    def drain(
        self, choice: WorkerChoice, actor: str, *, asked: bool = True, since: int | None = None
    ) -> tuple[DrainAsked, ...]:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            rows = connection.execute(_WORKERS, (to_micros(from_micros(now) - HEARD_WITHIN),)).fetchall()
            chosen = [row for row in rows if is_chosen(choice, row[1], row[2], row[3])]
            values = {"asked": int(asked), "format": POOL_FORMAT, "since": since, "told": TOLD}
            changed = {row[0] for row in chosen if connection.execute(_DRAIN, {**values, "worker": row[0]}).rowcount}
            event = None
            if changed:
                detail = drain_detail(choice, [row[1] for row in chosen if row[0] in changed])
                record_event(connection, now, actor, drain_action(asked), detail)
                (event,) = connection.execute("SELECT max(event_id) FROM events").fetchone()
                notify(self._connection, connection, Channel.STOPS)
        return tuple(
            DrainAsked(key, name, key in changed, has_format >= POOL_FORMAT, event if key in changed else None)
            for key, name, *_, has_format in chosen
        )


def _job_name(connection: sqlite3.Connection, job_id: int) -> str:
    row = connection.execute("SELECT name FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no job with id {job_id}", hint="`sexton jobs` lists what there is")
    return str(row[0])
