"""How many runs a second one worker process makes, from pull to committed run row.

    .venv/bin/python -m bench.worker_throughput [--database postgresql|sqlite] [--runs 5000] [--slots 4]

PostgreSQL is a server of its own (fsync on, data on disk). Claims of 1,000 jobs are due beforehand; the clock runs
from the first grant to the last result. 200 claims at one instant are measured apart, by lateness. Beside the commands
stands what a bare loop over ``subprocess.Popen`` makes of the same program in the same minute, without a database.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select

from sexton.claims import Overlap, State
from sexton.store.tables import claims, runs
from sexton.targets import CommandTarget, PythonTarget, Target
from tests.support.claim_rows import claim_values
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.worker_trial import WorkerTrial

TARGETS: dict[str, Target] = {
    "python no-op": PythonTarget("tests.support.work_module:noop"),
    "/bin/true": CommandTarget(("/bin/true",)),
}
JOBS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--slots", type=int, default=4)
    options = parser.parse_args()
    for name, target in TARGETS.items():
        for overlap in (Overlap.QUEUE, Overlap.ALLOW):
            with trial(options.database) as one:
                rate = drain_rate(one, target, overlap, options.runs, options.slots)
            print(f"{name}, overlap {overlap.name.lower()}: {rate:,.0f} runs/s")
            if isinstance(target, CommandTarget):
                bare = popen_rate(target.argv, options.runs // 2)
                print(f"a bare Popen loop: {bare:,.0f}/s; the worker makes {rate / bare:.2f} of it")
        with trial(options.database) as one:
            p50, p99 = lateness_at_one_instant(one, target, options.slots)
        print(f"{name}, 200 at one instant: lateness p50 {p50:.0f} ms, p99 {p99:.0f} ms")


@contextlib.contextmanager
def trial(database: str) -> Iterator[WorkerTrial]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = stack.enter_context(ProcessGroup(folder))
        url = f"sqlite:///{folder}/ledger.db"
        if database == "postgresql":
            url = stack.enter_context(PostgresServer(durable=True)).create_database()
        yield stack.enter_context(contextlib.closing(WorkerTrial(processes, url)))


def drain_rate(one: WorkerTrial, target: Target, overlap: Overlap, count: int, slots: int) -> float:
    """Runs a second over a backlog."""
    add_claims(one, target, overlap, count, datetime.now(UTC) - timedelta(minutes=1))
    one.start_worker(slots=slots)
    await_ended(one, count)
    with one.rows.engine.begin() as connection:
        first, last = connection.execute(
            select(select(func.min(claims.c.granted_at)).scalar_subquery(), func.max(runs.c.finished_at))
        ).one()
    return float(count / (last - first).total_seconds())


def popen_rate(argv: tuple[str, ...], count: int) -> float:
    """Processes a second, one after another, with both outputs read as a worker reads them."""
    begun = time.perf_counter()
    for _ in range(count):
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True, check=True)
    return count / (time.perf_counter() - begun)


def lateness_at_one_instant(one: WorkerTrial, target: Target, slots: int) -> tuple[float, float]:
    """Lateness in ms, p50 and p99, of 200 claims of as many jobs, due together."""
    one.start_worker(slots=slots)
    warm = datetime.now(UTC) - timedelta(minutes=1)
    add_claims(one, target, Overlap.ALLOW, slots, warm)
    await_ended(one, slots)
    at = datetime.now(UTC) + timedelta(seconds=2)
    add_claims(one, target, Overlap.SKIP, 200, at, first_job=2000)
    await_ended(one, 200 + slots)
    with one.rows.engine.begin() as connection:
        late = sorted(connection.execute(select(runs.c.lateness_ms).where(runs.c.job_id >= 2000)).scalars())
    return statistics.median(late), late[int(len(late) * 0.99)]


def add_claims(
    one: WorkerTrial, target: Target, overlap: Overlap, count: int, at: datetime, first_job: int = 1
) -> None:
    """Claims of up to 1,000 jobs in turn, a microsecond apart."""
    jobs = min(JOBS, count)
    one.add_revisions(target, range(first_job, first_job + jobs))
    rows = [
        claim_values(first_job + number % jobs, at + timedelta(microseconds=number), overlap=int(overlap))
        for number in range(count)
    ]
    one.rows.add_many(rows)


def await_ended(one: WorkerTrial, count: int) -> None:
    """Asked twice a second: the count reads every claim."""
    what = f"{count} runs have succeeded"
    eventually(lambda: one.rows.states().get(State.SUCCEEDED, 0) >= count, 600, what, every=0.5)


if __name__ == "__main__":
    main()
