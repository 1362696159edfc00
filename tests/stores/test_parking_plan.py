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
    row = connection.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + statement, values).fetchone()
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
        ({}, (parking._SETTLE_ALL, parking._ASK_ALL)),
    ):
        for statement in statements:
            assert claims_read(connection, statement, slots) < 2500
