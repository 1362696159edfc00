"""Leases on SQLite: `sexton.store.postgres.leases` inside one write transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sexton.claims import State
from sexton.store.protocol import Grant, Requeued, StopRequests
from sexton.store.sqlite.completion import lateness_ms
from sexton.store.sqlite.pull import GRANT_COLUMNS, grant_of
from sexton.store.tables import from_micros

_HELD = "SELECT rowid, token, cancel_requested FROM claims WHERE state = 1 AND worker_id = ?"
_RENEW = "UPDATE claims SET lease_expires_at = ? WHERE rowid = ?"
_EXPIRED = """SELECT rowid, job_id, scheduled_at, revision, attempt, slot, token, worker_id, started_at,
  lease_expires_at, jitter_ms, at_most_once, losses, cancel_requested,
  coalesce((SELECT w.name FROM workers w WHERE w.worker_id = claims.worker_id), 'worker ' || worker_id)
 FROM claims WHERE state = 1 AND lease_expires_at < ? ORDER BY lease_expires_at LIMIT ?"""
_CANCELS = "SELECT token FROM claims WHERE state = 1 AND worker_id = ? AND cancel_requested"
_DRAIN = "SELECT 1 FROM workers WHERE worker_id = ? AND drain_requested"
_BACK = """UPDATE claims SET state = 0, losses = losses + 1, token = NULL, worker_id = NULL, granted_at = NULL,
 started_at = NULL, finished_at = NULL, lease_expires_at = NULL WHERE rowid = ?"""
_END = """UPDATE claims SET state = ?, losses = losses + 1, lease_expires_at = NULL, finished_at = ?, reason = ?
 WHERE rowid = ?"""
_KEEP_RUN = """INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, error, started_at,
 finished_at, lateness_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_FREE_SLOT = "UPDATE slots SET token = NULL WHERE slot = ? AND token = ?"
_UNKNOWN = f"""SELECT {GRANT_COLUMNS} FROM claims
 WHERE state = 1 AND worker_id = ? AND NOT (at_most_once AND started_at IS NOT NULL) ORDER BY token"""  # noqa: S608 - so


def renew(
    connection: sqlite3.Connection, worker_id: int, tokens: Sequence[int], lease_expires_at: int
) -> tuple[frozenset[int], frozenset[int]]:
    """Renew the leases of those of ``tokens`` that the worker holds; the held ones, and those asked to stop."""
    asked = frozenset(tokens)
    rows = [row for row in connection.execute(_HELD, (worker_id,)) if row[1] in asked]
    connection.executemany(_RENEW, [(lease_expires_at, rowid) for rowid, _, _ in rows])
    return frozenset(row[1] for row in rows), frozenset(row[1] for row in rows if row[2])


def stop_requests(connection: sqlite3.Connection, worker_id: int) -> StopRequests:
    """The runs of this worker that are asked to stop, and whether it is asked to drain."""
    cancel = frozenset(token for (token,) in connection.execute(_CANCELS, (worker_id,)))
    return StopRequests(cancel, connection.execute(_DRAIN, (worker_id,)).fetchone() is not None)


@dataclass(frozen=True, slots=True)
class _Lost:
    """A running claim whose lease ran out."""

    rowid: int
    job_id: int
    scheduled_at: int
    revision: int
    attempt: int
    slot: int
    token: int
    worker_id: int
    started_at: int | None
    lease_expires_at: int
    jitter_ms: int
    at_most_once: int
    losses: int
    cancel_requested: int
    worker: str

    def verdict(self, poison_after: int) -> tuple[State, str]:
        """What becomes of it, and why."""
        by = from_micros(self.lease_expires_at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        error = f"lease lost: {self.worker} did not renew it by {by}"
        if self.at_most_once and self.started_at is not None:
            return State.LOST, f"{error}; started, and on_worker_lost is fail"
        if self.losses + 1 >= poison_after:
            return State.LOST, f"{error}; {self.losses + 1} leases lost, it may be what kills workers"
        if self.cancel_requested:
            return State.CANCELLED, f"{error}; cancelled"
        return State.READY, error


def requeue(
    connection: sqlite3.Connection, now: int, limit: int, poison_after: int
) -> tuple[tuple[Requeued, ...], list[int]]:
    """Take claims from workers that let their lease run out; they, and the slots whose claim has ended."""
    requeued: list[Requeued] = []
    ended: list[int] = []
    for row in connection.execute(_EXPIRED, (now, limit)).fetchall():
        lost = _Lost(*row)
        state, error = lost.verdict(poison_after)
        if state == State.READY:
            connection.execute(_BACK, (lost.rowid,))
        else:
            connection.execute(_END, (int(state), now, error, lost.rowid))
            ended.append(lost.slot)
        run = (lost.token, lost.job_id, lost.scheduled_at, lost.attempt, lost.revision, lost.worker_id, int(state))
        lateness = lateness_ms(lost.started_at, lost.scheduled_at, lost.jitter_ms)
        connection.execute(_KEEP_RUN, (*run, error, lost.started_at, now, lateness))
        connection.execute(_FREE_SLOT, (lost.slot, lost.token))
        requeued.append(Requeued(lost.job_id, from_micros(lost.scheduled_at), lost.token, state))
    return tuple(requeued), ended


def orphans(connection: sqlite3.Connection, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
    """Running claims of this worker under other tokens, but for those that must not run twice and began."""
    known_tokens = frozenset(known)
    grants = (grant_of(row) for row in connection.execute(_UNKNOWN, (worker_id,)))
    return tuple(grant for grant in grants if grant.token not in known_tokens)
