"""Claims written per second by the leader's commit, against the raw insert of the same rows in the same run.

    .venv/bin/python -m bench.claims_written [--claims 100000] [--rounds 3] [--jobs 10000]

A durable server (fsync on), one connection, batches of 1,000 claims. "raw" is INSERT .. SELECT FROM unnest with the
same columns, indexes and batch size and prepared lists: nothing can write these rows faster from Python. The goal of
the commit, with its fence, its compare-and-set on the cursors and its notification, is 0.7 of that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from psycopg import sql

from sexton.claims import Origin
from sexton.decisions import CursorMove, NewClaim, TickBatch
from sexton.job_rules import FiringRules
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.store import PostgresStore
from sexton.store.postgres.tick_commit import commit_values
from sexton.store.protocol import StoreOptions
from sexton.store.schema import upgrade
from sexton.terms import ElectedBy
from tests.support.postgres import PostgresServer

BATCH = 1_000
_TRUNCATE = "TRUNCATE claims, claims_raw, cursors, jobs"
_FILL = """
INSERT INTO cursors (job_id, at) SELECT g, %s::timestamptz FROM generate_series(1, %s) g
"""
_RAW = b"""
INSERT INTO claims_raw (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, start_by,
  blocked, at_most_once, jitter_ms, term, written_at)
SELECT job_id, scheduled_at, revision, origin, queue, priority, overlap, job_id, available_at, start_by, false,
  at_most_once, jitter_ms, 1, clock_timestamp()
FROM unnest(%(c_jobs)b::bigint[], %(c_ticks)b::timestamptz[], %(c_revisions)b::integer[], %(c_origins)b::smallint[],
    %(c_queues)b::text[], %(c_priorities)b::smallint[], %(c_overlaps)b::smallint[], %(c_available)b::timestamptz[],
    %(c_start_by)b::timestamptz[], %(c_once)b::boolean[], %(c_jitter)b::integer[])
  d(job_id, scheduled_at, revision, origin, queue, priority, overlap, available_at, start_by, at_most_once, jitter_ms)
ON CONFLICT DO NOTHING
"""


def batches(start: datetime, jobs: int, claims: int, ticks_each: int) -> list[TickBatch]:
    """Every job gets ``ticks_each`` ticks a batch, in turn, until there are ``claims`` of them."""
    firing = FiringRules()
    jobs_each = BATCH // ticks_each
    cursors = dict.fromkeys(range(1, jobs + 1), start)
    made: list[TickBatch] = []
    for number in range(claims // BATCH):
        first = number * jobs_each % jobs
        moves: list[CursorMove] = []
        due: list[NewClaim] = []
        for job_id in range(first + 1, first + jobs_each + 1):
            was = cursors[job_id]
            ticks = [was + timedelta(seconds=second) for second in range(1, ticks_each + 1)]
            cursors[job_id] = ticks[-1]
            moves.append(CursorMove(job_id, 0, was, ticks[-1]))
            due += (
                NewClaim(job_id, at, 1, Origin.SCHEDULE, at, at + timedelta(seconds=60), timedelta(0), firing)
                for at in ticks
            )
        made.append(TickBatch(1, start, tuple(moves), tuple(due)))
    return made


def race(store: PostgresStore, work: list[TickBatch]) -> tuple[float, float]:
    """Seconds of the raw inserts and of the commits, batch by batch in turn: what else the machine does hits both."""
    raw = committed = 0.0
    for batch in work:
        values = commit_values(batch)
        with store.connection.autocommit() as connection:
            began = time.monotonic()
            connection.execute(_RAW, values)
            raw += time.monotonic() - began
        fresh = replace(batch, planned_at=store.now())
        began = time.monotonic()
        result = store.ticks.commit(fresh)
        committed += time.monotonic() - began
        assert (result.moved, result.swallowed) == (len(batch.moves), 0), result
    return raw, committed


def measure(store: PostgresStore, jobs: int, claims: int, rounds: int) -> Iterator[tuple[str, float, float]]:
    """``(what, raw claims/s, committed claims/s)``; the first round warms up and does not count."""
    for number in range(rounds + 1):
        for ticks_each in (1, 10):
            start = store.now().replace(microsecond=0)
            work = batches(start, jobs, claims, ticks_each)
            with store.connection.autocommit() as connection:
                connection.execute(sql.SQL(_TRUNCATE))
                connection.execute(_FILL, [start, jobs])
                for statement in ("VACUUM ANALYZE cursors", "ANALYZE claims", "CHECKPOINT"):
                    connection.execute(sql.SQL(statement))
            raw, committed = race(store, work)
            if number:
                yield f"{ticks_each} tick(s) a job", claims / raw, claims / committed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10_000)
    arguments = parser.parse_args()
    ratios: dict[str, list[float]] = {}
    with PostgresServer(durable=True, options={"max_wal_size": "8GB", "shared_buffers": "512MB"}) as server:
        url = server.create_database()
        upgrade(url)
        store = PostgresStore(PostgresConnection(StoreOptions(url, answer_within=120.0)))
        store.terms.take(0, "bench", ElectedBy.DATABASE)
        with store.connection.autocommit() as connection:
            connection.execute("CREATE TABLE claims_raw (LIKE claims INCLUDING ALL)")
        for what, raw, committed in measure(store, arguments.jobs, arguments.claims, arguments.rounds):
            ratios.setdefault(what, []).append(committed / raw)
            print(f"{what:>18}: raw {raw:9,.0f}/s  commit {committed:9,.0f}/s  ratio {committed / raw:.2f}")
        store.close()
    for what, found in ratios.items():
        print(f"{what:>18}: median ratio {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    main()
