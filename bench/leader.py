"""A leader at work: memory and CPU of the scheduler process with 10,000 jobs at 100 ticks a second.

    .venv/bin/python -m bench.leader [--jobs 10000] [--rate 100] [--seconds 30] [--horizon 60s]

A real `sexton scheduler` process on a durable PostgreSQL of its own; no workers. CPU is the process's own (user and
system) over the measured seconds, as a share of one core. Goals: 150 MB, 10 %.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.store.schema import upgrade
from sexton.targets import CommandTarget
from tests.support.postgres import PostgresServer

SEXTON = Path(sys.executable).parent / "sexton"


def create_jobs(store: Store, jobs: int, rate: float) -> None:
    """`every` jobs of one interval whose anchors spread their ticks evenly: `rate` ticks a second in all."""
    interval_ms = round(jobs / rate * 1000)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for first in range(0, jobs, 500):
        changes = []
        for number in range(first, min(first + 500, jobs)):
            anchor = epoch + timedelta(milliseconds=interval_ms * number // jobs)
            part = {"every_ms": interval_ms, "anchor": anchor.isoformat()}
            definition = JobDefinition(f"job-{number}", (part,), CommandTarget(("true",)))
            changes.append(JobChange(ChangeKind.CREATE, definition=definition))
        store.edits.edit(changes, "bench")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def wait_for_claims(url: str, seconds: float) -> None:
    """Return once the horizon is full: the newest claim is as far ahead as it will be."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        for _ in range(600):
            row = connection.execute("SELECT max(scheduled_at) - now() > %s FROM claims", [timedelta(seconds=seconds)])
            if (row.fetchone() or (None,))[0]:
                return
            time.sleep(0.1)
    raise SystemExit("the leader wrote no claims within a minute")


def count_claims(url: str) -> int:
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM claims").fetchone()
    assert row is not None
    return int(row[0])


def measure(pid: int, url: str, seconds: float) -> None:
    before, started, claims = cpu_seconds(pid), time.monotonic(), count_claims(url)
    time.sleep(seconds)
    spent, passed = cpu_seconds(pid) - before, time.monotonic() - started
    after = count_claims(url)
    print(f"  claims written   {(after - claims) / passed:8.1f} /s")
    print(f"  CPU              {100 * spent / passed:8.1f} % of a core")
    print(f"  memory (RSS)     {resident_mib(pid):8.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--horizon", default="60s")
    options = parser.parse_args()
    with PostgresServer(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        url = server.create_database()
        upgrade(url)
        store = open_store(StoreOptions(url))
        store.edits.set_setting("horizon", options.horizon, "bench")
        create_jobs(store, options.jobs, options.rate)
        store.close()
        arguments = [str(SEXTON), "--database", url, "--coordinator", "database:", "scheduler", "--name", "bench"]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(arguments, cwd=folder, stderr=log, stdout=log)
        try:
            wait_for_claims(url, 55 if options.horizon == "60s" else -1)
            print(f"{options.jobs:,} jobs, {options.rate:g} ticks/s, horizon {options.horizon}")
            measure(process.pid, url, options.seconds)
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
