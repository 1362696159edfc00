"""The pull on SQLite: the rules of `sexton.store.postgres.pull`, step by step inside one write transaction.

Nobody else writes meanwhile, so a slot row is free or busy, never unknown, and the catch-up class needs no gate.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sexton.claims import Origin, Overlap
from sexton.store.protocol import Grant
from sexton.store.pull_turns import PRIORITIES, priorities_from
from sexton.store.tables import from_micros

LARGEST_PULL = 500

LIVE = "NOT (origin IN (1, 2, 3))"
PACED = "origin IN (1, 2, 3)"
READY = "state = 0 AND NOT blocked"

GRANT_COLUMNS = (
    "job_id, scheduled_at, revision, origin, token, attempt, retries, slot, jitter_ms, at_most_once,"
    " lease_expires_at, priority, losses"
)
# One arm for each priority of each queue, each an index-ordered scan of its own; together one statement, as ten small
# ones cost more than what they read.
_PICK = """SELECT * FROM (SELECT rowid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
 WHERE {ready} AND {origins} AND queue = ? AND priority = ? AND available_at <= ?1
  AND (start_by IS NULL OR start_by > ?1) ORDER BY available_at LIMIT ?2)"""
_AHEAD = """SELECT * FROM (SELECT available_at FROM claims WHERE {ready} AND {origins} AND queue = ?1
 AND priority = {priority} AND available_at > ?2 ORDER BY available_at LIMIT 1)"""
_MOST_ARMS = 100  # SQLite takes 500 in a statement
_FIRST_AHEAD = "SELECT min(available_at) FROM ({arms})".format(  # noqa: S608 - built from constants
    arms=" UNION ALL ".join(
        _AHEAD.format(ready=READY, origins=origins, priority=priority)
        for origins in (LIVE, PACED)
        for priority in PRIORITIES
    )
)
_COUNT_PACED = f"SELECT count(*) FROM claims WHERE state = 1 AND {PACED}"  # noqa: S608 - built from constants

_GRANT = f"""UPDATE claims SET state = 1, attempt = attempt + 1, token = ?, worker_id = ?, granted_at = ?,
 lease_expires_at = ?, start_by = NULL, finished_at = NULL WHERE rowid = ? RETURNING {GRANT_COLUMNS}"""  # noqa: S608 - built from constants
_PARK = "UPDATE claims SET state = 2 WHERE rowid = ?"
_SKIP = "UPDATE claims SET state = 8, finished_at = ?, reason = ? WHERE rowid = ?"
_TAKE_SLOT = "UPDATE slots SET token = ? WHERE slot = ? AND number = ?"
# Rows beyond the limit of a concurrency key. One's own slot, numbered like the job, has one row always.
_EXCESS = "SELECT max(0, (SELECT count(*) FROM slots WHERE slot = ?1) - size) FROM slot_groups WHERE group_id = -?1"
_HOLDER = """SELECT scheduled_at, token,
 coalesce((SELECT w.name FROM workers w WHERE w.worker_id = claims.worker_id), 'worker ' || worker_id),
 CASE WHEN slot < 0 THEN (SELECT j.name || ' at ' FROM jobs j WHERE j.job_id = claims.job_id) END,
 (SELECT '; the key ' || g.key || ' lets ' || g.size || ' run, and none of its slots was free'
  FROM slot_groups g WHERE g.group_id = -claims.slot)
 FROM claims WHERE state = 1 AND token = ?"""


class Pulled(NamedTuple):
    """What a pull came to. ``parked``: the slots on which it parked ticks that no worker had before (so of `queue` and
    `replace`), which `parking.settle` is to look at."""

    grants: list[Grant]
    picked: int  # claims looked at
    parked: set[int]


@dataclass(frozen=True, slots=True)
class Puller:
    """Who pulls, and for how long it gets what it pulls; microseconds. ``first``: the priority that leads."""

    worker_id: int
    now: int
    lease: timedelta
    first: int = PRIORITIES[0]

    @property
    def lease_expires_at(self) -> int:
        return self.now + self.lease // timedelta(microseconds=1)


def pull(connection: sqlite3.Connection, puller: Puller, queues: Sequence[str], room: int, *, is_paced: bool) -> Pulled:
    """Grant up to ``room`` due claims of one class, park or skip those whose slots are busy."""
    room = min(room, LARGEST_PULL)
    if room <= 0 or connection.execute("SELECT 1 FROM cluster WHERE halted").fetchone():
        return Pulled([], 0, set())
    picked = _pick(connection, puller, queues, room, is_paced=is_paced)
    granted: dict[int, Grant] = {}
    numbers: dict[int, tuple[list[int], list[int]]] = {}
    parked: set[int] = set()
    for claim in sorted(picked, key=lambda row: (row[2], row[1])):  # of a slot, the oldest first
        rowid, _, _, slot, overlap, origin, attempt = claim
        if overlap == Overlap.ALLOW:
            continue
        free, holders = numbers.setdefault(slot, _slot_rows(connection, slot))
        if free:
            number = free.pop(0)
            grant = _grant(connection, puller, rowid)
            connection.execute(_TAKE_SLOT, (grant.token, slot, number))
            holders.append(grant.token)
            granted[rowid] = grant
        elif not holders:  # no such slot rows: as for a row that cannot be locked
            continue
        elif overlap == Overlap.SKIP and origin == Origin.SCHEDULE and attempt == 0:
            connection.execute(_SKIP, (puller.now, _met(connection, min(holders)), rowid))
        else:
            connection.execute(_PARK, (rowid,))
            if origin == Origin.SCHEDULE and attempt == 0:
                parked.add(slot)
    granted |= {row[0]: _grant(connection, puller, row[0]) for row in picked if row[4] == Overlap.ALLOW}
    return Pulled([granted[row[0]] for row in picked if row[0] in granted], len(picked), parked)


def paced_room(connection: sqlite3.Connection, limit: int) -> int:
    """How many more paced claims may run in the cluster."""
    (running,) = connection.execute(_COUNT_PACED).fetchone()
    return max(0, limit - int(running))


def next_available_at(connection: sqlite3.Connection, now: int, queues: Sequence[str]) -> int | None:
    """The first instant after ``now`` at which a ready claim of these queues becomes available."""
    ahead = (connection.execute(_FIRST_AHEAD, (queue, now)).fetchone()[0] for queue in queues)
    found = [instant for instant in ahead if instant is not None]
    return min(found, default=None)


def grant_of(row: Sequence[Any]) -> Grant:
    """The grant of a row of ``GRANT_COLUMNS``."""
    return Grant(
        job_id=row[0],
        scheduled_at=from_micros(row[1]),
        revision=row[2],
        origin=Origin(row[3]),
        token=row[4],
        attempt=row[5],
        retries=row[6],
        slot=row[7],
        jitter=timedelta(milliseconds=row[8]),
        at_most_once=bool(row[9]),
        lease_expires_at=from_micros(row[10]),
        priority=row[11],
        losses=row[12],
    )


def _pick(
    connection: sqlite3.Connection, puller: Puller, queues: Sequence[str], room: int, *, is_paced: bool
) -> list[tuple[int, ...]]:
    picked: list[tuple[int, ...]] = []
    arms = [(queue, priority) for priority in priorities_from(puller.first) for queue in queues]
    for first in range(0, len(arms), _MOST_ARMS):
        if len(picked) < room:
            some = arms[first : first + _MOST_ARMS]
            values = (puller.now, room - len(picked), *itertools.chain.from_iterable(some))
            picked += connection.execute(_pick_of(len(some), is_paced=is_paced), values)
    return picked


@lru_cache
def _pick_of(arms: int, *, is_paced: bool) -> str:
    """Of so many queues and priorities, the earlier arms first, up to ``?2`` claims in all."""
    arm = _PICK.format(ready=READY, origins=PACED if is_paced else LIVE)
    numbered = (_numbered(arm, 3 + 2 * place) for place in range(arms))
    return " UNION ALL ".join(numbered) + " LIMIT ?2"


def _numbered(arm: str, first: int) -> str:
    return arm.replace("queue = ?", f"queue = ?{first}").replace("priority = ?", f"priority = ?{first + 1}")


def _slot_rows(connection: sqlite3.Connection, slot: int) -> tuple[list[int], list[int]]:
    """The numbers of a slot group that may be taken, and the tokens that hold others."""
    rows = connection.execute("SELECT number, token FROM slots WHERE slot = ? ORDER BY number", (slot,)).fetchall()
    (excess,) = (connection.execute(_EXCESS, (slot,)).fetchone() or (0,)) if slot < 0 else (0,)
    free = [number for number, token in rows if token is None]
    return free[: max(0, len(free) - excess)], [token for _, token in rows if token is not None]


def _grant(connection: sqlite3.Connection, puller: Puller, rowid: int) -> Grant:
    (token,) = connection.execute(
        "INSERT INTO counters (name, value) VALUES ('tokens', 1)"
        " ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value"
    ).fetchone()
    row = connection.execute(_GRANT, (token, puller.worker_id, puller.now, puller.lease_expires_at, rowid)).fetchone()
    assert row is not None  # noqa: S101 - the row was read in this very transaction
    return grant_of(row)


def _met(connection: sqlite3.Connection, token: int) -> str:
    row = connection.execute(_HOLDER, (token,)).fetchone()
    if row is None:
        return "overlap skip: its slot was busy"
    scheduled_at = from_micros(row[0]).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    run = f"{row[3] or ''}{scheduled_at} (token {row[1]}, on {row[2]})"
    return f"overlap skip: the run of {run} was not over{row[4] or ''}"
