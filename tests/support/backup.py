"""A database dumped, and the dump restored under whoever uses it: by pg_dump and pg_restore, as an operator does it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.postgres import USER, PostgresServer, find_binaries


def dump(server: PostgresServer, url: str, path: Path) -> None:
    """Write the database to this file."""
    _run(server, "pg_dump", "--format=custom", f"--file={path}", f"--dbname={_name(url)}")


def restore(server: PostgresServer, path: Path) -> str:
    """A new database with what the file holds; its url."""
    url = server.create_database()
    _run(server, "pg_restore", "--exit-on-error", f"--dbname={_name(url)}", str(path))
    return url


def put_under(server: PostgresServer, restored: str, url: str) -> None:
    """Give the restored database the name of the one in use, whose connections end; that one is dropped."""
    old, new = sql.Identifier(_name(url)), sql.Identifier(_name(restored))
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        # Nobody comes back in between: whoever tries is told that the database does not exist, or takes no connections.
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(old))
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [_name(url)])
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(old))
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(new, old))


def _name(url: str) -> str:
    return url.rpartition("/")[2].partition("?")[0]


def _run(server: PostgresServer, program: str, *arguments: str) -> None:
    command = [str(find_binaries() / program), "--host=127.0.0.1", f"--port={server.port}", f"--username={USER}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
