"""Empty ledgers for tests that are not about the upgrade: copies of one that was migrated once in this process.

Alembic takes a tenth of a second for a SQLite file and a quarter for a PostgreSQL database, and hundreds of tests need
one. A copy is what `upgrade` would have made: its cluster has an id of its own, its single rows are of now.
On PostgreSQL, ask for the fixture `postgres_ledger`, or copy the database that the fixture `migrated_template` names.
"""

from __future__ import annotations

import sqlite3
import tempfile
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from sexton.store.instants import to_micros
from sexton.store.schema import upgrade
from sexton.store.sqlite.connection import path_of
from tests.support.postgres import PostgresServer


def make_ledger(url: str) -> None:
    """Have an empty ledger at this address. One that exists is left alone; on PostgreSQL its database must exist."""
    path = path_of(url) if url.startswith("sqlite") else None
    if path is None or Path(path).exists():
        upgrade(url)
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(_migrated_file())
    connection = sqlite3.connect(path)
    now = to_micros(datetime.now(UTC))
    connection.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug of a test
    connection.execute("UPDATE cluster SET cluster_id = ?", (uuid.uuid4().hex,))
    connection.execute("UPDATE heartbeat SET at = ?", (now,))
    connection.execute("UPDATE budget SET next_at = ?", (now,))
    connection.commit()
    connection.close()


def copy_ledger(server: PostgresServer, template: str) -> str:
    """Make a database with an empty ledger, a copy of the template, and return its url; who calls drops it."""
    url = server.create_database(template=template)
    with psycopg.connect(server.conninfo(url.rpartition("/")[2])) as connection:
        make_own(connection)
    return url


def make_own(connection: psycopg.Connection[Any]) -> None:
    """Have a copied PostgreSQL ledger be a cluster of its own, as of now."""
    connection.execute("UPDATE cluster SET cluster_id = %s", (uuid.uuid4().hex,))
    connection.execute("UPDATE heartbeat SET at = clock_timestamp()")
    connection.execute("UPDATE budget SET next_at = clock_timestamp()")


@cache
def _migrated_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()
