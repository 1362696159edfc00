"""The pull reads its indexes in order and nothing else, also prepared, also when it was planned on an empty table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import RawCursor

from sexton.claims import State
from sexton.store import open_store
from sexton.store.postgres.pull import plan_by_index, pull_statement
from sexton.store.protocol import RunResult, StepRequest, StoreOptions
from tests.support.claim_rows import START, now

READY = 20_000
ROOM = 50
LEASE = timedelta(seconds=30)

_FILL = """INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at,
  at_most_once, term, written_at)
 SELECT n %% 1000 + 1, at, 1, %(origin)s, 'default', 0, 2, n %% 1000 + 1, at, false, 1, at
 FROM (SELECT n, %(start)s::timestamptz + n * interval '1 millisecond' AS at
  FROM generate_series(0, %(count)s - 1) n) ticks"""


@pytest.fixture
def connection(postgres_ledger: str) -> Iterator[psycopg.Connection[Any]]:
    # Without just-in-time compiling, as the store has its connections.
    with psycopg.connect(postgres_ledger.replace("+psycopg", ""), autocommit=True, options="-c jit=off") as opened:
        opened.execute("ALTER TABLE claims SET (autovacuum_enabled = off)")  # no statistics come to help
        opened.execute("INSERT INTO slots (slot, number) SELECT n, 1 FROM generate_series(1, 1000) n")
        yield opened


def fill(connection: psycopg.Connection[Any], count: int, origin: int) -> None:
    connection.execute(_FILL, {"count": count, "origin": origin, "start": START})


def fill_later(connection: psycopg.Connection[Any], count: int, origin: int) -> None:
    connection.execute(_FILL, {"count": count, "origin": origin, "start": START + timedelta(days=1)})


def prepare(connection: psycopg.Connection[Any], *, is_paced: bool) -> str:
    """Prepare the pull as `step` does, and return how to execute it."""
    types = "bigint, interval, bigint, " + ("bigint, " if is_paced else "") + "text"
    name = "pulling_paced" if is_paced else "pulling"
    statement = pull_statement(1, is_paced=is_paced).decode()
    connection.execute(f"PREPARE {name} ({types}) AS {statement}".encode())
    return f"EXECUTE {name} (1, '30 s', {ROOM}, {'10, ' if is_paced else ''}'default')"


def explained(connection: psycopg.Connection[Any], execution: str) -> dict[str, Any]:
    """What the execution did, undone again."""
    with connection.transaction(force_rollback=True):
        row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execution}".encode()).fetchone()
    assert row is not None
    plan: dict[str, Any] = (row[0] if isinstance(row[0], list) else json.loads(row[0]))[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def assert_index_ordered(plan: dict[str, Any], index: str) -> None:
    """No node reads claims but by an index or a row's address, and none sees more rows than there is room for."""
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "claims"]
    picks = [node for node in scans if node.get("Index Name") == index]
    assert len(picks) == 5, "one scan of the index for each priority"
    for node in scans:
        assert node["Node Type"] in ("Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"), node
    for node in nodes(plan):
        assert node["Actual Rows"] <= 1000, node  # of slots at most all, never the backlog
        assert node["Node Type"] != "Seq Scan" or node["Relation Name"] == "cluster", node
        if "Sort" in node["Node Type"]:
            assert node["Actual Rows"] <= ROOM, node
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in picks) == plan["Actual Rows"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20 * ROOM + 500


def test_a_pull_planned_on_an_empty_table_stays_index_ordered_at_20_000(connection: psycopg.Connection[Any]) -> None:
    plan_by_index(connection)
    live, paced = (prepare(connection, is_paced=is_paced) for is_paced in (False, True))
    explained(connection, live)
    explained(connection, paced)
    fill(connection, READY, 0)
    fill_later(connection, READY // 10, 1)
    for planned_again in (False, True):
        if planned_again:
            connection.execute("ANALYZE")  # which throws the plans away
        for execution, index, granted in ((live, "claims_ready", ROOM), (paced, "claims_ready_paced", 10)):
            plan = explained(connection, execution)
            assert plan["Actual Rows"] == granted
            assert_index_ordered(plan, index)


def test_without_planning_by_index_the_backlog_is_read(connection: psycopg.Connection[Any]) -> None:
    """What the assertions above are for: the same statement, planned on an empty table by the defaults."""
    connection.execute("SET plan_cache_mode = force_generic_plan")
    execution = prepare(connection, is_paced=False)
    explained(connection, execution)
    fill(connection, 20_000, 0)
    with pytest.raises(AssertionError):
        assert_index_ordered(explained(connection, execution), "claims_ready")


def test_a_step_reads_no_more_when_20_000_claims_wait_and_half_as_many_are_done(
    connection: psycopg.Connection[Any], postgres_ledger: str
) -> None:
    store = open_store(StoreOptions(postgres_ledger))
    fill(connection, 1000, 0)
    results: tuple[RunResult, ...] = ()
    for _ in range(8):  # prepared by now, on a small table
        grants = store.grants.step(StepRequest(1, ("default",), ROOM, LEASE, 10, results)).grants
        results = tuple(
            RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
            for grant in grants
        )
    connection.execute("UPDATE claims SET state = 3, finished_at = now() WHERE state = 0")
    for later in (1, 2):
        connection.execute(_FILL, {"count": READY // 2, "origin": 0, "start": START + timedelta(days=later)})
    connection.execute(
        "UPDATE claims SET state = 3, finished_at = now() WHERE state = 0 AND scheduled_at < %s",
        (START + timedelta(days=2),),
    )
    connection.execute("VACUUM claims")
    before = _read(connection)
    step = store.grants.step(StepRequest(1, ("default",), ROOM, LEASE, 10, results))
    assert len(step.accepted) == len(results) == len(step.grants) == ROOM
    store.close()  # the server counts a session's reads when it ends, at the latest
    read = _read(connection) - before
    assert read < 100 * ROOM, f"the step read {read} rows of claims in sequence or by index"


def _read(connection: psycopg.Connection[Any]) -> int:
    """Rows of claims that were read so far, by sequential scans and through indexes."""
    connection.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    row = connection.execute(
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'claims'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_raw_cursors_take_the_parameters_that_the_pull_declares(connection: psycopg.Connection[Any]) -> None:
    for is_paced in (False, True):
        arguments = (1, LEASE, ROOM, *((10,) if is_paced else ()), "default", "other")
        assert RawCursor(connection).execute(pull_statement(2, is_paced=is_paced), arguments).fetchall()
