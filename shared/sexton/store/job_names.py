"""Names of jobs for whoever types one: one bare statement, because a key was pressed and a ``Store`` takes too long."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sexton.errors import DatabaseUnreachable

_LIKE = "SELECT name FROM jobs WHERE retired_at IS NULL AND name_key LIKE {} ESCAPE '!' ORDER BY name_key LIMIT {}"


def job_names(url: str, prefix: str, limit: int, answer_within: float) -> list[str]:
    """At most ``limit`` names of jobs, not retired, that begin with ``prefix``, case aside; in order.

    Raises DatabaseUnreachable where the database at ``url`` is away, has no such table, or does not answer within so
    many seconds. (PostgreSQL's connecting alone may take 2 s: bound the call where that is too long.)
    """
    escaped = prefix.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite":
        return _of_sqlite(path, f"{escaped}%", limit, answer_within)
    return _of_postgres(url, f"{escaped}%", limit, answer_within)


def _of_sqlite(path: str, like: str, limit: int, answer_within: float) -> list[str]:
    from urllib.parse import quote, unquote

    try:
        with closing(sqlite3.connect(f"file:{quote(unquote(path))}?mode=ro", answer_within, uri=True)) as connection:
            return [name for (name,) in connection.execute(_LIKE.format("?", "?"), (like, limit))]
    except sqlite3.Error as error:
        raise DatabaseUnreachable(f"{path}: {error}") from None


def _of_postgres(url: str, like: str, limit: int, answer_within: float) -> list[str]:
    import psycopg

    address = url.replace("postgresql+psycopg://", "postgresql://", 1)
    options = f"-c statement_timeout={max(round(answer_within * 1000), 1)} -c default_transaction_read_only=on"
    try:
        with psycopg.connect(
            address, connect_timeout=max(round(answer_within), 2), options=options, client_encoding="UTF8"
        ) as connection:
            return [name for (name,) in connection.execute(_LIKE.format("%s", "%s").encode(), (like, limit))]
    except psycopg.Error as error:
        raise DatabaseUnreachable(f"PostgreSQL: {error}") from None
