"""Pulling a limited queue reads indexes in order and nothing of the backlog, also planned on an empty table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sexton.store.postgres import ruled_queues
from sexton.store.postgres.pull import plan_by_index, pull_statement
from tests.stores.test_pull_plan import explained, fill, fill_later, nodes

BACKLOG = 20_000
STANDINGS = f"PREPARE standings (text[]) AS {ruled_queues._STANDINGS.decode().replace('%s', '$1')}"
PULL = (
    f"PREPARE pulling (bigint, interval, bigint, text) AS {pull_statement(1, is_paced=False, is_ruled=True).decode()}"
)
EXECUTIONS = ("EXECUTE standings ('{default,gpu}')", "EXECUTE pulling (1, '30 s', 50, 'default')")


@pytest.fixture
def connection(postgres_ledger: str) -> Iterator[psycopg.Connection[Any]]:
    # Without just-in-time compiling, as the store has its connections.
    with psycopg.connect(postgres_ledger.replace("+psycopg", ""), autocommit=True, options="-c jit=off") as opened:
        opened.execute("ALTER TABLE claims SET (autovacuum_enabled = off)")  # no statistics come to help
        opened.execute("INSERT INTO slots (slot, number) SELECT n, 1 FROM generate_series(1, 1000) n")
        opened.execute("INSERT INTO queues (name, slots) VALUES ('default', 100)")
        yield opened


def test_what_was_planned_on_an_empty_table_reads_no_backlog(connection: psycopg.Connection[Any]) -> None:
    plan_by_index(connection)
    for prepare, execution in zip((STANDINGS, PULL), EXECUTIONS, strict=True):
        connection.execute(prepare.encode())
        explained(connection, execution)
    fill(connection, BACKLOG, 0)
    fill_later(connection, BACKLOG // 10, 1)
    for execution in EXECUTIONS:
        plan = explained(connection, execution)
        for node in nodes(plan):
            if node.get("Relation Name") == "claims":
                assert node["Node Type"] in ("Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"), node
            assert node["Actual Rows"] <= 1000, node  # of slots at most all
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 1500


def test_a_queue_without_a_rule_is_looked_up_once_a_scan(connection: psycopg.Connection[Any]) -> None:
    """And a limited one is not scanned at all by the pull of all queues."""
    plan_by_index(connection)
    statement = pull_statement(1, is_paced=False).decode()
    connection.execute(f"PREPARE all_queues (bigint, interval, bigint, text) AS {statement}".encode())
    fill(connection, 1000, 0)
    for queue, scanned in (("default", 0), ("unlimited", 5)):
        plan = explained(connection, f"EXECUTE all_queues (1, '30 s', 50, '{queue}')")
        scans = [node for node in nodes(plan) if node.get("Index Name") == "claims_ready"]
        assert [node["Actual Loops"] for node in scans].count(1) == scanned
        looks = [node for node in nodes(plan) if node.get("Relation Name") == "queues"]
        assert len(looks) == 5
        assert all(node["Actual Loops"] <= 1 for node in looks)
