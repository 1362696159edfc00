"""What operators change about the cluster as a whole, on PostgreSQL: halt, a forced leader, an accepted clock.

A change of the halt locks the cluster row, and so waits for the commit that is under way: after it returns, the next
one sees it. Racers lock no cluster row: what they have under way is waited for after the halt (``strategy``).
"""

from __future__ import annotations

from typing import Any

import psycopg

from sexton.cluster_views import Halt
from sexton.store.cluster_rows import check_halt
from sexton.store.postgres import strategy
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.postgres.terms import CAN_BE_FORCED
from sexton.store.protocol import HaltChange

_HALTED = "SELECT halted, halted_at, halted_by, halt_reason FROM cluster WHERE id = 1 FOR UPDATE"

_HALT = """
WITH done AS (
  UPDATE cluster SET halted = true, halted_at = clock_timestamp(), halted_by = %(actor)s, halt_reason = %(reason)s
  WHERE id = 1 RETURNING halted_at, term),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT halted_at, %(actor)s, 'cluster.halted', jsonb_build_object('reason', %(reason)s::text, 'term', term)::text
  FROM done)
SELECT halted_at, pg_notify('sexton_jobs', '') FROM done
"""

_LIFT = """
WITH done AS (
  UPDATE cluster SET halted = false, halted_at = NULL, halted_by = NULL, halt_reason = NULL WHERE id = 1
  RETURNING term),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), %(actor)s, 'cluster.halt_lifted', jsonb_build_object('term', term,
    'halted_by', %(by)s::text,
    'halted_at', to_char(%(at)s::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text FROM done)
SELECT pg_notify('sexton_jobs', ''), pg_notify('sexton_work', '') FROM done
"""

_FORCE = f"""
WITH done AS (
  UPDATE cluster c SET forced_to = n.name FROM nodes n WHERE c.id = 1 AND n.name = %(node)s AND {CAN_BE_FORCED}
    AND c.strategy = 'leader'
  RETURNING c.leader, c.term),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), %(actor)s, 'leader.forced',
    jsonb_build_object('node', %(node)s::text, 'leader', leader, 'term', term)::text FROM done)
SELECT pg_notify('sexton_jobs', '') FROM done
"""  # noqa: S608 - the parts are constants

_LIFT_FORCE = """
WITH standing AS MATERIALIZED (
  SELECT forced_to AS node FROM cluster WHERE id = 1 AND forced_to IS NOT NULL FOR UPDATE),
 done AS (UPDATE cluster c SET forced_to = NULL FROM standing s WHERE c.id = 1 RETURNING s.node, c.term),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), %(actor)s, 'leader.force_lifted', jsonb_build_object('node', node, 'term', term)::text
  FROM done)
SELECT node, pg_notify('sexton_jobs', '') FROM done
"""

_ACCEPT_CLOCK = """
WITH done AS (UPDATE cluster SET clock_accepts = clock_accepts + 1 WHERE id = 1 RETURNING clock_accepts),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), %(actor)s, 'clock.accept_asked', jsonb_build_object('accepts', clock_accepts)::text
  FROM done)
SELECT clock_accepts, pg_notify('sexton_jobs', '') FROM done
"""


def halt(store: PostgresConnection, actor: str, reason: str) -> HaltChange:
    """``EditStore.halt``."""

    def attempt() -> HaltChange:
        with store.transaction(LIMITS) as connection:
            before = _standing(connection)
            if before is not None and before.halt is not None:
                return HaltChange(False, before.halt)
            row = connection.execute(_HALT, {"actor": actor, "reason": reason}).fetchone()
        assert row is not None  # noqa: S101 - the migration makes the row and nothing deletes it
        return HaltChange(True, Halt(row[0], actor, reason))

    change = store.retrying(attempt, "halting the cluster")
    strategy.await_racers(store)
    return change


def lift_halt(store: PostgresConnection, actor: str, expected: Halt | None = None) -> HaltChange:
    """``EditStore.lift_halt``."""

    def attempt() -> HaltChange:
        with store.transaction(LIMITS) as connection:
            before = _standing(connection)
            if before is None:
                return HaltChange(False, None)
            check_halt(before.halt, expected)
            by, at = (None, None) if before.halt is None else (before.halt.by, before.halt.at)
            connection.execute(_LIFT, {"actor": actor, "by": by, "at": at})
        return before

    return store.retrying(attempt, "lifting the halt")


def force_leader(store: PostgresConnection, node: str, actor: str) -> bool:
    """``EditStore.force_leader``."""
    with store.autocommit() as connection:
        return connection.execute(_FORCE, {"node": node, "actor": actor}).rowcount == 1


def lift_force(store: PostgresConnection, actor: str) -> str | None:
    """``EditStore.lift_force``."""
    with store.autocommit() as connection:
        row = connection.execute(_LIFT_FORCE, {"actor": actor}).fetchone()
    return None if row is None else str(row[0])


def accept_clock(store: PostgresConnection, actor: str) -> int:
    """``EditStore.accept_clock``."""
    with store.autocommit() as connection:
        row = connection.execute(_ACCEPT_CLOCK, {"actor": actor}).fetchone()
    return 0 if row is None else int(row[0])


def _standing(connection: psycopg.Connection[Any]) -> HaltChange | None:
    """The halt that stands, as its lifting reports it; None where the cluster is not halted."""
    halted, at, by, reason = connection.execute(_HALTED).fetchone() or (False, None, None, None)
    if not halted:
        return None
    return HaltChange(True, None if at is None else Halt(at, by or "", reason or ""))
