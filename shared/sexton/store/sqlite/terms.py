"""Leadership on SQLite: the same compare-and-sets as on PostgreSQL, each in one BEGIN IMMEDIATE transaction."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta

from sexton.inputs import id_without_holidays
from sexton.store.cluster_rows import check_coordinator, node_values
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.tables import from_micros, to_micros
from sexton.terms import (
    ClusterState,
    Confirmation,
    ElectedBy,
    EndedBy,
    Heartbeat,
    NodeReport,
    Strategy,
    TermTaken,
)

# A node `n` that is not heard of, or that may not lead, keeps nobody waiting: a force to it has lapsed.
CAN_BE_FORCED = "n.seen_at > :now - 15000000 AND n.inputs_id = c.inputs_id"

# The term of a race begins with a pass that the first racers are to finish.
_DECIDES_MISSED = """(c.strategy = 'race' AND (EXISTS (SELECT 1 FROM race_pass WHERE id = 1 AND is_open)
    OR EXISTS (SELECT 1 FROM takeovers t WHERE t.term = c.term AND t.gap_until IS NULL)))"""

_CLUSTER = f"""
SELECT c.cluster_id, c.term, c.leader, c.leader_since, c.elected_by, c.strategy, c.coordinator, c.halted, c.inputs_id,
  c.resign_requested, c.clock_accepts, c.forced_to, n.name, {_DECIDES_MISSED}
FROM cluster c LEFT JOIN nodes n ON n.name = c.forced_to AND {CAN_BE_FORCED}
WHERE c.id = 1
"""  # noqa: S608 - the parts are constants of this file

_BEFORE = """
SELECT c.leader, c.predecessor, c.left_at, h.at, :elected_by = 'forced' AND c.leader <> :node
  AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.name = c.leader AND n.seen_at < :now - 15000000)
FROM cluster c, heartbeat h WHERE c.id = 1 AND h.id = 1 AND c.term = :term AND c.strategy = 'leader'
  AND (:elected_by <> 'forced' OR c.forced_to = :node)
"""

_TAKE = """
UPDATE cluster SET term = term + 1, leader = ?1, leader_since = ?2, elected_by = ?3, predecessor = NULL, left_at = NULL,
  resign_requested = 0, forced_to = CASE WHEN ?3 = 'forced' THEN forced_to END
WHERE id = 1
"""

_HEARTBEAT = """
SELECT h.term, h.counter, h.at, h.confirmation, c.leader IS NOT NULL
FROM heartbeat h CROSS JOIN cluster c WHERE h.id = 1 AND c.id = 1
"""

_TAKE_HEARTBEAT = (
    "UPDATE heartbeat SET term = ?, counter = counter + 1, at = ?, confirmation = 'confirmed' WHERE id = 1"
)

_RECORD_TAKEOVER = """
INSERT INTO takeovers (term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_LEAVE = """
UPDATE cluster SET leader = NULL, predecessor = leader, left_at = ?, resign_requested = 0,
  forced_to = nullif(forced_to, leader)
WHERE id = 1 AND term = ? AND leader IS NOT NULL RETURNING predecessor
"""

_FORCE_OVER = f"""
SELECT c.forced_to, c.forced_to = c.leader FROM cluster c
WHERE c.id = 1 AND c.term = :term AND c.forced_to IS NOT NULL AND (c.forced_to = c.leader
  OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.name = c.forced_to AND {CAN_BE_FORCED}))
"""  # noqa: S608 - the parts are constants of this file

_BEAT = """
UPDATE heartbeat SET counter = counter + 1, at = ?, confirmation = ? WHERE id = 1 AND term = ?
RETURNING (SELECT term FROM cluster WHERE id = 1) = term
"""

_NAMESAKE = """
SELECT pid, address FROM nodes
WHERE name = :name AND (pid, address) <> (:pid, :address) AND seen_at BETWEEN :now - 5000000 AND :now
"""

_CONFIRMATION = """
SELECT h.confirmation, c.leader FROM heartbeat h, cluster c
WHERE h.id = 1 AND c.id = 1 AND h.term = ? AND c.leader IS NOT NULL
"""

_REPORT = """
INSERT INTO nodes (name, address, version, pid, role, confirmation, coordinator_status, jobs_warm, behind_ms,
  clock_offset_ms, claims_upto, inputs_id, coordinator_servers, clock_jump_ms, job_format, race_attempts,
  race_conflicts, race_ticks, started_at, seen_at, job_format_at)
VALUES (:name, :address, :version, :pid, :role, :confirmation, :coordinator_status, :jobs_warm, :behind_ms,
  :clock_offset_ms, :claims_upto, :inputs_id, :coordinator_servers, :clock_jump_ms, :job_format, :race_attempts,
  :race_conflicts, :race_ticks, :now, :now, :now)
ON CONFLICT (name) DO UPDATE SET address = excluded.address, version = excluded.version, pid = excluded.pid,
  role = excluded.role, confirmation = excluded.confirmation, coordinator_status = excluded.coordinator_status,
  jobs_warm = excluded.jobs_warm, behind_ms = excluded.behind_ms, clock_offset_ms = excluded.clock_offset_ms,
  claims_upto = excluded.claims_upto, inputs_id = excluded.inputs_id, seen_at = excluded.seen_at,
  coordinator_servers = excluded.coordinator_servers, clock_jump_ms = excluded.clock_jump_ms,
  job_format = excluded.job_format, job_format_at = excluded.job_format_at, race_attempts = excluded.race_attempts,
  race_conflicts = excluded.race_conflicts, race_ticks = excluded.race_ticks,
  started_at = CASE WHEN nodes.pid = excluded.pid AND nodes.address = excluded.address
                    THEN nodes.started_at ELSE excluded.started_at END
"""


_RACED_NAMES = ("race_attempts", "race_conflicts", "race_ticks")
_RACED = """
SELECT race_attempts, race_conflicts, race_ticks FROM nodes
WHERE name = :name AND (pid, address) = (:pid, :address)
"""
_COUNT = """
INSERT INTO counters (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value
"""


class SqliteTerms:
    """Implements ``TermStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def cluster(self) -> ClusterState:
        with self._connection.snapshot() as connection:
            now = self._connection.now()
            row = connection.execute(_CLUSTER, {"now": to_micros(now)}).fetchone()
        cluster_id, term, leader, since, elected_by, strategy, coordinator, halted, inputs_id, resign = row[:10]
        accepts, forced_to, forced_node, has_open_pass = row[10:]
        return ClusterState(
            cluster_id=cluster_id,
            term=term,
            leader=leader,
            leader_since=None if since is None else from_micros(since),
            elected_by=None if elected_by is None else ElectedBy(elected_by),
            strategy=Strategy(strategy),
            coordinator=coordinator,
            halted=bool(halted),
            inputs_id=inputs_id,
            resign_requested=bool(resign),
            database_now=now,
            forced_to=forced_node,
            has_lapsed_force=forced_to is not None and forced_node is None,
            clock_accepts=accepts,
            has_open_pass=bool(has_open_pass),
        )

    def enroll(self, coordinator: str, inputs_id: str, zone_data: str, engine: int) -> ClusterState:
        state = self.cluster()
        older_id = id_without_holidays(zone_data, engine)
        if not state.coordinator or state.inputs_id in {"", older_id} - {inputs_id}:
            with self._connection.transaction() as connection:
                connection.execute(
                    "UPDATE cluster SET coordinator = ? WHERE id = 1 AND coordinator = ''", [coordinator]
                )
                first = connection.execute(
                    "UPDATE cluster SET inputs_id = ? WHERE id = 1 AND inputs_id IN ('', ?)", [inputs_id, older_id]
                )
                if first.rowcount == 1:
                    connection.execute(
                        "INSERT INTO inputs (inputs_id, zone_data, engine, accepted_at, accepted_by) "
                        "VALUES (?, ?, ?, ?, 'first node') ON CONFLICT DO NOTHING",
                        [inputs_id, zone_data, engine, self._connection.now_micros()],
                    )
            state = self.cluster()
        # Revisions applied before the first node ever started belong to the inputs it brought.
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE revisions SET inputs_id = (SELECT inputs_id FROM cluster WHERE id = 1) WHERE inputs_id = ''"
            )
        check_coordinator(state, coordinator)
        return state

    def take(self, expected_term: int, node: str, elected_by: ElectedBy) -> TermTaken | None:
        with self._connection.transaction() as connection:
            known = {"term": expected_term, "elected_by": elected_by.value, "node": node}
            before = connection.execute(_BEFORE, {**known, "now": self._connection.now_micros()}).fetchone()
            if before is None:
                return None
            leader, left_by, left_at, last_beat, is_replaced = before
            predecessor = leader or left_by
            if predecessor is None:
                ended, gap_from = EndedBy.NONE, None
            elif leader is None:
                ended, gap_from = EndedBy.RESIGNED, left_at
            else:
                ended = EndedBy.FORCED if is_replaced else EndedBy.VANISHED
                gap_from = last_beat
            term, taken_at = expected_term + 1, self._connection.now_micros()
            connection.execute(_TAKE, [node, taken_at, elected_by.value])
            connection.execute(_TAKE_HEARTBEAT, [term, taken_at])
            values = [term, node, elected_by.value, taken_at, predecessor, ended.value, gap_from]
            connection.execute(_RECORD_TAKEOVER, values)
            detail = {
                "term": term,
                "elected_by": elected_by.value,
                "predecessor": predecessor,
                "predecessor_ended": ended.value,
            }
            record_event(connection, taken_at, node, "term.taken", detail)
            notify(self._connection, connection, Channel.JOBS)
        gap = None if gap_from is None else from_micros(gap_from)
        return TermTaken(term, from_micros(taken_at), predecessor, ended, gap)

    def leave(self, term: int) -> bool:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            gone = connection.execute(_LEAVE, [now, term]).fetchall()
            if not gone:
                return False
            record_event(connection, now, gone[0][0], "leader.left", {"term": term})
            notify(self._connection, connection, Channel.JOBS)
        return True

    def end_force(self, term: int) -> bool:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            over = connection.execute(_FORCE_OVER, {"term": term, "now": now}).fetchone()
            if over is None:
                return False
            node, leads = over
            connection.execute("UPDATE cluster SET forced_to = NULL WHERE id = 1")
            action = "leader.force_ended" if leads else "leader.force_lapsed"
            record_event(connection, now, "leader", action, {"node": node, "term": term})
            notify(self._connection, connection, Channel.JOBS)
        return True

    def beat(self, term: int, confirmation: Confirmation) -> bool:
        with self._connection.transaction() as connection:
            now, after = self._connection.now_micros(), confirmation.value
            before = connection.execute(_CONFIRMATION, [term]).fetchone()
            rows = connection.execute(_BEAT, [now, after, term]).fetchall()
            is_current = bool(rows and rows[0][0])
            if is_current and before is not None and before[0] != after:
                detail: dict[str, object] = {"term": term, "from": before[0], "to": after}
                record_event(connection, now, before[1], "leader.confirmation", detail)
        return is_current

    def heartbeat(self) -> Heartbeat:
        with self._connection.snapshot() as connection:
            row = connection.execute(_HEARTBEAT).fetchone()
        term, counter, at, confirmation, has_leader = row
        return Heartbeat(term, counter, from_micros(at), Confirmation(confirmation), bool(has_leader))

    def report(self, report: NodeReport) -> str | None:
        values: dict[str, object] = {
            key: to_micros(value) if isinstance(value, datetime) else value
            for key, value in node_values(report).items()
        }
        with self._connection.transaction() as connection:
            values["now"] = self._connection.now_micros()
            before = connection.execute(_NAMESAKE, values).fetchone()
            told = connection.execute(_RACED, values).fetchone() or (0, 0, 0)
            for name, seen in zip(_RACED_NAMES, told, strict=True):
                if (more := getattr(report.raced, name.removeprefix("race_")) - seen) > 0:
                    connection.execute(_COUNT, [name, more])
            connection.execute(_REPORT, values)
        return None if before is None else f"process {before[0]} on {before[1]}"

    def forget(self, node: str) -> None:
        with self._connection.transaction() as connection:
            connection.execute("DELETE FROM nodes WHERE name = ?", [node])

    def terminate_stuck(self, older_than: timedelta = timedelta(seconds=2)) -> int:
        """0: SQLite has no backends; a process frozen in a transaction blocks the others."""
        return 0


def record_event(
    connection: sqlite3.Connection,
    at: int,
    actor: str,
    action: str,
    detail: dict[str, object],
    job_id: int | None = None,
) -> None:
    """Add an event to the audit log, in the transaction open on ``connection``; ``at`` in microseconds."""
    connection.execute(
        "INSERT INTO events (at, actor, action, job_id, detail) VALUES (?, ?, ?, ?, ?)",
        [at, actor, action, job_id, json.dumps(detail, sort_keys=True, ensure_ascii=False)],
    )
