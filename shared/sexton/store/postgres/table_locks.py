"""A change of the schema takes tables for itself, one after the other, and must not hold up the cluster by that.

Whoever waits for a table that a long reader uses (a backup, an audit) has others wait behind it, also for the tables
that it has already. So it waits for a second, gives everything back, and tries anew once those others are through.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from psycopg import errors
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from sexton.errors import Refused
from sexton.store import tables
from sexton.store.postgres.connection import PostgresConnection, place

_Result = TypeVar("_Result")
BRIEFLY = "SET LOCAL lock_timeout = '1s'"
_PATIENCE_SECONDS = 600.0
_PAUSE_SECONDS = 3.0  # between two tries: what waited is through by then
_HOLDERS = text("""
SELECT coalesce(nullif(application_name, ''), 'a program of ' || usename) || ' (pid ' || pid || ', for '
  || date_trunc('second', clock_timestamp() - xact_start) || ')'
FROM pg_stat_activity a WHERE datname = current_database() AND pid <> pg_backend_pid() AND EXISTS (
  SELECT 1 FROM pg_locks l JOIN pg_class t ON t.oid = l.relation
  WHERE l.pid = a.pid AND l.granted AND t.relname = ANY (:tables))
ORDER BY xact_start LIMIT 3
""")


def until_free(
    connection: PostgresConnection, attempt: Callable[[], _Result], told: Callable[[str], None] | None
) -> _Result:
    """What ``attempt`` returns, which gives up after waiting ``BRIEFLY``; ``told`` who is in the way, once.

    Raises ``Refused`` with their names where they stay for ten minutes.
    """
    deadline, is_told = time.monotonic() + _PATIENCE_SECONDS, False
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            if not isinstance(error.orig, errors.LockNotAvailable | errors.DeadlockDetected):
                raise
        who = _holders(connection)
        if time.monotonic() >= deadline:
            raise Refused(
                f"the tables in {place(connection.options.url.replace('+psycopg', '', 1))} stay in use by {who}",
                hint="nothing was changed; wait for its end or end it, and run this again",
            )
        if told is not None and not is_told:
            told(f"waiting for {who}, which uses these tables; the cluster goes on meanwhile")
            is_told = True
        time.sleep(_PAUSE_SECONDS)


def _holders(connection: PostgresConnection) -> str:
    with connection.reading() as reading:
        found = reading.execute(_HOLDERS, {"tables": list(tables.metadata.tables)}).scalars().all()
    return ", ".join(found) or "somebody"
