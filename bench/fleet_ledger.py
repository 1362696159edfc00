"""A ledger of a large fleet for the console's figures: the scene's cluster, 50,000 jobs, millions of ended runs.

Runs and claims are made inside the database, as no client writes millions of rows in a minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, insert, text

from sexton.jobs import JobDefinition
from sexton.store import indexes as indexes  # gives the tables theirs
from sexton.store import tables
from sexton.store.schema import upgrade
from sexton.targets import CommandTarget
from tests.support import scene

FIRST_JOB = 100
FIRST_TOKEN = 1_000_000_000
_WORDS = ("billing", "sync", "export", "report", "backup", "train", "index", "mail")
_QUEUES = ("default", "gpu", "reports", "batch")
_OWNERS = ("data", "payroll", "infra", "research", "web")
_STEP_MICROS = 520_000  # between two runs' ends: five million in a month
_INDEXES = ("runs_claim", "runs_finished", "runs_failed")


def write_ledger(url: str, jobs: int, runs: int, now: datetime) -> None:
    """Fill an empty database."""
    upgrade(url)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        scene.seed(connection, now)
        _write_jobs(connection, jobs, now)
    _write_runs(engine, jobs, runs, now)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE" if engine.dialect.name == "postgresql" else "ANALYZE")
    engine.dispose()


def _write_jobs(connection: Connection, jobs: int, now: datetime) -> None:
    rows: dict[Any, list[dict[str, Any]]] = {tables.jobs: [], tables.revisions: [], tables.cursors: []}
    made = now - timedelta(days=60)
    for number in range(jobs):
        job_id, word = FIRST_JOB + number, _WORDS[number % len(_WORDS)]
        name = f"{word}-{number:05d}"
        definition = JobDefinition(
            name=name,
            schedule_parts=({"cron": f"{number % 60} * * * *"},),
            target=CommandTarget(("true",)),
            queue=_QUEUES[number % len(_QUEUES)],
            owner=_OWNERS[number % len(_OWNERS)],
            tags=("ml",) if word == "train" else (),
        )
        job: dict[str, Any] = {"job_id": job_id, "name": name, "name_key": name, "hash_seed": name, "revision": 1}
        paused = {"paused_at": made, "paused_by": "ana", "pause_reason": "moves"}
        job |= {"created_at": made, "changed": job_id} | (paused if number % 97 == 0 else dict.fromkeys(paused))
        rows[tables.jobs].append(job)
        rows[tables.revisions].append(
            {
                **{"job_id": job_id, "revision": 1, "definition": definition.to_text()},
                **{"schedule": definition.schedule_text(name), "firing": definition.firing_text(name)},
                **{"inputs_id": "2026b/1", "in_force_since": made, "applied_at": made, "applied_by": "ana"},
            }
        )
        rows[tables.cursors].append({"job_id": job_id, "at": now})
    for table, values in rows.items():
        connection.execute(insert(table), values)


def _write_runs(engine: Engine, jobs: int, runs: int, now: datetime) -> None:
    is_postgres = engine.dialect.name == "postgresql"
    series = (
        f"generate_series(CAST(1 AS BIGINT), {runs}) AS n(i)"
        if is_postgres
        else f"(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {runs}) SELECT i FROM s) n"
    )
    micros = f"(CAST({tables.to_micros(now)} AS BIGINT) - ({runs} - n.i) * {_STEP_MICROS} - {{before}})"

    def at(before: int) -> str:
        value = micros.format(before=before)
        return f"to_timestamp({value} / 1000000.0)" if is_postgres else value

    job = f"{FIRST_JOB} + n.i * 7919 % {jobs}"
    failed = "n.i % 211 = 0"
    ended = f"""
        INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, exit_code, error,
            started_at, finished_at, lateness_ms)
        SELECT {FIRST_TOKEN} + n.i, {job}, {at(3_000_000)}, 1, 1, 1 + n.i % 2, CASE WHEN {failed} THEN 4 ELSE 3 END,
            CASE WHEN {failed} THEN 7 ELSE 0 END, CASE WHEN {failed} THEN 'exit code 7' END, {at(2_000_000)},
            {at(1_000_000)}, n.i % 400
        FROM {series}"""
    claimed = f"""
        INSERT INTO claims (job_id, scheduled_at, revision, origin, state, queue, priority, overlap, slot, available_at,
            at_most_once, term, written_at, finished_at)
        SELECT {job}, {at(3_000_000)}, 1, 0, CASE WHEN {failed} THEN 4 ELSE 3 END, 'default', 0, 1, {job},
            {at(3_000_000)}, false, 41, {at(60_000_000)}, {at(1_000_000)}
        FROM {series} WHERE n.i % 5 = 0"""
    with engine.begin() as connection:
        for name in _INDEXES:
            connection.execute(text(f"DROP INDEX {name}"))
        connection.execute(text(ended))
        for index in tables.runs.indexes:
            if index.name in _INDEXES:
                index.create(connection)
        connection.execute(text(claimed))
