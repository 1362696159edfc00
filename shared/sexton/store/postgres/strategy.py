"""Another strategy, on PostgreSQL: under it the writes of the one before are stale at once.

The term is raised in the statement that changes the strategy, under the cluster row's lock; so a leader's commit that
is under way is waited for, and what comes after writes nothing. A racer's commit reads that row plainly: one that had
begun before may end after, as may one that a halt finds under way. ``await_racers`` waits until there is none; that a
tick is decided once was never in doubt.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sexton.races import THE_RACE

if TYPE_CHECKING:
    import psycopg

    from sexton.store.postgres.connection import PostgresConnection

# A race beats as a leader does, under its term: its last beat is the last sign of life of whoever decided.
_SWITCH = """
WITH held AS MATERIALIZED (
  SELECT c.term, c.strategy, c.leader, c.predecessor, c.left_at FROM cluster c
  WHERE c.id = 1 AND c.strategy <> %(value)s FOR UPDATE),
 last_beat AS MATERIALIZED (SELECT at FROM heartbeat WHERE id = 1),
 ended AS MATERIALIZED (
  SELECT h.strategy, CASE WHEN h.strategy = 'race' THEN %(the_race)s ELSE coalesce(h.leader, h.predecessor) END AS who,
    CASE WHEN h.strategy = 'race' OR h.leader IS NOT NULL THEN b.at ELSE h.left_at END AS left_at
  FROM held h, last_beat b),
 switched AS (
  UPDATE cluster c SET strategy = %(value)s, term = c.term + 1, leader = NULL, leader_since = clock_timestamp(),
    elected_by = NULL, predecessor = e.who, left_at = e.left_at, resign_requested = false, forced_to = NULL
  FROM ended e WHERE c.id = 1 RETURNING c.term, c.leader_since AS at),
 beating AS (
  UPDATE heartbeat h SET term = s.term, counter = h.counter + 1, at = s.at, confirmation = 'confirmed'
  FROM switched s WHERE h.id = 1 AND %(value)s = 'race'),
 recorded AS (
  INSERT INTO takeovers (term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from)
  SELECT s.term, %(the_race)s, 'race', s.at, e.who, CASE WHEN e.who IS NULL THEN 'none' ELSE 'resigned' END, e.left_at
  FROM switched s, ended e WHERE %(value)s = 'race'),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT s.at, %(actor)s, 'strategy.changed', jsonb_build_object('from', e.strategy, 'to', %(value)s::text,
    'term', s.term)::text FROM switched s, ended e)
SELECT term FROM switched
"""
_NOW = "SELECT clock_timestamp()"
# A leader's commit holds the cluster row, and was waited for there: there is none before this.
_UNDER_WAY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'sexton scheduler%%'
  AND state = 'active' AND xact_start < %(since)s
"""
_AWAIT_SECONDS = 3.0  # housekeeping ends what is stuck for longer than 2 s
_LOOK_SECONDS = 0.02


def switch(connection: psycopg.Connection[Any], values: dict[str, Any]) -> bool:
    """Change the strategy to ``value``, in the transaction open on ``connection``; whether it was another one."""
    return connection.execute(_SWITCH, {**values, "the_race": THE_RACE}).fetchone() is not None


def await_racers(store: PostgresConnection) -> None:
    """Return once no statement of a node is under way that began before now; after 3 s in any case."""
    until = time.monotonic() + _AWAIT_SECONDS
    with store.autocommit() as connection:
        (since,) = connection.execute(_NOW).fetchone() or (None,)
        while time.monotonic() < until:
            if (connection.execute(_UNDER_WAY, {"since": since}).fetchone() or (0,))[0] == 0:
                return
            time.sleep(_LOOK_SECONDS)
