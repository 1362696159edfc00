"""What follows from parking costs what waits as ticks, however much else is parked, runs or is over; on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sexton.store.postgres import parking
from sexton.store.postgres.pull import plan_by_index

_FILL = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, state, queue, priority, overlap, slot, available_at,
  at_most_once, term, written_at, token)
SELECT 1 + n % 100, '2026-01-01T00:00Z'::timestamptz + n * interval '1 second', 1, %(origin)s, %(state)s, 'default', 0,
  %(overlap)s, 1 + n % 100, '2026-01-01T00:00Z'::timestamptz, false, 1, '2026-01-01T00:00Z'::timestamptz, %(token)s
FROM generate_series(%(first)s::integer, %(last)s::integer) n
"""


@pytest.fixture
def connection(postgres_ledger: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_ledger.replace("+psycopg", ""), autocommit=True) as one:
        yield one


def fill(connection: psycopg.Connection[Any], first: int, count: int, **values: int | None) -> None:
    known = {"origin": 0, "state": 2, "overlap": 3, "token": None, "first": first, "last": first + count - 1}
    connection.execute(_FILL.replace(" % 100", " %% 100"), known | values)


def claims_read(connection: psycopg.Connection[Any], statement: bytes, values: dict[str, Any]) -> int:
    """How many rows of claims the statement's plan came upon; no plan reads them all in sequence."""
    explained = b"EXPLAIN (ANALYZE, FORMAT JSON) " + statement
    row = parking.in_order(connection, explained, values, prepare=False).fetchone()
    assert row is not None
    plans = [row[0][0]["Plan"]]
    read = 0
    while plans:
        plan = plans.pop()
        plans += plan.get("Plans", ())
        if plan.get("Relation Name") == "claims" and plan["Node Type"] != "ModifyTable":
            assert plan["Node Type"] != "Seq Scan", plan
            read += plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return int(read)


def test_what_parking_asks_for_reads_no_backlog(connection: psycopg.Connection[Any]) -> None:
    plan_by_index(connection)
    connection.execute("INSERT INTO slots SELECT n, 1, n FROM generate_series(1, 100) n")
    fill(connection, 0, 20_000, origin=4)  # manual claims that wait
    fill(connection, 20_000, 20_000, state=3)  # ticks that are over
    fill(connection, 40_000, 100, state=1, token=7)  # that run
    fill(connection, 50_000, 200)
    for slots, statements in (
        ({"slots": [1, 2]}, (parking._SETTLE_GIVEN, parking._ASK_GIVEN)),
        ({"turn": 0}, (parking._SETTLE_ALL, parking._ASK_ALL)),
    ):
        for statement in statements:
            assert claims_read(connection, statement, slots) < 2500


def a_job(connection: psycopg.Connection[Any], job_id: int, queue_limit: int, slot: int | None = None) -> None:
    connection.execute(
        """INSERT INTO jobs (job_id, name, name_key, hash_seed, revision, created_at, changed, slot)
        OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, '', 1, clock_timestamp(), 1, %s)""",
        (job_id, f"job {job_id}", f"job {job_id}", slot),
    )
    connection.execute(
        """INSERT INTO revisions (job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at,
        applied_by) VALUES (%s, 1, '', '', %s, '', clock_timestamp(), clock_timestamp(), 'me')""",
        (job_id, f'{{"queue_limit": {queue_limit}}}'),
    )


@pytest.mark.parametrize("has_statistics", [False, True], ids=["from before they waited", "of now"])
def test_what_waits_is_counted_no_further_than_its_limit_on_any_plan(
    connection: psycopg.Connection[Any], has_statistics: bool
) -> None:
    connection.execute("ALTER TABLE claims SET (autovacuum_enabled = off)")
    connection.execute("INSERT INTO slots SELECT n, 1, n FROM generate_series(1, 100) n")
    fill(connection, 0, 5_000, state=3)
    connection.execute("ANALYZE claims")
    for job_id in range(1, 101):
        a_job(connection, job_id, 4 if job_id <= 2 else 5_000)
    fill(connection, 10_000, 40_000, overlap=2)  # 400 on each slot
    if has_statistics:
        connection.execute("ANALYZE")
    plan_by_index(connection)
    assert claims_read(connection, parking._SETTLE_GIVEN, {"slots": [50, 51]}) < 50  # far limits: left to sweeps
    # Two slots are beyond by 396 ticks each; of the other 98 it counts what waits on four.
    assert claims_read(connection, parking._SETTLE_ALL, {"turn": 0}) < 6_000
    assert claims_read(connection, parking._SETTLE_ALL, {"turn": 1}) < 6_000
    assert states(connection, 1) == states(connection, 2) == {2: 4, 8: 396}
    assert states(connection, 3) == {2: 400}


def states(connection: psycopg.Connection[Any], slot: int) -> dict[int, int]:
    """How many of the ticks on the slot that once waited are in which state."""
    found = connection.execute("SELECT state, count(*) FROM claims WHERE slot = %s AND state <> 3 GROUP BY 1", (slot,))
    return dict(found.fetchall())


def test_sweeps_come_in_turns_to_all_that_waits(connection: psycopg.Connection[Any]) -> None:
    connection.execute("INSERT INTO slots SELECT n, 1, n FROM generate_series(1, 100) n")
    for job_id in range(1, 101):
        a_job(connection, job_id, parking.READ_BY_A_SWEEP)
    for job_id in (3, 50, 100):
        connection.execute("UPDATE revisions SET firing = '{}' WHERE job_id = %s", (job_id,))
    fill(connection, 10_000, 12_000, overlap=2)
    for turn in range(100):
        parking.settle_all(connection, turn)
    assert [states(connection, slot) for slot in (3, 50, 100)] == [{2: 100, 8: 20}] * 3
    assert states(connection, 4) == {2: 120}


def test_each_job_of_a_key_has_its_own_limit_on_what_waits_for_it(connection: psycopg.Connection[Any]) -> None:
    a_job(connection, 1, 30, slot=-7)
    a_job(connection, 2, 50, slot=-7)
    fill(connection, 10_000, 12_000, overlap=2)
    connection.execute("UPDATE claims SET slot = -7 WHERE job_id <= 2")
    connection.execute("INSERT INTO slots VALUES (-7, 1, 1)")
    parking.settle_all(connection, 0)
    left = connection.execute("SELECT job_id, count(*) FROM claims WHERE slot = -7 AND state = 2 GROUP BY 1 ORDER BY 1")
    assert left.fetchall() == [(1, 15), (2, 25)]


def test_many_ticks_beyond_a_lowered_limit_end_in_one_sweep(connection: psycopg.Connection[Any]) -> None:
    a_job(connection, 1, 5)
    fill(connection, 0, 2_500, overlap=2)
    connection.execute("UPDATE claims SET job_id = 1, slot = 1")
    parking.settle_all(connection, 0)
    assert states(connection, 1) == {2: 5, 8: 2495}
