"""The version of the database's schema: checked by every process at its start, raised by `sexton db upgrade`.

Versions are the four-digit revision numbers of `migrations/versions`. A process accepts its own version and the next,
so that a rolling upgrade can migrate first and restart the processes after it.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy
from sqlalchemy import insert, inspect, select, text

from sexton.errors import InvalidInput, OldSchema, Refused
from sexton.job_formats import FORMAT
from sexton.store import tables
from sexton.store.protocol import StoreOptions
from sexton.store.sqlite.connection import SqliteConnection, path_of

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

SCHEMA_VERSION = "0004"
_UPGRADE_SECONDS = 600.0
_UPGRADE_LOCK = 0x5E870  # any number; all upgraders of a PostgreSQL database share it
_one_alembic = threading.Lock()  # Alembic keeps its context in module variables


def connection_for(options: StoreOptions) -> PostgresConnection | SqliteConnection:
    """The connection that the url's scheme asks for; nothing is opened yet. Raises ``InvalidInput``."""
    scheme, separator, _ = options.url.partition("://")
    if separator and scheme == "sqlite":
        return SqliteConnection(options)
    if separator and scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            from sexton.store.postgres.connection import PostgresConnection
        except ModuleNotFoundError as error:
            raise InvalidInput(
                f"the database address asks for PostgreSQL, whose driver is not installed here ({error})",
                hint="install sexton[postgres]",
            ) from None
        return PostgresConnection(options)
    raise InvalidInput(
        f"the database address begins with {scheme.partition(':')[0]!r}",
        hint="write sqlite:///path/to/file or postgresql://user@host:5432/database",
    )


def found_version(url: str, *, answer_within: float = 10.0) -> str | None:
    """The schema version of the database; None where it has no tables of Sexton's. Raises ``DatabaseUnreachable``."""
    if url.startswith("sqlite") and (path := path_of(url)) is not None and not Path(path).exists():
        return None
    connection = connection_for(StoreOptions(url, application="sexton schema", answer_within=answer_within))
    try:
        with connection.reading() as reading:
            return _version(reading)
    finally:
        connection.close()


def check_schema(url: str, *, answer_within: float = 10.0) -> None:
    """Return where the schema is this version's or the next; raise ``OldSchema`` with the command to run otherwise."""
    found = found_version(url, answer_within=answer_within)
    if found is None:
        raise OldSchema(f"the database {_shown(url)} has no tables of Sexton's", hint="run `sexton db upgrade`")
    if found < SCHEMA_VERSION:
        raise OldSchema(
            f"the database {_shown(url)} has schema {found}, and this Sexton needs {SCHEMA_VERSION}",
            hint="run `sexton db upgrade`",
        )
    _check_not_too_new(found, url)


def check_job_format(url: str, *, answer_within: float = 10.0) -> None:
    """Return where this release knows the format of all jobs; raise ``OldSchema`` where it should neither decide nor
    run them. For an address that ``check_schema`` has passed."""
    connection = connection_for(StoreOptions(url, application="sexton schema", answer_within=answer_within))
    try:
        with connection.reading() as reading:
            needed = reading.execute(select(tables.cluster.c.job_format)).scalar_one()
    finally:
        connection.close()
    if needed > FORMAT:
        raise OldSchema(
            f"jobs in the database {_shown(url)} have the format {needed}, and this Sexton knows {FORMAT}",
            hint="install the younger Sexton here too",
        )


def _check_not_too_new(found: str, url: str) -> None:
    if int(found) > int(SCHEMA_VERSION) + 1:
        raise OldSchema(
            f"the database {_shown(url)} has schema {found}, too new for this Sexton, which knows {SCHEMA_VERSION}",
            hint="install the newer Sexton here too",
        )


def upgrade(url: str, *, answer_within: float = _UPGRADE_SECONDS, told: Callable[[str], None] | None = None) -> str:
    """Bring the database to this version's schema, in one transaction; the version it then has.

    Safe to run at any time and by several at once; a database that is new enough is left alone. Who reads for long is
    waited for, and ``told``, without holding up others. Raises ``OldSchema`` where it is too new for this version,
    ``Refused`` where tables that are not Sexton's have the names it needs or somebody uses its tables for ten minutes,
    and ``DatabaseUnreachable``.
    """
    found_version(url, answer_within=answer_within)  # says in a sentence where nothing answers, or is no database
    if url.startswith("sqlite") and (path := path_of(url)) is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = connection_for(StoreOptions(url, application="sexton db upgrade", answer_within=answer_within))
    try:
        return upgrade_over(connection, told)
    finally:
        connection.close()


def upgrade_over(connection: PostgresConnection | SqliteConnection, told: Callable[[str], None] | None = None) -> str:
    """``upgrade`` for a database in memory, which lives as long as its connection."""
    if isinstance(connection, SqliteConnection):
        return _upgrade(connection)
    from sexton.store.postgres import table_locks

    return table_locks.until_free(connection, lambda: _upgrade(connection, table_locks.BRIEFLY), told)


def _upgrade(connection: PostgresConnection | SqliteConnection, waiting: str = "") -> str:
    """In one transaction; ``waiting``: the statement that says for how long it waits for a table."""
    with connection.engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as writing:
        if writing.dialect.name == "postgresql":
            writing.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _UPGRADE_LOCK})
            writing.execute(text(waiting))
        found = _version(writing)
        if found is None:
            _check_names_are_free(writing, connection.options.url)
        else:
            _check_not_too_new(found, connection.options.url)
        if found is None or found < SCHEMA_VERSION:
            _migrate(writing)
            _insert_single_rows(writing, connection)
        return max(found or "", SCHEMA_VERSION)


def _migrate(connection: sqlalchemy.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    with _one_alembic:
        command.upgrade(config, SCHEMA_VERSION)


def _insert_single_rows(connection: sqlalchemy.Connection, store: PostgresConnection | SqliteConnection) -> None:
    """The rows of which there is exactly one: cluster, heartbeat, budget; as of the database's clock."""
    if connection.execute(select(tables.cluster.c.id)).first() is not None:
        return
    if isinstance(store, SqliteConnection):
        now = store.now()
    else:
        now = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    connection.execute(insert(tables.cluster).values(id=1, cluster_id=uuid.uuid4().hex))
    connection.execute(insert(tables.heartbeat).values(id=1, at=now))
    connection.execute(insert(tables.budget).values(id=1, next_at=now))


def _version(connection: sqlalchemy.Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version LIMIT 1")).scalar()
    if found is not None and not re.fullmatch(r"[0-9]{4}", found):
        raise Refused(
            f"this database belongs to another program, whose migrations are at {found}",
            hint="give Sexton a database of its own",
        )
    return found


def _check_names_are_free(connection: sqlalchemy.Connection, url: str) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(tables.metadata.tables))
    if taken:
        raise Refused(
            f"the database {_shown(url)} holds tables that are not Sexton's ({', '.join(taken)})",
            hint="give it a database of its own",
        )


def _shown(url: str) -> str:
    if url.startswith("sqlite"):
        return path_of(url) or "in memory"
    from sexton.store.postgres.connection import place

    return place(url.replace("+psycopg", "", 1))
