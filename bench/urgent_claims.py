"""How soon an urgent claim starts while a worker drains a backlog, and what idle workers ask of the database.

    .venv/bin/python -m bench.urgent_claims [--claims 60000] [--urgent 100] [--slots N] [--idle-seconds 30]

One `sexton worker` drains no-ops of priority 0; meanwhile claims of priority 2 are written, one every 50 ms or so, each
committed with the notification that a leader sends. What is told is the time from before that commit to the start of
its run. Then two workers without work are watched: transactions of their database a second, as PostgreSQL counts them.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from bench import machine
from bench.drain import POSTGRES
from bench.drain_sides import JOBS, LONG, SextonSide, plain
from bench.measuring import percentile, show
from sexton.claims import Overlap
from sexton.store.protocol import Channel
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually

URGENT_GOAL_MS = 15.0
IDLE_GOAL = 1.0  # transactions a second of each worker
PAUSE = 0.05
SETTLED_AFTER = 8.0  # seconds; longer than a worker's poll

_URGENT = """INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at,
  at_most_once, term, written_at)
 VALUES (%(job)s, %(at)s, 1, 0, 'default', 2, 0, %(job)s, %(at)s, false, 1, %(at)s)"""
_LATE = """SELECT 1000 * extract(epoch FROM r.started_at - r.scheduled_at)::float8
 FROM runs r JOIN claims c USING (job_id, scheduled_at) WHERE c.priority = 2"""
_HAS_BEGUN = "SELECT EXISTS (SELECT 1 FROM runs)"
_TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"


def urgent_lateness(connection: psycopg.Connection[Any], side: SextonSide, count: int) -> list[float]:
    """Milliseconds from before the commit of each urgent claim to its start, as long as the drain goes on."""
    eventually(lambda: _one(connection, _HAS_BEGUN), within=LONG, what="the drain has begun")
    time.sleep(1)  # its pace has settled
    for number in range(count):
        at = datetime.now(UTC)
        with connection.transaction():
            connection.execute(_URGENT, {"job": number % JOBS + 1, "at": at})
            connection.execute("SELECT pg_notify(%s, '')", (Channel.WORK.value,))
        if not _one(connection, side.unfinished):
            break
        time.sleep(PAUSE * random.uniform(0.5, 1.5))
    eventually(lambda: not _one(connection, side.unfinished), within=LONG, what="the drain is over")
    return [row[0] for row in connection.execute(_LATE).fetchall()]


def idle_transactions(server: PostgresServer, database: str, seconds: float) -> float:
    """Transactions a second in a database; counted from another one, where the counting is not counted."""
    with psycopg.connect(plain(server.url()), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")  # what the drain left for it is not the workers'
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(SETTLED_AFTER)
        first = _one(connection, _TRANSACTIONS, database)
        time.sleep(seconds)
        return float((_one(connection, _TRANSACTIONS, database) - first) / seconds)


def _one(connection: psycopg.Connection[Any], statement: str, *values: str) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    assert row is not None
    return row[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=60_000)
    parser.add_argument("--urgent", type=int, default=100)
    parser.add_argument("--slots", type=int, help="of each worker; as many as the worker takes by default")
    parser.add_argument("--idle-seconds", type=float, default=30.0)
    options = parser.parse_args()
    print(machine.describe())
    side = SextonSide("drain", Overlap.QUEUE, options.slots)
    with (
        PostgresServer(durable=True, options=POSTGRES) as server,
        TemporaryDirectory() as folder,
        ProcessGroup(Path(folder)) as processes,
    ):
        url = server.create_database()
        side.fill(processes, url, options.claims)
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            side.start(processes, url, Path(folder) / "starts")
            late = urgent_lateness(connection, side, options.urgent)
        side.start(processes, url, Path(folder) / "starts")
        each = idle_transactions(server, url.rpartition("/")[2], options.idle_seconds) / 2
    middle = statistics.median(late)
    told = f"p50 {middle:.1f}, p99 {percentile(late, 0.99):.0f} ms, {len(late)} claims"
    show("an urgent claim during a drain: start", told, f"p50 {URGENT_GOAL_MS:g} ms", middle <= URGENT_GOAL_MS)
    show("an idle worker: transactions a second", f"{each:.2f}", f"below {IDLE_GOAL:g}", each < IDLE_GOAL)


if __name__ == "__main__":
    main()
