"""What waits on slots on SQLite: `sexton.store.postgres.parking` inside one write transaction, and without turns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sexton.job_rules import QUEUE_LIMIT
from sexton.store.protocol import Channel
from sexton.store.slot_groups import COUNTED_BY_A_STEP
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.tables import from_micros

_AT_ONCE = 1000  # so many ticks of a slot end in a step or sweep
_WAITING = "state = 2 AND origin = 0 AND attempt = 0 AND NOT blocked"
_FROM = "FROM claims INDEXED BY claims_waiting"
# Every slot on which a tick waits, by one probe of the index for each.
_SLOTS = f"""WITH RECURSIVE w(slot) AS (
  SELECT (SELECT slot {_FROM} WHERE {_WAITING} ORDER BY slot LIMIT 1)
  UNION ALL
  SELECT (SELECT slot {_FROM} WHERE {_WAITING} AND slot > w.slot ORDER BY slot LIMIT 1) FROM w WHERE w.slot IS NOT NULL)
SELECT slot FROM w WHERE slot IS NOT NULL"""  # noqa: S608 - built from constants
_NEWEST_FIRST = "ORDER BY scheduled_at DESC, job_id DESC"
_QUEUED = f"{_FROM} WHERE slot = ? AND overlap = 2 AND {_WAITING}"
_EDGE = f"SELECT scheduled_at, job_id {_QUEUED} {_NEWEST_FIRST} LIMIT 1 OFFSET ?"
_FROM_EDGE_ON = f"""SELECT rowid, job_id {_QUEUED} AND scheduled_at <= ?
 AND (scheduled_at, job_id) <= (?, ?) {_NEWEST_FIRST}"""
_REPLACING = f"""SELECT rowid, job_id, scheduled_at {_FROM} WHERE slot = ? AND overlap = 3 AND {_WAITING}
 {_NEWEST_FIRST}"""
_LIMIT = f"""SELECT min(coalesce(r.firing ->> '$.queue_limit', {QUEUE_LIMIT})) FROM jobs j
 JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE"""  # noqa: S608 - built from constants
_LIMIT_OF_JOB, _LEAST_OF_GROUP = f"{_LIMIT} j.job_id = ?", f"{_LIMIT} j.slot = ? AND j.retired_at IS NULL"
_SKIP = "UPDATE claims SET state = 8, finished_at = ?, reason = ? WHERE rowid = ?"
_IS_FREE = "SELECT 1 FROM slots WHERE slot = ? AND token IS NULL"
_HOLDERS = """SELECT c.token, c.cancel_requested, c.rowid FROM claims c WHERE c.state = 1 AND c.token IN
 (SELECT token FROM slots WHERE slot = ?) ORDER BY c.token"""
_ASK = "UPDATE claims SET cancel_requested = 1, reason = ? WHERE rowid = ?"


def settle(
    store: SqliteConnection, connection: sqlite3.Connection, now: int, slots: Iterable[int] | None = None
) -> None:
    """Apply `queue_limit` and `replace` on these slots, or wherever ticks wait."""
    furthest: int | None = COUNTED_BY_A_STEP
    if slots is None:
        furthest = None
        slots = [slot for (slot,) in connection.execute(_SLOTS)]
    is_halted = connection.execute("SELECT 1 FROM cluster WHERE halted").fetchone() is not None
    for slot in sorted(slots):
        _limit_queue(connection, now, slot, furthest)
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


def _limit_queue(connection: sqlite3.Connection, now: int, slot: int, furthest: int | None) -> None:
    """``furthest``: a limit above it is left to sweeps."""
    least = _limit(connection, _LEAST_OF_GROUP if slot < 0 else _LIMIT_OF_JOB, slot)
    if furthest is not None and least > furthest:
        return
    edge = connection.execute(_EDGE, (slot, least)).fetchone()
    if edge is None:
        return
    limits: dict[int, int] = {}
    beyond: list[tuple[int, str, int]] = []
    for newer, (rowid, job_id) in enumerate(connection.execute(_FROM_EDGE_ON, (slot, edge[0], *edge)), least):
        if job_id not in limits:
            limits[job_id] = _limit(connection, _LIMIT_OF_JOB, job_id)
        if newer >= limits[job_id]:
            reason = f"overlap queue: {newer} newer ticks wait for its slot, and queue_limit is {limits[job_id]}"
            beyond.append((now, reason, rowid))
            if len(beyond) == _AT_ONCE:
                break
    connection.executemany(_SKIP, beyond)


def _limit(connection: sqlite3.Connection, statement: str, number: int) -> int:
    (limit,) = connection.execute(statement, (number,)).fetchone()
    return QUEUE_LIMIT if limit is None else int(limit)


def _tick(connection: sqlite3.Connection, slot: int, claim: tuple[int, int, int]) -> str:
    """The tick of a claim; where the slot is that of a key, with its job's name."""
    _, job_id, scheduled_at = claim
    at = from_micros(scheduled_at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    row = connection.execute("SELECT name FROM jobs WHERE job_id = ?", (job_id,)).fetchone() if slot < 0 else None
    return at if row is None else f"{row[0]} at {at}"
