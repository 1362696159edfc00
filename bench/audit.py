"""The audit of a ledger of a million ticks: seconds, processor time and memory of a process of its own.

    .venv/bin/python -m bench.audit [--ticks 1000000] [--jobs 1000 10000] [--database sqlite postgresql]

A ledger is written whole, as a leader would have left it: every fifth job has its ticks in skip records of several
sizes, the others in claims; schedules are crons in five zones and intervals, from every 20 seconds to daily. Then
`sexton.store.ledger_snapshot.audit_ledger` is called in a fresh process, which prints how long it took. The ledger is
clean, so that an audit that finds something is a fault of the bench or of the audit. Goal: 30 s for a million ticks.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench import machine
from bench.measuring import show
from sexton.inputs import own_inputs
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.store import tables
from sexton.store.schema import upgrade
from sexton.targets import CommandTarget
from tests.support.postgres import PostgresServer

GOAL_SECONDS = 30.0
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe")
END = datetime(2026, 11, 1, 6, tzinfo=UTC)  # New York's clock changes that day, Berlin's a week before
_SKIP_SIZES = (1, 1, 7, 27, 100)
_AUDIT = """
import json, resource, sys, time
from datetime import UTC, datetime
from sexton.store import open_store
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import StoreOptions
store = open_store(StoreOptions(sys.argv[1], application="sexton cli", read_only=True))
began = time.monotonic(), time.process_time()
report = audit_ledger(store, datetime(1970, 1, 1, tzinfo=UTC), datetime.fromisoformat(sys.argv[2]))
print(json.dumps({"seconds": time.monotonic() - began[0], "processor": time.process_time() - began[1],
    "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "due": report.due, "jobs": report.jobs,
    "differences": len(report.differences)}))
"""
Row = tuple[Any, ...]


def definitions(jobs: int, each: int) -> Iterator[tuple[JobDefinition, datetime]]:
    """The jobs, and since when each is there: so that about ``each`` ticks fell due up to ``END``."""
    for number in range(jobs):
        minutes = (1, 5, 15, 60)[number % 4]
        part: dict[str, Any] = {"every_ms": 20_000, "anchor": "1970-01-01T00:00:00Z"}
        span = timedelta(seconds=20 * each)
        if number % 3:
            step = "*" if minutes == 1 else f"*/{minutes}" if minutes < 60 else str(number % 60)
            part, span = {"cron": f"{step} * * * *"}, timedelta(minutes=minutes * each)
        if number % 50 == 1:
            part, span = {"cron": f"{number % 60} {number % 24} * * *"}, timedelta(days=each)
        zone = ZONES[number % len(ZONES)]
        definition = JobDefinition(f"job-{number}", (part,), CommandTarget(("true",)), timezone=zone)
        yield definition, END - min(span, timedelta(days=400))


def ledger_rows(jobs: int, ticks: int) -> Iterator[tuple[str, Row]]:
    """``(table, values)`` of every row, in the order of the columns that ``COLUMNS`` names."""
    inputs = own_inputs().inputs_id
    for job_id, (definition, since) in enumerate(definitions(jobs, ticks // jobs), start=1):
        name, schedule_text = definition.name, definition.schedule_text(definition.name)
        yield "jobs", (job_id, name, name, name, 1, since, job_id)
        firing = definition.firing_text(name)
        yield "revisions", (job_id, 1, definition.to_text(), schedule_text, firing, inputs, since, since, "bench")
        yield "cursors", (job_id, END)
        due = list(schedule_from_spec(json.loads(schedule_text)).between(since, END))
        if job_id % 5:
            for tick in due:
                yield "claims", (job_id, tick, 1, 0, 3, "default", 0, 1, job_id, tick, False, 1, tick)
            continue
        after, sizes = since, itertools.cycle(_SKIP_SIZES)
        while due:
            some, due = due[: (size := next(sizes))], due[size:]
            yield "skips", (job_id, after, some[-1], len(some), "skipped", "late", 1, 1, some[-1])
            after = some[-1]


COLUMNS = {
    "jobs": "job_id, name, name_key, hash_seed, revision, created_at, changed",
    "revisions": "job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at, applied_by",
    "cursors": "job_id, at",
    "claims": "job_id, scheduled_at, revision, origin, state, queue, priority, overlap, slot, available_at,"
    " at_most_once, term, written_at",
    "skips": "job_id, after, upto, count, reason, detail, revision, term, decided_at",
}


def write_sqlite(url: str, rows: Iterator[tuple[str, Row]]) -> None:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA synchronous = OFF")
    for table, values in rows:
        marks = ", ".join("?" * len(values))
        plain = [tables.to_micros(value) if isinstance(value, datetime) else value for value in values]
        connection.execute(f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})", plain)
    connection.commit()
    connection.close()


def write_postgres(url: str, rows: Iterator[tuple[str, Row]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {table: (Path(folder) / table).open("w") for table in COLUMNS}
        for table, values in rows:
            files[table].write("\t".join(_copied(value) for value in values) + "\n")
        address = url.replace("postgresql+psycopg://", "postgresql://", 1)
        with psycopg.connect(address, autocommit=True) as connection:
            for table, file in files.items():
                file.close()
                with connection.cursor().copy(f"COPY {table} ({COLUMNS[table]}) FROM STDIN".encode()) as copy:
                    copy.write((Path(folder) / table).read_bytes())
            connection.execute("VACUUM ANALYZE")


def _copied(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value).replace("\\", "\\\\")


def audit(url: str, what: str, ticks: int) -> None:
    """Audit it in a process of its own, and show what that took."""
    done = subprocess.run(
        [sys.executable, "-c", _AUDIT, url, END.isoformat()], check=True, stdout=subprocess.PIPE, text=True
    )
    told = json.loads(done.stdout)
    assert told["differences"] == 0, told
    show(
        f"{what}, {told['due']:,} ticks of {told['jobs']:,} jobs",
        f"{told['seconds']:.1f} s ({told['processor']:.1f} s of this process's processor time), {told['mib']:.0f} MiB",
        f"{GOAL_SECONDS:g} s for 1,000,000",
        told["seconds"] <= GOAL_SECONDS * max(ticks / 1e6, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--database", nargs="*", default=["sqlite", "postgresql"])
    options = parser.parse_args()
    print(machine.describe())
    for jobs in options.jobs:
        for database in options.database:
            began = time.monotonic()
            if database == "sqlite":
                with tempfile.TemporaryDirectory() as folder:
                    url = f"sqlite:///{folder}/ledger.db"
                    upgrade(url)
                    write_sqlite(url, ledger_rows(jobs, options.ticks))
                    print(f"  written in {time.monotonic() - began:.0f} s")
                    audit(url, "SQLite", options.ticks)
                continue
            with PostgresServer(durable=False) as server:
                upgrade(url := server.create_database())
                write_postgres(url, ledger_rows(jobs, options.ticks))
                print(f"  written in {time.monotonic() - began:.0f} s")
                audit(url, "PostgreSQL", options.ticks)


if __name__ == "__main__":
    main()
