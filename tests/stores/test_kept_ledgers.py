"""A ledger that is lent again is as a new one: whatever its last borrower left in it, or still does to it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from sexton.terms import ElectedBy
from tests.support.kept_ledgers import KeptLedgers
from tests.support.postgres import PostgresServer

OF_ITS_OWN = {("cluster", "cluster_id"), ("heartbeat", "at"), ("budget", "next_at")}


@pytest.fixture
def kept(postgres_server: PostgresServer, migrated_template: str) -> KeptLedgers:
    return KeptLedgers(postgres_server, migrated_template)


def test_its_rows_and_sequences_are_those_of_a_new_one(kept: KeptLedgers) -> None:
    with kept.lent() as url:
        new = contents(url)
        with closing(open_store(StoreOptions(url))) as store:
            assert store.terms.take(store.terms.cluster().term, "node", ElectedBy.ZOOKEEPER)
            store.edits.set_setting("horizon", "3m", "someone")
        execute(url, "SELECT nextval('tokens')")
        execute(url, "CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        execute(url, "CREATE TRIGGER forbidden BEFORE UPDATE ON claims EXECUTE FUNCTION forbid()")
        assert contents(url) != new
        left_open = psycopg.connect(plain(url))
        left_open.execute("SELECT * FROM cluster FOR UPDATE")
    with left_open, kept.lent() as again:
        assert again == url
        assert contents(again) == new
        with pytest.raises(psycopg.OperationalError):
            left_open.execute("SELECT 1")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE jobs ADD COLUMN colour text",
        "ALTER TABLE jobs ALTER COLUMN name DROP NOT NULL",
        "ALTER TABLE claims SET (autovacuum_enabled = off)",
        "CREATE TABLE accounts (id int)",
        "DROP INDEX {index}",
        "GRANT SELECT ON jobs TO PUBLIC",
        "ANALYZE cluster",
    ],
)
def test_one_that_was_changed_otherwise_is_not_lent_again(kept: KeptLedgers, change: str) -> None:
    with kept.lent() as url:
        (index,) = execute(url, "SELECT indexname FROM pg_indexes WHERE tablename = 'claims' ORDER BY 1 DESC LIMIT 1")[
            0
        ]
        execute(url, change.format(index=index))
    with kept.lent() as other:
        assert other != url


def contents(url: str) -> dict[str, Any]:
    """All rows, sequences and triggers, less what is of one ledger alone."""
    found: dict[str, Any] = {}
    for (table,) in execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        rows = [row for (row,) in execute(url, f"SELECT to_jsonb(t) FROM {table} t")]
        found[table] = [{key: row[key] for key in row if (table, key) not in OF_ITS_OWN} for row in rows]
    found["sequences"] = execute(url, "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
    found["triggers"] = execute(url, "SELECT count(*) FROM pg_trigger")
    return found


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(plain(url), autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


def plain(url: str) -> str:
    return url.replace("+psycopg", "")
