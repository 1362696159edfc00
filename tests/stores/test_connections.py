"""A database that does not answer is left in time, said in one sentence, and found again by the next call."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from sexton.clock import SystemClock
from sexton.errors import DatabaseUnreachable, InvalidInput
from sexton.store import open_store
from sexton.store.postgres.connection import place
from sexton.store.protocol import Channel, Store, StoreOptions
from sexton.store.schema import found_version, upgrade
from sexton.terms import ElectedBy
from tests.support.leader_scene import create, definition
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

ANSWER_WITHIN = 2.0
ONLY_A_HANG = 60.0


def assert_unreachable_in_time(store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(DatabaseUnreachable) as error:
        store.now()
    assert time.monotonic() - began < ONLY_A_HANG
    assert "\n" not in str(error.value)
    with pytest.raises(DatabaseUnreachable), store.reads.snapshot() as connection:
        connection.execute(text("SELECT 1"))


def answers(store: Store) -> bool:
    try:
        store.now()
        with store.reads.snapshot() as connection:
            connection.execute(text("SELECT 1"))
            return True
    except DatabaseUnreachable:
        return False


def test_a_frozen_server_is_left_in_time_and_found_again(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    store = open_store(StoreOptions(url, answer_within=ANSWER_WITHIN))
    assert answers(store)
    own_postgres_server.freeze()
    assert_unreachable_in_time(store)  # on the connection it had
    assert_unreachable_in_time(store)  # and on new ones, which the kernel accepts
    own_postgres_server.thaw()
    eventually(lambda: answers(store), within=60, what="the thawed server is found")
    store.close()


def test_a_restarted_server_is_found_again_and_listeners_look(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    store = open_store(StoreOptions(url, answer_within=ANSWER_WITHIN))
    clock = SystemClock()
    wakeup = clock.wakeup()
    listener = store.listen([Channel.JOBS], wakeup)
    assert clock.wait(wakeup, 30)
    wakeup.clear()
    own_postgres_server.kill()
    assert_unreachable_in_time(store)
    own_postgres_server.start()
    assert clock.wait(wakeup, 30)  # connected again: what it missed is unknown
    wakeup.clear()
    eventually(lambda: answers(store), within=60, what="the restarted server is found")
    create(store, definition("a"))
    assert clock.wait(wakeup, 30)
    listener.close()
    store.close()


def test_a_terminated_backend_costs_one_call(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    store = open_store(StoreOptions(url, application="sexton victim", answer_within=ANSWER_WITHIN))
    other = open_store(StoreOptions(url, answer_within=ANSWER_WITHIN))
    assert answers(store)
    with other.connection.autocommit() as connection:  # type: ignore[attr-defined]  # PostgreSQL's store has one
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sexton victim'"
        )
    with pytest.raises(DatabaseUnreachable, match="terminating connection"):
        store.now()
    assert answers(store) or answers(store)  # the reading connection was another backend
    store.close()
    other.close()


def test_a_server_that_is_read_only_for_now_is_waited_for(own_postgres_server: PostgresServer) -> None:
    """As after a failover, or on a full disk: nodes and workers try again, and do not end."""
    url = own_postgres_server.create_database()
    upgrade(url)
    name = url.rpartition("/")[2]
    other = open_store(StoreOptions(url, answer_within=ANSWER_WITHIN))
    with other.connection.autocommit() as connection:  # type: ignore[attr-defined]  # PostgreSQL's store has one
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        store = open_store(StoreOptions(url, answer_within=ANSWER_WITHIN))
        with pytest.raises(DatabaseUnreachable, match="read-only"):
            store.terms.take(0, "n1", ElectedBy.DATABASE)
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert store.terms.take(0, "n1", ElectedBy.DATABASE) is not None  # over a connection of its own
    store.close()
    other.close()


def test_a_locked_sqlite_file_is_left_in_time(sqlite_ledger: str) -> None:
    holder = sqlite3.connect(sqlite_ledger.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    store = open_store(StoreOptions(sqlite_ledger, answer_within=0.3))
    began = time.monotonic()
    with pytest.raises(DatabaseUnreachable, match="stayed locked"):
        store.terms.take(0, "n1", ElectedBy.DATABASE)
    assert time.monotonic() - began < ONLY_A_HANG
    assert store.terms.cluster().term == 0  # readers are not in the way of anybody, nor anybody in theirs
    holder.execute("ROLLBACK")
    assert store.terms.take(0, "n1", ElectedBy.DATABASE) is not None
    store.close()
    holder.close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    store = open_store(StoreOptions(f"sqlite:///{tmp_path}/nowhere/ledger.db"))
    with pytest.raises(DatabaseUnreachable, match="nowhere"):
        store.terms.cluster()


def test_a_file_that_is_no_database_is_named_so_by_every_call(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database" * 1_000)
    url = f"sqlite:///{tmp_path}/notes.txt"
    store, reader = open_store(StoreOptions(url)), open_store(StoreOptions(url, read_only=True))
    for call in (
        store.terms.cluster,
        reader.terms.cluster,
        reader.reads.jobs_page,
        lambda: found_version(url),
        lambda: upgrade(url),
    ):
        with pytest.raises(DatabaseUnreachable, match=r"notes\.txt is not a SQLite database"):
            call()
    assert (tmp_path / "notes.txt").read_text() == "no database" * 1_000


def test_an_address_that_cannot_be_read_is_said_without_its_password() -> None:
    with pytest.raises(DatabaseUnreachable, match="is not a PostgreSQL address") as error:
        open_store(StoreOptions("postgresql://u:hunter2@[::1"))
    assert "hunter2" not in str(error.value)
    with pytest.raises(InvalidInput, match="begins with 'postgresql'") as refused:
        open_store(StoreOptions("postgresql:u:hunter2@h"))
    assert "hunter2" not in str(refused.value)
    assert place("postgresql://u:s3@cret@h:99/db") == "h:99/db"


def test_a_read_only_store_writes_nothing(store: Store, ledger_url: str) -> None:
    reading = open_store(StoreOptions(ledger_url, read_only=True))
    assert reading.terms.cluster().term == 0
    with pytest.raises(Exception, match=r"read-?only"):
        reading.terms.take(0, "n1", ElectedBy.DATABASE)
    reading.close()
    assert store.terms.cluster().term == 0


def test_a_ledger_in_memory_is_shared_and_goes_with_its_last_store() -> None:
    url = "sqlite://?one"
    first, second = open_store(StoreOptions(url)), open_store(StoreOptions(url))
    apart = open_store(StoreOptions("sqlite://?two"))
    wakeup = SystemClock().wakeup()
    listener = second.listen([Channel.JOBS], wakeup)
    create(first, definition("a"))
    assert wakeup.is_set()  # within the very call
    assert [job.name for job in second.edits.current_jobs()] == ["a"]
    assert apart.edits.current_jobs() == ()
    listener.close()
    first.close()
    assert second.edits.current_jobs() != ()
    second.close()
    again = open_store(StoreOptions(url))
    assert again.edits.current_jobs() == ()
    again.close()
    apart.close()
