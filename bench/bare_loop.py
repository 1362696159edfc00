"""The worker's own statements in a bare loop: what PostgreSQL and one connection make of them with no worker around.

    python -m bench.bare_loop BATCH      (BENCH_DATABASE, BENCH_STARTS as for the peers' programs)

A turn is one pipelined transaction: complete, promote, pull, look ahead, with the statements of `GrantStore.step` and
parameters packed as it packs them. No run is run: a result says that it succeeded the moment it was granted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from bench.peer_programs.first_call import note_first, told
from sexton.store.postgres import arrays, completion, pull

WORKER = 1
LEASE = timedelta(seconds=30)
QUEUES = ("default",)
JOB, TICK, TOKEN = (pull.GRANT_COLUMNS.split(", ").index(name) for name in ("job_id", "scheduled_at", "token"))
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def drain(url: str, batch: int) -> None:
    """Turn until nothing is ready any more, then stay: whoever measures reads the backend's processor time."""
    held: list[Any] = []
    with psycopg.connect(url, autocommit=True, options="-c jit=off -c TimeZone=UTC") as connection:
        arrays.register(connection)
        pull.plan_by_index(connection)
        while True:
            with connection.pipeline():
                connection.execute(b"BEGIN")
                if held:
                    complete(connection, held)
                pulled = pull.pull(connection, WORKER, LEASE, batch, QUEUES)
                pull.look_ahead(connection, QUEUES)
                connection.execute(b"COMMIT")
            rows = pulled.fetchall()
            held = [row for row in rows if row[JOB] is not None]
            if held:
                note_first()
            elif not rows[0][-1]:
                signal.pause()


def complete(connection: psycopg.Connection[Any], held: Sequence[Any]) -> None:
    now = datetime.now(UTC)
    jobs, ticks = arrays.big_ints([row[JOB] for row in held]), arrays.instants([row[TICK] for row in held])
    at = arrays.instants([now] * len(held))
    arguments = {
        "jobs": jobs,
        "ticks": ticks,
        "tokens": arrays.big_ints([row[TOKEN] for row in held]),
        "started": at,
        "finished": at,
        "never": NEVER,
        "worker": WORKER,
    }
    connection.execute(completion._PLAIN, arguments, prepare=True)
    connection.execute(completion._PROMOTE_AFTER, {"jobs": jobs, "ticks": ticks}, prepare=True)


if __name__ == "__main__":
    drain(told()[0], int(sys.argv[1]))
