"""Job formats on PostgreSQL: an edit that needs a younger one raises the cluster's, if all who are at work know it."""

from __future__ import annotations

from typing import Any

import psycopg

from sexton.store.format_rules import too_old
from sexton.store.operation_rules import HEARD_WITHIN

# The lock is what makes it safe: whoever registers meanwhile reads this row FOR SHARE, and is seen below or refused.
_LOCK = "SELECT job_format FROM cluster WHERE id = 1 FOR UPDATE"
# A node of a release that knows no formats leaves those in the row that it found under its name.
_TOO_OLD = """
SELECT name, version FROM workers
WHERE stopped_at IS NULL AND seen_at > statement_timestamp() - %(heard)s AND job_format < %(format)s
UNION
SELECT name, version FROM nodes WHERE seen_at > statement_timestamp() - %(heard)s
  AND (job_format < %(format)s OR job_format_at IS DISTINCT FROM seen_at)
ORDER BY name
"""
_RAISE = "UPDATE cluster SET job_format = %(format)s WHERE id = 1"


def require_format(connection: psycopg.Connection[Any], needed: int, what: str) -> None:
    """In an open transaction, have the cluster admit only who knows this format. Raises ``Refused``."""
    row = connection.execute("SELECT job_format FROM cluster WHERE id = 1").fetchone()
    if row is not None and row[0] >= needed:
        return
    connection.execute(_LOCK)
    values = {"format": needed, "heard": HEARD_WITHIN}
    processes = connection.execute(_TOO_OLD, values).fetchall()
    if processes:
        raise too_old(what, processes)
    connection.execute(_RAISE, values)
