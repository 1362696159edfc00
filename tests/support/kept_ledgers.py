"""Empty ledgers on a PostgreSQL server that are lent again and again, as each new database is 300 files to copy.

Whoever borrows one gets what a new copy of the template would be: its rows, its sequences, nobody connected, a cluster
id of its own. That is made when it is lent, so that nothing that outlived the last borrower's test can spoil it. One
whose tables, columns, rules, statistics or settings are others than the template's is dropped, and a new copy is lent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from tests.support.ledgers import copy_ledger, make_own
from tests.support.postgres import PostgresServer

_CUT_OFF = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
# What tests add to count or to forbid; the triggers that call it go with it.
_ADDED = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND oid <> ALL (%s)"
_FUNCTIONS = "SELECT coalesce(array_agg(oid), '{}') FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
# All but rows: what TRUNCATE and the counting of rows change in the catalogs is left out.
_SHAPE = """
SELECT md5(concat_ws('|',
  (SELECT string_agg(concat_ws(',', oid, relname, relkind, relnatts, relchecks, relowner, relacl, reloptions,
     relrowsecurity, relreplident), ';' ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
  (SELECT concat(count(*), ',', max(xmin::text::bigint)) FROM pg_attribute WHERE attrelid >= 16384),
  (SELECT concat(count(*), ',', max(xmin::text::bigint)) FROM pg_attrdef),
  (SELECT concat(count(*), ',', max(xmin::text::bigint)) FROM pg_constraint),
  (SELECT concat(count(*), ',', max(xmin::text::bigint)) FROM pg_trigger),
  (SELECT concat(count(*), ',', max(xmin::text::bigint)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
  (SELECT string_agg(concat_ws(',', seqrelid, seqincrement, seqmin, seqmax, seqcache, seqcycle), ';' ORDER BY seqrelid)
   FROM pg_sequence),
  (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
  (SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
   WHERE datname = current_database())
))
"""
_WITH_ROWS = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""
_LAST_VALUES = "SELECT seqrelid::bigint, pg_sequence_last_value(seqrelid) FROM pg_sequence"
_SET_BACK = """
SELECT setval(seqrelid::regclass, coalesce(value, seqstart), value IS NOT NULL)
FROM pg_sequence JOIN unnest(%s::bigint[], %s::bigint[]) AS kept (sequence, value) ON sequence = seqrelid
WHERE pg_sequence_last_value(seqrelid) IS DISTINCT FROM value
"""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A database, and what it was when it was new: its shape, its functions, the rows of tables, sequences' values."""

    url: str
    shape: str
    functions: list[int]
    rows: Mapping[str, bytes]
    last_values: Mapping[int, int | None]


class KeptLedgers:
    """The ledgers of one server. ``template``: the database that each begins as a copy of."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template
        self._free: list[_Kept] = []

    @contextlib.contextmanager
    def lent(self) -> Iterator[str]:
        """The url of an empty ledger that nobody else uses."""
        kept = self._emptied() or self._new()
        yield kept.url
        self._free.append(kept)

    def _emptied(self) -> _Kept | None:
        while self._free:
            kept = self._free.pop()
            with contextlib.suppress(psycopg.Error):
                if self._empty(kept):
                    return kept
            self._server.drop_database(kept.url)
        return None

    def _new(self) -> _Kept:
        url = copy_ledger(self._server, self._template)
        with self._connect(url) as connection:
            tables = [name for (name,) in connection.execute(_WITH_ROWS)]
            return _Kept(
                url,
                _one(connection, _SHAPE),
                _one(connection, _FUNCTIONS),
                {name: _copied(connection, name) for name in tables},
                dict(connection.execute(_LAST_VALUES).fetchall()),
            )

    def _empty(self, kept: _Kept) -> bool:
        """Whether it is as a new one again."""
        with self._connect(kept.url) as connection:
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute(_CUT_OFF)
            for (function,) in connection.execute(_ADDED, [kept.functions]).fetchall():
                connection.execute(f"DROP FUNCTION {function} CASCADE".encode())
            if _one(connection, _SHAPE) != kept.shape:
                return False
            # Neither foreign keys nor triggers are asked; all rows come back together.
            connection.execute("SET LOCAL session_replication_role = replica")
            tables = ", ".join(name for (name,) in connection.execute(_WITH_ROWS).fetchall())
            connection.execute(f"TRUNCATE {tables} CASCADE".encode())
            for name, rows in kept.rows.items():
                with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                    copy.write(rows)
            values = kept.last_values
            connection.execute(_SET_BACK, [list(values), list(values.values())])
            make_own(connection)
        return True

    def _connect(self, url: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self._server.conninfo(url.rpartition("/")[2]))


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def _copied(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.SQL(table))) as copy:
        return b"".join(copy)
