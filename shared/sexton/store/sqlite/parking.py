"""What waits on slots on SQLite: `sexton.store.postgres.parking` inside one write transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sexton.job_rules import QUEUE_LIMIT
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.tables import from_micros

_WAITING = "state = 2 AND origin = 0 AND attempt = 0 AND NOT blocked"
_SLOTS = f"SELECT DISTINCT slot FROM claims WHERE {_WAITING} ORDER BY slot"  # noqa: S608 - built from constants
_QUEUED, _REPLACING = (
    f"""SELECT rowid, job_id, scheduled_at FROM claims WHERE slot = ? AND overlap = {overlap} AND {_WAITING}
    ORDER BY scheduled_at DESC, job_id DESC"""  # noqa: S608 - built from constants
    for overlap in (2, 3)
)
_QUEUE_LIMIT = """SELECT r.firing ->> '$.queue_limit' FROM jobs j
 JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE j.job_id = ?"""
_SKIP = "UPDATE claims SET state = 8, finished_at = ?, reason = ? WHERE rowid = ?"
_IS_FREE = "SELECT 1 FROM slots WHERE slot = ? AND token IS NULL"
_HOLDERS = """SELECT c.token, c.cancel_requested, c.rowid FROM claims c WHERE c.state = 1 AND c.token IN
 (SELECT token FROM slots WHERE slot = ?) ORDER BY c.token"""
_ASK = "UPDATE claims SET cancel_requested = 1, reason = ? WHERE rowid = ?"


def settle(
    store: SqliteConnection, connection: sqlite3.Connection, now: int, slots: Iterable[int] | None = None
) -> None:
    """Apply `queue_limit` and `replace` on these slots, or wherever ticks wait."""
    if slots is None:
        slots = [slot for (slot,) in connection.execute(_SLOTS)]
    is_halted = connection.execute("SELECT 1 FROM cluster WHERE halted").fetchone() is not None
    for slot in sorted(slots):
        _limit_queue(connection, now, slot)
        newest, *older = connection.execute(_REPLACING, (slot,)).fetchall() or (None,)
        if newest is None:
            continue
        tick = _tick(connection, slot, newest)
        for rowid, _, _ in older:
            reason = f"overlap replace: the newer tick of {tick} waits in its place"
            connection.execute(_SKIP, (now, reason, rowid))
        if is_halted or connection.execute(_IS_FREE, (slot,)).fetchone():
            continue
        holders = connection.execute(_HOLDERS, (slot,)).fetchall()
        if holders and not any(is_asked for _, is_asked, _ in holders):
            reason = f"overlap replace: asked to stop for the tick of {tick}"
            connection.execute(_ASK, (reason, holders[0][2]))
            notify(store, connection, Channel.STOPS)


def _limit_queue(connection: sqlite3.Connection, now: int, slot: int) -> None:
    limits: dict[int, int] = {}
    for newer, (rowid, job_id, _) in enumerate(connection.execute(_QUEUED, (slot,)).fetchall()):
        if job_id not in limits:
            (limit,) = connection.execute(_QUEUE_LIMIT, (job_id,)).fetchone() or (None,)
            limits[job_id] = QUEUE_LIMIT if limit is None else limit
        if newer >= limits[job_id]:
            reason = f"overlap queue: {newer} newer ticks wait for its slot, and queue_limit is {limits[job_id]}"
            connection.execute(_SKIP, (now, reason, rowid))


def _tick(connection: sqlite3.Connection, slot: int, claim: tuple[int, int, int]) -> str:
    """The tick of a claim; where the slot is that of a key, with its job's name."""
    _, job_id, scheduled_at = claim
    at = from_micros(scheduled_at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    row = connection.execute("SELECT name FROM jobs WHERE job_id = ?", (job_id,)).fetchone() if slot < 0 else None
    return at if row is None else f"{row[0]} at {at}"
