"""compose/healthy.py, which asks the database by itself, against the real schema."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from tests.support.source_tree import ROOT

HOST = socket.gethostname()


@pytest.fixture
def address_file(postgres_ledger: str, tmp_path: Path) -> Path:
    file = tmp_path / "database"
    file.write_text(postgres_ledger + "\n")
    return file


def check(kind: str, address_file: Path) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SEXTON_")}
    return subprocess.run(
        [sys.executable, ROOT / "compose" / "healthy.py", kind],
        env={**environ, "SEXTON_DATABASE_FILE": str(address_file)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", ["nodes", "workers"])
def test_a_process_that_nobody_heard_of_is_unhealthy(kind: str, address_file: Path) -> None:
    ended = check(kind, address_file)
    assert (ended.returncode, ended.stderr) == (1, f"the database has not heard of {HOST} among the {kind}\n")


def test_a_worker_is_healthy_until_it_is_silent_for_a_minute(postgres_ledger: str, address_file: Path) -> None:
    store = open_store(StoreOptions(url=postgres_ledger))
    try:
        store.grants.register("worker-1", HOST, "1", 7, ["default"], 2)
    finally:
        store.close()
    plain = postgres_ledger.replace("+psycopg", "")
    with psycopg.connect(plain) as connection:  # far ahead: this machine may be slow
        connection.execute("UPDATE workers SET seen_at = clock_timestamp() + interval '1 h'")
    assert check("workers", address_file).returncode == 0
    with psycopg.connect(plain) as connection:
        connection.execute("UPDATE workers SET seen_at = clock_timestamp() - interval '61 s'")
    ended = check("workers", address_file)
    assert ended.returncode == 1
    assert f"{HOST} was heard of" in ended.stderr


def test_a_database_that_is_away_makes_unhealthy_and_shows_no_password(tmp_path: Path) -> None:
    file = tmp_path / "database"
    file.write_text("postgresql://sexton:hushhush@127.0.0.1:1/sexton")
    ended = check("nodes", file)
    assert (ended.returncode, ended.stderr) == (1, "the database cannot be asked (OperationalError)\n")
