#!/usr/bin/env python3
"""Whether this container's node or worker is at work: exit 0 if the database has heard of it a moment ago.

What a container's health check runs: ``healthy.py nodes`` or ``healthy.py workers``. A process that hangs, or has lost
the database, is unhealthy after a while. Nothing is restarted for that: it goes on by itself once the database is back.
"""

import socket
import sys
from datetime import timedelta

from sexton.errors import SextonError
from sexton.process_settings import load_process_settings
from sexton.store import open_store
from sexton.store.protocol import StoreOptions

NODE_SILENT_FOR = timedelta(seconds=15)  # a node reports every second
ANSWER_WITHIN_SECONDS = 5.0


def silence(kind: str, host: str) -> str | None:
    """What is wrong with the process of `kind` on `host`, or None."""
    options = StoreOptions(
        url=load_process_settings({}).database,
        application="sexton health check",
        answer_within=ANSWER_WITHIN_SECONDS,
        read_only=True,
    )
    store = open_store(options)
    try:
        if kind == "nodes":
            limit = NODE_SILENT_FOR
            ages = [node.age for node in store.reads.nodes() if node.address == host]
        else:
            limit = 3 * store.edits.settings().heartbeat
            ages = [worker.age for worker in store.reads.workers() if worker.address == host]
    finally:
        store.close()
    if not ages:
        return f"the database has not heard of {host} among the {kind}"
    if min(ages) > limit:
        return f"{host} was heard of {min(ages).total_seconds():.0f} s ago, more than {limit.total_seconds():.0f} s"
    return None


if __name__ == "__main__":
    if sys.argv[1:] not in (["nodes"], ["workers"]):
        sys.exit("write healthy.py nodes, or healthy.py workers")
    try:
        sys.exit(silence(sys.argv[1], socket.gethostname()))
    except SextonError as error:
        sys.exit(str(error))
