"""Job formats on SQLite: `sexton.store.postgres.formats` in one write transaction."""

from __future__ import annotations

import sqlite3

from sexton.store.format_rules import too_old
from sexton.store.operation_rules import HEARD_WITHIN
from sexton.store.tables import from_micros, to_micros

_TOO_OLD = """
SELECT name, version FROM workers WHERE stopped_at IS NULL AND seen_at > ?1 AND job_format < ?2
UNION SELECT name, version FROM nodes
WHERE seen_at > ?1 AND (job_format < ?2 OR job_format_at IS NOT seen_at) ORDER BY name
"""


def require_format(connection: sqlite3.Connection, now: int, needed: int, what: str) -> None:
    """In an open write transaction, have the cluster admit only who knows this format. Raises ``Refused``."""
    row = connection.execute("SELECT job_format FROM cluster WHERE id = 1").fetchone()
    if row is not None and row[0] >= needed:
        return
    heard_since = to_micros(from_micros(now) - HEARD_WITHIN)
    processes = connection.execute(_TOO_OLD, (heard_since, needed)).fetchall()
    if processes:
        raise too_old(what, processes)
    connection.execute("UPDATE cluster SET job_format = ? WHERE id = 1", (needed,))
