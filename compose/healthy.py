#!/usr/bin/env python3
"""Whether this container's node or worker is at work: exit 0 if the database has heard of it a moment ago.

What a container's health check runs: ``healthy.py nodes`` or ``healthy.py workers``. A process that hangs, or has lost
the database, is unhealthy after a while. Nothing is restarted for that: it goes on by itself once the database is back.

It imports nothing of Sexton but asks by itself: it runs every half minute in each container, and loading the store
would cost three times as much as the answer.
"""

import os
import socket
import sys
from pathlib import Path

import psycopg

SILENT_FOR_SECONDS = {"nodes": 15, "workers": 60}  # a node reports every second, a worker every `heartbeat` (10 s)
QUERIES = {
    "nodes": "SELECT extract(epoch FROM clock_timestamp() - max(seen_at)) FROM nodes WHERE address = %s",
    "workers": "SELECT extract(epoch FROM clock_timestamp() - max(seen_at)) FROM workers WHERE address = %s",
}


def trouble(kind: str, host: str, url: str) -> str | None:
    """What is wrong with the process of `kind` on `host`, or None."""
    try:
        with psycopg.connect(url, connect_timeout=15, application_name="sexton health check") as connection:
            row = connection.execute(QUERIES[kind], [host]).fetchone()
    except psycopg.Error as error:
        return f"the database cannot be asked ({type(error).__name__})"
    if row is None or row[0] is None:
        return f"the database has not heard of {host} among the {kind}"
    if row[0] > SILENT_FOR_SECONDS[kind]:
        return f"{host} was heard of {row[0]:.0f} s ago, more than {SILENT_FOR_SECONDS[kind]} s"
    return None


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in QUERIES:
        sys.exit("write healthy.py nodes, or healthy.py workers")
    address = os.environ.get("SEXTON_DATABASE") or Path(os.environ["SEXTON_DATABASE_FILE"]).read_text().strip()
    sys.exit(trouble(sys.argv[1], socket.gethostname(), address.replace("postgresql+psycopg:", "postgresql:", 1)))
