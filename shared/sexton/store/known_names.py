"""Names for whoever types one: one bare statement, because a key was pressed and a ``Store`` takes too long."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from enum import StrEnum

from sexton.errors import DatabaseUnreachable


class Kind(StrEnum):
    """What is named. Queues are those of jobs and those with a rule, workers those that have not stopped."""

    JOB = "job"
    QUEUE = "queue"
    OWNER = "owner"
    TAG = "tag"
    WORKER = "worker"
    NODE = "node"


def known_names(url: str, kind: Kind, prefix: str, limit: int, answer_within: float) -> list[str]:
    """At most ``limit`` names of this kind that begin with ``prefix``, case aside; in order. None of retired jobs.

    Raises DatabaseUnreachable where the database at ``url`` is away, has no such table, or does not answer within so
    many seconds. (PostgreSQL's connecting alone may take 2 s: bound the call where that is too long.)
    """
    like = prefix.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite":
        return _of_sqlite(path, _statement(kind, "?", _SQLITE), (like, limit), answer_within)
    return _of_postgres(url, _statement(kind, "%s", _POSTGRES), (like, limit), answer_within)


_JOBS = (
    "SELECT name FROM jobs WHERE retired_at IS NULL AND name_key LIKE {mark} ESCAPE '!' ORDER BY name_key LIMIT {mark}"
)
_OTHERS = (
    "SELECT DISTINCT name FROM ({named}) AS named WHERE lower(name) LIKE {mark} ESCAPE '!' ORDER BY name LIMIT {mark}"
)
_DEFINED = "FROM jobs JOIN revisions USING (job_id, revision)"
_NAMED = {
    Kind.QUEUE: "SELECT {queue} AS name {defined} WHERE retired_at IS NULL UNION ALL SELECT name FROM queues",
    Kind.OWNER: "SELECT {owner} AS name {defined} WHERE retired_at IS NULL",
    Kind.TAG: "SELECT tag.value AS name {defined}, {tags} WHERE retired_at IS NULL",
    Kind.WORKER: "SELECT name FROM workers WHERE stopped_at IS NULL",
    Kind.NODE: "SELECT name FROM nodes",
}
# What a definition says, in each database's words.
_SQLITE = {
    "queue": "json_extract(definition, '$.queue')",
    "owner": "json_extract(definition, '$.owner')",
    "tags": "json_each(definition, '$.tags') AS tag",
}
_POSTGRES = {
    "queue": "definition::json ->> 'queue'",
    "owner": "definition::json ->> 'owner'",
    "tags": "json_array_elements_text(definition::json -> 'tags') AS tag(value)",
}


def _statement(kind: Kind, mark: str, words: dict[str, str]) -> str:
    if kind is Kind.JOB:
        return _JOBS.format(mark=mark)
    return _OTHERS.format(named=_NAMED[kind].format(defined=_DEFINED, **words), mark=mark)


def _of_sqlite(path: str, statement: str, values: tuple[str, int], answer_within: float) -> list[str]:
    from urllib.parse import quote, unquote

    try:
        with closing(sqlite3.connect(f"file:{quote(unquote(path))}?mode=ro", answer_within, uri=True)) as connection:
            return [name for (name,) in connection.execute(statement, values)]
    except sqlite3.Error as error:
        raise DatabaseUnreachable(f"{path}: {error}") from None


def _of_postgres(url: str, statement: str, values: tuple[str, int], answer_within: float) -> list[str]:
    import psycopg

    address = url.replace("postgresql+psycopg://", "postgresql://", 1)
    options = f"-c statement_timeout={max(round(answer_within * 1000), 1)} -c default_transaction_read_only=on"
    try:
        with psycopg.connect(
            address, connect_timeout=max(round(answer_within), 2), options=options, client_encoding="UTF8"
        ) as connection:
            return [name for (name,) in connection.execute(statement.encode(), values)]
    except psycopg.Error as error:
        raise DatabaseUnreachable(f"PostgreSQL: {error}") from None
