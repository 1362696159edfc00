"""Leadership on PostgreSQL: the term's compare-and-set, the heartbeat row, the nodes' rows.

Every write is one statement that commits by itself: a node stopped anywhere holds no lock. The one exception that may
be in the way of a takeover is another's: whoever keeps the cluster row locked for a second is terminated.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import dict_row

from sexton.errors import DatabaseUnreachable
from sexton.inputs import id_without_holidays
from sexton.store.cluster_rows import check_coordinator, node_values
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.places import in_place, place_of
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
CAN_BE_FORCED = "n.seen_at > clock_timestamp() - interval '15 s' AND n.inputs_id = c.inputs_id"

# The term of a race begins with a pass that the first racers are to finish.
_DECIDES_MISSED = """(c.strategy = 'race' AND (EXISTS (SELECT 1 FROM race_pass WHERE id = 1 AND is_open)
         OR EXISTS (SELECT 1 FROM takeovers t WHERE t.term = c.term AND t.gap_until IS NULL)))"""

_CLUSTER = f"""
SELECT c.cluster_id, c.term, c.leader, c.leader_since, c.elected_by, c.strategy, c.coordinator, c.halted, c.inputs_id,
       c.resign_requested, c.clock_accepts, c.place, NOT {in_place("c")} AND NOT pg_is_in_recovery() AS is_displaced,
       c.may_have_run_upto, n.name AS forced_to,
       c.forced_to IS NOT NULL AND n.name IS NULL AS has_lapsed_force, {_DECIDES_MISSED} AS has_open_pass,
       clock_timestamp() AS database_now
FROM cluster c LEFT JOIN nodes n ON n.name = c.forced_to AND {CAN_BE_FORCED}
WHERE c.id = 1
"""  # noqa: S608 - the parts are constants of this file

_ENROLL_COORDINATOR = "UPDATE cluster SET coordinator = %s WHERE id = 1 AND coordinator = ''"

_ENROLL_INPUTS = """
WITH first AS (
  UPDATE cluster SET inputs_id = %(inputs_id)s WHERE id = 1 AND inputs_id IN ('', %(older_id)s) RETURNING 1)
INSERT INTO inputs (inputs_id, zone_data, engine, accepted_at, accepted_by)
SELECT %(inputs_id)s, %(zone_data)s, %(engine)s, clock_timestamp(), 'first node' FROM first
ON CONFLICT DO NOTHING
"""

# Revisions applied before the first node ever started belong to the inputs it brought.
_ADOPT_REVISIONS = """
UPDATE revisions SET inputs_id = c.inputs_id FROM cluster c WHERE c.id = 1 AND revisions.inputs_id = ''
"""

# Where the ledger is, for the day when it is found elsewhere. A standby has no place yet, and takes no writes.
_RECORD_PLACE = f"UPDATE cluster SET place = {place_of()} WHERE id = 1 AND place = ''"  # noqa: S608 - constants

# `patience` stands before the lock: the UPDATE cannot start without its row.
_TAKE = f"""
WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', '1000', true) AS milliseconds),
 held AS MATERIALIZED (
  SELECT c.term, c.leader, c.predecessor, c.left_at FROM cluster c, patience p
  WHERE c.id = 1 AND c.term = %(expected)s AND c.strategy = 'leader' AND p.milliseconds IS NOT NULL
    AND (%(elected_by)s <> 'forced' OR c.forced_to = %(node)s) AND {in_place("c")} FOR UPDATE OF c),
 last_beat AS MATERIALIZED (SELECT at FROM heartbeat WHERE id = 1),
 taken AS (
  UPDATE cluster c SET term = c.term + 1, leader = %(node)s, leader_since = clock_timestamp(),
    elected_by = %(elected_by)s, predecessor = NULL, left_at = NULL, resign_requested = false, place = {place_of("c")},
    forced_to = CASE WHEN %(elected_by)s = 'forced' THEN c.forced_to END
  FROM held WHERE c.id = 1 AND c.term = %(expected)s
  RETURNING c.term, c.leader_since AS taken_at, coalesce(held.leader, held.predecessor) AS predecessor,
    CASE WHEN coalesce(held.leader, held.predecessor) IS NULL THEN 'none'
         WHEN held.leader IS NULL THEN 'resigned'
         WHEN %(elected_by)s = 'forced' AND held.leader <> %(node)s AND NOT EXISTS (
           SELECT 1 FROM nodes n WHERE n.name = held.leader AND n.seen_at < clock_timestamp() - interval '15 s')
         THEN 'forced' ELSE 'vanished' END AS predecessor_ended,
    CASE WHEN coalesce(held.leader, held.predecessor) IS NULL THEN NULL
         WHEN held.leader IS NULL THEN held.left_at
         ELSE (SELECT at FROM last_beat) END AS gap_from),
 beating AS (
  UPDATE heartbeat h SET term = t.term, counter = h.counter + 1, at = t.taken_at, confirmation = 'confirmed',
    timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  FROM taken t WHERE h.id = 1),
 recorded AS (
  INSERT INTO takeovers (term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from)
  SELECT term, %(node)s, %(elected_by)s, taken_at, predecessor, predecessor_ended, gap_from FROM taken),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT taken_at, %(node)s, 'term.taken', jsonb_build_object('term', term, 'elected_by', %(elected_by)s::text,
    'predecessor', predecessor, 'predecessor_ended', predecessor_ended)::text FROM taken)
SELECT term, taken_at, predecessor, predecessor_ended, gap_from, pg_notify('sexton_jobs', '') FROM taken
"""  # noqa: S608 - the parts are constants

# The roots of the queue before the cluster row that a takeover waits in, and only those that sit there.
_TERMINATE_BLOCKERS = """
WITH RECURSIVE blocker(pid) AS (
  SELECT unnest(pg_blocking_pids(%(waiting)s)) UNION SELECT unnest(pg_blocking_pids(b.pid)) FROM blocker b)
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM blocker JOIN pg_stat_activity a USING (pid)
WHERE cardinality(pg_blocking_pids(pid)) = 0 AND a.xact_start < clock_timestamp() - interval '1 s'
"""

_COUNT_BLOCKERS = "UPDATE takeovers SET blockers_terminated = %s WHERE term = %s"

_LEAVE = """
WITH gone AS (
  UPDATE cluster SET leader = NULL, predecessor = leader, left_at = clock_timestamp(), resign_requested = false,
    forced_to = nullif(forced_to, leader)
  WHERE id = 1 AND term = %(term)s AND leader IS NOT NULL RETURNING predecessor, left_at),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT left_at, predecessor, 'leader.left', jsonb_build_object('term', %(term)s::bigint)::text FROM gone)
SELECT pg_notify('sexton_jobs', '') FROM gone
"""

_END_FORCE = f"""
WITH ended AS MATERIALIZED (
  SELECT c.forced_to AS node, c.forced_to = c.leader AS leads FROM cluster c
  WHERE c.id = 1 AND c.term = %(term)s AND c.forced_to IS NOT NULL AND (c.forced_to = c.leader
    OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.name = c.forced_to AND {CAN_BE_FORCED})) FOR UPDATE OF c),
 done AS (UPDATE cluster c SET forced_to = NULL FROM ended WHERE c.id = 1 AND c.forced_to = ended.node RETURNING 1),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT clock_timestamp(), 'leader', CASE WHEN leads THEN 'leader.force_ended' ELSE 'leader.force_lapsed' END,
    jsonb_build_object('node', node, 'term', %(term)s::bigint)::text FROM ended, done)
SELECT pg_notify('sexton_jobs', '') FROM done
"""  # noqa: S608 - the parts are constants of this file

_BEAT = f"""
WITH before AS MATERIALIZED (SELECT confirmation FROM heartbeat WHERE id = 1 AND term = %(term)s),
 beaten AS (
  UPDATE heartbeat SET counter = counter + 1, at = clock_timestamp(), confirmation = %(confirmation)s,
    timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  WHERE id = 1 AND term = %(term)s AND EXISTS (SELECT 1 FROM cluster c WHERE c.id = 1 AND {in_place("c")})
  RETURNING at),
 told AS (
  INSERT INTO events (at, actor, action, detail)
  SELECT beaten.at, c.leader, 'leader.confirmation', jsonb_build_object('term', c.term, 'from', before.confirmation,
    'to', %(confirmation)s::text)::text
  FROM beaten, before, cluster c
  WHERE c.id = 1 AND c.term = %(term)s AND c.leader IS NOT NULL AND before.confirmation <> %(confirmation)s)
SELECT (SELECT term FROM cluster WHERE id = 1) = %(term)s FROM beaten
"""  # noqa: S608 - the parts are constants

_HEARTBEAT = """
SELECT h.term, h.counter, h.at, h.confirmation, c.leader IS NOT NULL
FROM heartbeat h CROSS JOIN cluster c WHERE h.id = 1 AND c.id = 1
"""

_REPORT = """
WITH before AS MATERIALIZED (
  SELECT format('process %%s on %%s', pid, address) AS who FROM nodes
  WHERE name = %(name)s AND (pid, address) <> (%(pid)s, %(address)s)
    AND seen_at BETWEEN clock_timestamp() - interval '5 s' AND clock_timestamp()),
 told AS MATERIALIZED (
  SELECT race_attempts, race_conflicts, race_ticks FROM nodes WHERE name = %(name)s AND (pid, address) =
    (%(pid)s, %(address)s)),
 counted AS (
  INSERT INTO counters (name, value)
  SELECT n.name, n.value FROM (VALUES
    ('race_attempts', %(race_attempts)s - coalesce((SELECT race_attempts FROM told), 0)),
    ('race_conflicts', %(race_conflicts)s - coalesce((SELECT race_conflicts FROM told), 0)),
    ('race_ticks', %(race_ticks)s - coalesce((SELECT race_ticks FROM told), 0))) n(name, value)
  WHERE n.value > 0 ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value),
 put AS (
INSERT INTO nodes (name, address, version, pid, role, confirmation, coordinator_status, jobs_warm, behind_ms,
  clock_offset_ms, claims_upto, inputs_id, coordinator_servers, clock_jump_ms, job_format, race_attempts,
  race_conflicts, race_ticks, started_at, seen_at, job_format_at)
SELECT %(name)s, %(address)s, %(version)s, %(pid)s, %(role)s, %(confirmation)s, %(coordinator_status)s, %(jobs_warm)s,
  %(behind_ms)s, %(clock_offset_ms)s, %(claims_upto)s, %(inputs_id)s,
  %(coordinator_servers)s, %(clock_jump_ms)s, %(job_format)s, %(race_attempts)s, %(race_conflicts)s, %(race_ticks)s,
  at, at, at
FROM (SELECT clock_timestamp() AS at) now
ON CONFLICT (name) DO UPDATE SET address = excluded.address, version = excluded.version, pid = excluded.pid,
  role = excluded.role, confirmation = excluded.confirmation, coordinator_status = excluded.coordinator_status,
  jobs_warm = excluded.jobs_warm, behind_ms = excluded.behind_ms, clock_offset_ms = excluded.clock_offset_ms,
  claims_upto = excluded.claims_upto, inputs_id = excluded.inputs_id, seen_at = excluded.seen_at,
  coordinator_servers = excluded.coordinator_servers, clock_jump_ms = excluded.clock_jump_ms,
  job_format = excluded.job_format, job_format_at = excluded.job_format_at, race_attempts = excluded.race_attempts,
  race_conflicts = excluded.race_conflicts, race_ticks = excluded.race_ticks,
  started_at = CASE WHEN nodes.pid = excluded.pid AND nodes.address = excluded.address
                    THEN nodes.started_at ELSE excluded.started_at END)
SELECT who FROM before
"""

# Neither the idle nor the statement timeout sees a client that stopped between two messages of a pipeline, or while it
# was reading. A backend without a transaction id has locked nothing; one that went on a moment ago is only slow.
_TERMINATE_STUCK = """
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'sexton%%'
  AND backend_xid IS NOT NULL AND xact_start < clock_timestamp() - %(older_than)s
  AND state_change < clock_timestamp() - interval '1 s'
  AND (state LIKE 'idle in transaction%%' OR (state = 'active' AND wait_event IN ('ClientRead', 'ClientWrite')))
"""

_TAKE_TRIES = 5


class PostgresTerms:
    """Implements ``TermStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def cluster(self) -> ClusterState:
        with self._connection.autocommit() as connection:
            row = connection.cursor(row_factory=dict_row).execute(_CLUSTER).fetchone()
        assert row is not None  # noqa: S101 - the migration makes the row and nothing deletes it
        elected_by = None if row["elected_by"] is None else ElectedBy(row["elected_by"])
        return ClusterState(**{**row, "elected_by": elected_by, "strategy": Strategy(row["strategy"])})

    def enroll(self, coordinator: str, inputs_id: str, zone_data: str, engine: int) -> ClusterState:
        state = self.cluster()
        older_id = id_without_holidays(zone_data, engine)
        if not state.coordinator or state.inputs_id in {"", older_id} - {inputs_id}:
            with self._connection.autocommit() as connection:
                connection.execute(_ENROLL_COORDINATOR, [coordinator])
                values = {"inputs_id": inputs_id, "older_id": older_id, "zone_data": zone_data, "engine": engine}
                connection.execute(_ENROLL_INPUTS, values)
            state = self.cluster()
        with self._connection.autocommit() as connection:
            connection.execute(_ADOPT_REVISIONS)
            connection.execute(_RECORD_PLACE)
        check_coordinator(state, coordinator)
        return state

    def take(self, expected_term: int, node: str, elected_by: ElectedBy) -> TermTaken | None:
        values = {"expected": expected_term, "node": node, "elected_by": elected_by.value}
        try:
            return self._take(values)
        except errors.LockNotAvailable:
            pass
        for _ in range(_TAKE_TRIES):
            with self._connection.autocommit() as connection, _Bailiff(self._connection, connection) as bailiff:
                try:
                    taken = self._take(values)
                except errors.LockNotAvailable:
                    continue
            if taken is not None and bailiff.terminated:
                with self._connection.autocommit() as connection:
                    connection.execute(_COUNT_BLOCKERS, [bailiff.terminated, taken.term])
            return taken
        raise DatabaseUnreachable(
            f"the cluster row stayed locked through {_TAKE_TRIES} tries of 1 s each",
            hint="end the session that holds it; this role may not have been allowed to",
        )

    def _take(self, values: dict[str, Any]) -> TermTaken | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_TAKE, values).fetchone()
        if row is None:
            return None
        term, taken_at, predecessor, ended, gap_from, _ = row
        return TermTaken(term, taken_at, predecessor, EndedBy(ended), gap_from)

    def leave(self, term: int) -> bool:
        with self._connection.autocommit() as connection:
            return connection.execute(_LEAVE, {"term": term}).rowcount == 1

    def end_force(self, term: int) -> bool:
        with self._connection.autocommit() as connection:
            return connection.execute(_END_FORCE, {"term": term}).rowcount == 1

    def beat(self, term: int, confirmation: Confirmation) -> bool:
        with self._connection.autocommit() as connection:
            row = connection.execute(_BEAT, {"term": term, "confirmation": confirmation.value}).fetchone()
        return row is not None and bool(row[0])

    def heartbeat(self) -> Heartbeat:
        with self._connection.autocommit() as connection:
            row = connection.execute(_HEARTBEAT).fetchone()
        assert row is not None  # noqa: S101 - the migration makes the row and nothing deletes it
        term, counter, at, confirmation, has_leader = row
        return Heartbeat(term, counter, at, Confirmation(confirmation), has_leader)

    def report(self, report: NodeReport) -> str | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_REPORT, node_values(report)).fetchone()
        return None if row is None else str(row[0])

    def forget(self, node: str) -> None:
        with self._connection.autocommit() as connection:
            connection.execute("DELETE FROM nodes WHERE name = %s", [node])

    def terminate_stuck(self, older_than: timedelta = timedelta(seconds=2)) -> int:
        with self._connection.autocommit() as connection:
            row = connection.execute(_TERMINATE_STUCK, {"older_than": older_than}).fetchone()
        return 0 if row is None else int(row[0])


class _Bailiff:
    """While it is entered: terminates, on a connection of its own, whoever keeps ``waiting`` from a lock for 1 s."""

    _LOOK_SECONDS = 0.05

    def __init__(self, store: PostgresConnection, waiting: psycopg.Connection[Any]) -> None:
        self.terminated = 0
        self._store = store
        self._pid = waiting.info.backend_pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sexton bailiff", daemon=True)

    def __enter__(self) -> _Bailiff:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(DatabaseUnreachable, psycopg.Error):  # the takeover itself will say so
            connection = self._store.dedicated()
            with contextlib.closing(connection):
                while not self._done.wait(self._LOOK_SECONDS):
                    row = connection.execute(_TERMINATE_BLOCKERS, {"waiting": self._pid}).fetchone()
                    self.terminated += 0 if row is None else int(row[0])
