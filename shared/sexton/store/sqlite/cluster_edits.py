"""What operators change about the cluster as a whole, on SQLite: halt, a forced leader, an accepted clock."""

from __future__ import annotations

import sqlite3

from sexton.cluster_views import Halt
from sexton.store.cluster_rows import check_halt
from sexton.store.protocol import Channel, HaltChange
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import CAN_BE_FORCED, record_event
from sexton.store.tables import from_micros

_HALTED = "SELECT halted, halted_at, halted_by, halt_reason, term FROM cluster WHERE id = 1"
_HALT = "UPDATE cluster SET halted = 1, halted_at = ?, halted_by = ?, halt_reason = ? WHERE id = 1"
_LIFT = "UPDATE cluster SET halted = 0, halted_at = NULL, halted_by = NULL, halt_reason = NULL WHERE id = 1"
_FORCE = f"""
UPDATE cluster AS c SET forced_to = :node
WHERE c.id = 1 AND c.strategy = 'leader' AND EXISTS (SELECT 1 FROM nodes n WHERE n.name = :node AND {CAN_BE_FORCED})
RETURNING leader, term
"""  # noqa: S608 - the parts are constants
_ACCEPT_CLOCK = "UPDATE cluster SET clock_accepts = clock_accepts + 1 WHERE id = 1 RETURNING clock_accepts"


def halt(store: SqliteConnection, actor: str, reason: str) -> HaltChange:
    """``EditStore.halt``."""
    with store.transaction() as connection:
        before, term = _standing(connection)
        if before is not None and before.halt is not None:
            return HaltChange(False, before.halt)
        now = store.now_micros()
        connection.execute(_HALT, [now, actor, reason])
        record_event(connection, now, actor, "cluster.halted", {"reason": reason, "term": term})
        notify(store, connection, Channel.JOBS)
    return HaltChange(True, Halt(from_micros(now), actor, reason))


def lift_halt(store: SqliteConnection, actor: str, expected: Halt | None = None) -> HaltChange:
    """``EditStore.lift_halt``."""
    with store.transaction() as connection:
        before, term = _standing(connection)
        if before is None:
            return HaltChange(False, None)
        check_halt(before.halt, expected)
        connection.execute(_LIFT)
        detail: dict[str, object] = {"term": term, "halted_by": None, "halted_at": None}
        if before.halt is not None:
            at = before.halt.at.isoformat().replace("+00:00", "Z")
            detail |= {"halted_by": before.halt.by, "halted_at": at}
        record_event(connection, store.now_micros(), actor, "cluster.halt_lifted", detail)
        notify(store, connection, Channel.JOBS)
        notify(store, connection, Channel.WORK)
    return before


def force_leader(store: SqliteConnection, node: str, actor: str) -> bool:
    """``EditStore.force_leader``."""
    with store.transaction() as connection:
        now = store.now_micros()
        done = connection.execute(_FORCE, {"node": node, "now": now}).fetchall()
        if not done:
            return False
        leader, term = done[0]
        record_event(connection, now, actor, "leader.forced", {"node": node, "leader": leader, "term": term})
        notify(store, connection, Channel.JOBS)
    return True


def lift_force(store: SqliteConnection, actor: str) -> str | None:
    """``EditStore.lift_force``."""
    with store.transaction() as connection:
        node, term = connection.execute("SELECT forced_to, term FROM cluster WHERE id = 1").fetchone()
        if node is None:
            return None
        connection.execute("UPDATE cluster SET forced_to = NULL WHERE id = 1")
        detail: dict[str, object] = {"node": node, "term": term}
        record_event(connection, store.now_micros(), actor, "leader.force_lifted", detail)
        notify(store, connection, Channel.JOBS)
    return str(node)


def accept_clock(store: SqliteConnection, actor: str) -> int:
    """``EditStore.accept_clock``."""
    with store.transaction() as connection:
        ((accepts,),) = connection.execute(_ACCEPT_CLOCK).fetchall()
        record_event(connection, store.now_micros(), actor, "clock.accept_asked", {"accepts": accepts})
        notify(store, connection, Channel.JOBS)
    return int(accepts)


def _standing(connection: sqlite3.Connection) -> tuple[HaltChange | None, int]:
    """The halt that stands, as its lifting reports it (None where the cluster is not halted), and the term."""
    halted, at, by, reason, term = connection.execute(_HALTED).fetchone()
    if not halted:
        return None, term
    return HaltChange(True, None if at is None else Halt(from_micros(at), by or "", reason or "")), term
