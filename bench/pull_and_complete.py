"""How many runs a second `GrantStore.step` takes from ready to committed, against the bare statements.

    .venv/bin/python -m bench.pull_and_complete [--claims 40000] [--jobs 10000] [--batch 200] [--rounds 3]
        [--database URL]

One round each of: the bare loop (pull, complete and promote with the least columns that keep a slot exclusive, one
pipelined transaction, plain psycopg) and `step` with results of no-op runs; with one worker process and with two;
interleaved, medians of the ratios. Without --database it starts a PostgreSQL server of its own, fsync on.
Worker processes share the machine with the server: compare ratios, not rates, between machines.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from sexton.claims import State
from sexton.store import open_store
from sexton.store.postgres import grants as _loaded  # noqa: F401 - before the clock starts, as psycopg is
from sexton.store.protocol import Grant, RunResult, StepRequest, StoreOptions
from sexton.store.schema import upgrade
from tests.support.postgres import PostgresServer

START = datetime(2026, 1, 1, tzinfo=UTC)

_RAW_COMPLETE = """WITH d AS MATERIALIZED (
  SELECT * FROM unnest(%(job)b::bigint[], %(tick)b::timestamptz[], %(token)b::bigint[], %(finished)b::timestamptz[])
   d(job_id, scheduled_at, token, finished_at)),
 ok AS (UPDATE claims c SET state = 3, finished_at = d.finished_at, lease_expires_at = NULL FROM d
  WHERE c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at AND c.token = d.token AND c.finished_at IS NULL
  RETURNING c.job_id, c.scheduled_at, c.revision, c.attempt, c.token, c.worker_id, c.finished_at, c.slot),
 kept AS (INSERT INTO runs (job_id, scheduled_at, revision, attempt, token, worker_id, finished_at, outcome)
  SELECT job_id, scheduled_at, revision, attempt, token, worker_id, finished_at, 3 FROM ok),
 freed AS (UPDATE slots s SET token = NULL FROM ok WHERE s.slot = ok.slot AND s.token = ok.token)
SELECT token FROM ok"""
_RAW_PROMOTE = """WITH head AS MATERIALIZED (
  SELECT w.ctid AS tid FROM unnest(%(slot)b::bigint[]) f(slot) JOIN slots s ON s.slot = f.slot AND s.token IS NULL
  CROSS JOIN LATERAL (SELECT ctid FROM claims WHERE state = 2 AND slot = f.slot
   ORDER BY scheduled_at LIMIT 1 FOR UPDATE SKIP LOCKED) w)
 UPDATE claims c SET state = 0 FROM head WHERE c.ctid = head.tid"""
_RAW_PULL = """WITH pick AS MATERIALIZED (
  SELECT ctid AS tid, scheduled_at, slot FROM claims
  WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = 'default' AND priority = 0
   AND available_at <= statement_timestamp() ORDER BY available_at LIMIT {batch} FOR UPDATE SKIP LOCKED),
 locked AS MATERIALIZED (SELECT slot, token FROM slots WHERE slot IN (SELECT slot FROM pick) FOR UPDATE SKIP LOCKED),
 verdict AS MATERIALIZED (SELECT p.tid, CASE WHEN l.token IS NULL
   AND row_number() OVER (PARTITION BY p.slot ORDER BY p.scheduled_at) = 1 THEN 1 ELSE 2 END AS state
  FROM pick p JOIN locked l USING (slot)),
 moved AS (UPDATE claims c SET state = v.state, attempt = c.attempt + (v.state = 1)::int,
   token = CASE WHEN v.state = 1 THEN nextval('tokens') END, worker_id = CASE WHEN v.state = 1 THEN 1 END,
   lease_expires_at = CASE WHEN v.state = 1 THEN statement_timestamp() + interval '30 s' END
  FROM verdict v WHERE c.ctid = v.tid RETURNING c.state, c.job_id, c.scheduled_at, c.token, c.attempt, c.slot),
 taken AS (UPDATE slots s SET token = m.token FROM moved m WHERE m.state = 1 AND s.slot = m.slot)
SELECT m.job_id, m.scheduled_at, m.token, m.attempt, m.slot, k.picked
 FROM (SELECT count(*) AS picked FROM pick) k LEFT JOIN moved m ON m.state = 1"""


def run_raw(url: str, batch: int) -> int:
    """Drain the queue with the bare statements; how many runs it wrote."""
    done, held = 0, []
    pull = _RAW_PULL.format(batch=batch)
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            with connection.pipeline():
                connection.execute("BEGIN")
                if held:
                    arguments = {
                        "job": [row[0] for row in held],
                        "tick": [row[1] for row in held],
                        "token": [row[2] for row in held],
                        "finished": [datetime.now(UTC)] * len(held),
                    }
                    completed = connection.execute(_RAW_COMPLETE, arguments, prepare=True)
                    connection.execute(_RAW_PROMOTE, {"slot": [row[4] for row in held]}, prepare=True)
                pulled = connection.cursor().execute(pull, prepare=True, binary=True)
                connection.execute("COMMIT")
            if held:
                done += len(completed.fetchall())
            rows = pulled.fetchall()
            held = [row for row in rows if row[0] is not None]
            if not held and not rows[0][5]:
                return done


def run_steps(url: str, batch: int) -> int:
    """Drain the queue with `step`; how many results it accepted."""
    store = open_store(StoreOptions(url))
    worker_id = store.grants.register("bench", "", "0", 0, ["default"], batch)
    done, results = 0, ()
    while True:
        request = StepRequest(worker_id, ("default",), batch, timedelta(seconds=30), 10, results)
        step = store.grants.step(request)
        done += len(step.accepted)
        now = datetime.now(UTC)
        results = tuple(_succeeded(grant, now) for grant in step.grants)
        if not results and not step.picked:
            store.close()
            return done


def _succeeded(grant: Grant, now: datetime) -> RunResult:
    return RunResult(
        grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now, started_at=now, exit_code=0
    )


def fill(url: str, claims: int, jobs: int) -> None:
    """One slot per job, and the claims of all jobs, in the order in which a leader writes them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE claims, slots, runs, outputs")
        connection.execute("INSERT INTO slots (slot, number) SELECT n, 1 FROM generate_series(1, %s) n", (jobs,))
        connection.execute(
            """INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot,
                available_at, at_most_once, term, written_at)
             SELECT n %% %(jobs)s + 1, at, 1, 0, 'default', 0, 2, n %% %(jobs)s + 1, at, false, 1, at
             FROM (SELECT n, %(start)s + (n / %(jobs)s) * interval '1 minute' AS at
              FROM generate_series(0, %(claims)s - 1) n) ticks""",
            {"jobs": jobs, "claims": claims, "start": START},
        )
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def measure(drain: Callable[[str, int], int], url: str, batch: int, workers: int, claims: int) -> float:
    """Runs a second of so many worker processes, from the first start to the last end."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(workers + 1)
    done = context.Queue()
    processes = [context.Process(target=_drain, args=(drain, url, batch, gate, done)) for _ in range(workers)]
    for process in processes:
        process.start()
    gate.wait(60)
    began = time.monotonic()
    total = sum(done.get(timeout=300) for _ in processes)
    seconds = time.monotonic() - began
    for process in processes:
        process.join()
    assert total == claims, f"{total} of {claims} claims were run"
    return claims / seconds


def _drain(drain: Callable[[str, int], int], url: str, batch: int, gate: Any, done: Any) -> None:
    gate.wait(60)
    done.put(drain(url, batch))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=40_000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--database", help="the url of an empty database; its ledger is overwritten")
    options = parser.parse_args()
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
    with nullcontext() if options.database else PostgresServer(durable=True, options=settings) as server:
        url = options.database or server.create_database()
        url = url.replace("postgresql+psycopg://", "postgresql://", 1)
        upgrade(url)
        for workers in options.workers:
            rates: dict[str, list[float]] = {"raw": [], "step": []}
            for _ in range(options.rounds):
                for name, drain in (("raw", run_raw), ("step", run_steps)):
                    fill(url, options.claims, options.jobs)
                    rates[name].append(measure(drain, url, options.batch, workers, options.claims))
            ratios = [step / raw for step, raw in zip(rates["step"], rates["raw"], strict=True)]
            print(
                f"{workers} worker(s), batch {options.batch}: raw {statistics.median(rates['raw']):,.0f}/s, "
                f"step {statistics.median(rates['step']):,.0f}/s, "
                f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})"
            )


if __name__ == "__main__":
    main()
