"""A worker process and a ledger with claims for it, without a scheduler."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, update

from sexton.claims import State
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.store.tables import claims, revisions, runs, settings, workers
from sexton.targets import CommandTarget, ShellTarget, Target
from tests.support.claim_rows import START, ClaimRows, claim_values, now
from tests.support.ledgers import make_ledger
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LONG = 60.0  # a limit, no expectation

PROGRAM = """
import json, sys
from datetime import timedelta
from sexton_worker.worker import WorkerOptions, run_worker
told = json.loads(sys.argv[1])
told["drain"], told["poll"] = timedelta(seconds=told["drain"]), timedelta(seconds=told["poll"])
sys.exit(run_worker(WorkerOptions(**told)))
"""


class WorkerTrial:
    """One ledger, any number of worker processes, and jobs numbered from 1 with one revision each."""

    def __init__(self, processes: ProcessGroup, url: str) -> None:
        self.processes = processes
        self.url = url
        make_ledger(url)
        self.rows = ClaimRows(url)
        self.store: Store = open_store(StoreOptions(url, application="worker trial"))
        self._jobs = 0
        self._claims: dict[int, list[datetime]] = {}

    def close(self) -> None:
        self.store.close()
        self.rows.close()

    # --- setting it up ---------------------------------------------------------------------------

    def set(self, **values: str) -> None:
        """Write cluster settings without a check: tests need shorter leases than people may set."""
        with self.rows.engine.begin() as connection:
            for key, value in values.items():
                row = {"key": key, "value": value, "changed_at": now(), "changed_by": "trial"}
                connection.execute(insert(settings).values(row))

    def job(self, target: Target | str, claimed: int = 1, columns: Mapping[str, Any] | None = None, **keys: Any) -> int:
        """A job with ``claimed`` claims that are due; its number. A text is a shell script."""
        self._jobs += 1
        target = ShellTarget(target) if isinstance(target, str) else target
        self.add_revisions(target, [self._jobs], **keys)
        definition = definition_of(self._jobs, target, **keys)
        self.claim(self._jobs, claimed, **{"overlap": int(definition.overlap), **(columns or {})})
        return self._jobs

    def add_revisions(self, target: Target, jobs: Iterable[int], **keys: Any) -> None:
        """The first revision of jobs with these numbers."""
        rows = []
        for job in jobs:
            definition = definition_of(job, target, **keys)
            row = {
                "job_id": job,
                "revision": 1,
                "definition": definition.to_text(),
                "schedule": definition.schedule_text(definition.name),
                "firing": definition.firing_text(definition.name),
                "inputs_id": "",
                "in_force_since": START,
                "applied_at": START,
                "applied_by": "trial",
            }
            rows.append(row)
        with self.rows.engine.begin() as connection:
            connection.execute(insert(revisions), rows)

    def claim(self, job: int, count: int = 1, **columns: Any) -> None:
        """More due claims of a job."""
        known = self._claims.setdefault(job, [])
        fresh = [START + timedelta(minutes=len(known) + number) for number in range(count)]
        known += fresh
        self.rows.add_many([claim_values(job, at, **columns) for at in fresh])

    def start_worker(self, name: str = "w1", slots: int = 2, drain: float = 30.0, **told: Any) -> RunningProcess:
        """Start a worker process; it looks for work every 0.2 s, whatever the listener does."""
        options = {"database_url": self.url, "name": name, "slots": slots, "drain": drain, "poll": 0.2, **told}
        return self.processes.start(
            [sys.executable, "-c", PROGRAM, json.dumps(options)], env={"PYTHONPATH": str(ROOT)}, name=name
        )

    # --- what became of it -----------------------------------------------------------------------

    def states(self, job: int) -> list[State]:
        """The states of the job's claims, oldest first."""
        with self.rows.engine.begin() as connection:
            found = connection.execute(select(claims.c.state).where(claims.c.job_id == job).order_by("scheduled_at"))
            return [State(state) for state in found.scalars()]

    def runs(self, job: int) -> list[Any]:
        """The job's runs, oldest first."""
        with self.rows.engine.begin() as connection:
            return list(connection.execute(select(runs).where(runs.c.job_id == job).order_by(runs.c.token)))

    def output(self, job: int) -> tuple[bytes, bytes]:
        """What the job's last run wrote."""
        found = self.rows.output(self.runs(job)[-1].token)
        assert found is not None
        return found

    def lease_of(self, job: int) -> datetime:
        """The end of the lease of the job's oldest claim."""
        lease = self.rows.row(job, START).lease_expires_at
        assert lease is not None
        return lease  # type: ignore[no-any-return]  # a column

    def await_states(self, job: int, *states: State) -> None:
        """Return once the job's claims are in these states, oldest first."""
        eventually(lambda: self.states(job) == list(states), LONG, f"claims of job {job} become {states}")

    def workers(self) -> list[Any]:
        """The rows of all workers, oldest first."""
        with self.rows.engine.begin() as connection:
            return list(connection.execute(select(workers).order_by(workers.c.worker_id)))

    def expire_lease(self, job: int) -> None:
        """Let the lease of the job's claim have run out."""
        with self.rows.engine.begin() as connection:
            past = datetime.now(UTC) - timedelta(hours=1)
            connection.execute(update(claims).where(claims.c.job_id == job).values(lease_expires_at=past))


def definition_of(job: int, target: Target, **keys: Any) -> JobDefinition:
    """The definition of the trial's job of this number."""
    return JobDefinition(f"job-{job}", ({"cron": "* * * * *"},), target, **keys)


TRUE = CommandTarget(("true",))
