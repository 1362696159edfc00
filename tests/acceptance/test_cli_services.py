"""Services that are away, old or someone else's: one sentence, in time, and the right exit code."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.processes import ProcessGroup

LIMIT_SECONDS = 60  # only a hang takes as long; the promise is 10 s


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def assert_unreachable(processes: ProcessGroup, url: str, *command: str) -> str:
    done = processes.run(*command, "--database", url, within=LIMIT_SECONDS)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("sexton: ")
    assert "secret" not in sentence
    return sentence


COMMANDS = [("settings", "list"), ("db", "upgrade"), ("next", "--job", "x")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nobody_listens(processes: ProcessGroup, closed_port: int, command: tuple[str, ...]) -> None:
    sentence = assert_unreachable(processes, f"postgresql://u:secret@127.0.0.1:{closed_port}/sexton", *command)
    assert f"127.0.0.1:{closed_port}" in sentence


@pytest.mark.parametrize("command", COMMANDS[:2], ids=" ".join)
def test_somebody_listens_and_never_answers(
    processes: ProcessGroup, silent_port: int, command: tuple[str, ...]
) -> None:
    assert_unreachable(processes, f"postgresql://u:secret@127.0.0.1:{silent_port}/sexton", *command)


def test_a_frozen_postgresql(processes: ProcessGroup, own_postgres_server: PostgresServer) -> None:
    with fresh_database(own_postgres_server) as url:
        make_ledger(url)
        assert processes.run("settings", "get", "horizon", "--database", url).stdout == "1m\n"
        own_postgres_server.freeze()
        try:
            assert_unreachable(processes, url, "settings", "get", "horizon")
        finally:
            own_postgres_server.thaw()


def test_a_locked_sqlite_file(processes: ProcessGroup, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    make_ledger(url)
    holder = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert_unreachable(processes, url, "settings", "set", "horizon", "30s")
    finally:
        holder.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("arguments", [("apply", "jobs.yaml", "--yes"), ("db", "check")], ids=["apply", "db check"])
def test_a_database_without_tables_says_what_to_run(
    command: CommandLine, tmp_path: Path, postgres_url: str, kind: str, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs: {}\n")
    url = postgres_url if kind == "postgresql" else f"sqlite:///{tmp_path}/none.db"
    done = command.run(*arguments, "--database", url)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "run `sexton db upgrade`" in sentence
    assert not (tmp_path / "none.db").exists()


def test_an_old_schema_says_what_to_run_and_the_command_helps(command: CommandLine, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    make_ledger(url)
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '0000'")
    database.close()
    done = command.run("settings", "list", "--database", url)
    assert done.returncode == 1
    assert "has schema 0000" in done.stderr
    assert "run `sexton db upgrade`" in done.stderr


def test_db_upgrade_makes_a_database_and_can_be_repeated(command: CommandLine, postgres_url: str) -> None:
    assert "(before: none)" in command.run("db", "upgrade", "--database", postgres_url).stdout
    assert "already" in command.run("db", "upgrade", "--database", postgres_url).stdout
    assert command.run("db", "check", "--database", postgres_url).returncode == 0


def test_a_second_cluster_on_the_same_database_is_refused(processes: ProcessGroup, tmp_path: Path) -> None:
    """The first node's coordinator is the cluster's; a node with another one does not join."""
    url = f"sqlite:///{tmp_path}/s.db"
    make_ledger(url)
    store = open_store(StoreOptions(url))
    store.terms.enroll("database:", "inputs", "2026f", 1)
    store.close()
    done = processes.run(
        "scheduler", "--database", url, "--coordinator", "zookeeper://127.0.0.1:1/other", within=LIMIT_SECONDS
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("sexton: ")]
    assert "database:" in sentence
    assert "zookeeper://127.0.0.1:1/other" in sentence
    assert "Traceback" not in done.stderr


def test_a_path_that_cannot_be_a_database_is_not_a_traceback(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (("settings", "list"), ("db", "upgrade")):
        done = command.run(*arguments, "--database", f"sqlite:///{tmp_path}/file/s.db")
        assert done.returncode in (1, 3), done.stderr
        assert len(done.stderr.splitlines()) == 1
