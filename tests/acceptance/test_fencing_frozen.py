"""The story of docs/fencing.md with real processes: a worker is frozen in mid-run until another has done its tick.

Invariant 4: its result is refused by Sexton, and what its job writes by the fence.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, select

from sexton.claims import State
from sexton.targets import PythonTarget
from tests.support.fenced_jobs import GUARDED, UNGUARDED, balances, prepare
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, WorkerTrial


@pytest.fixture
def trial(processes: ProcessGroup, postgres_ledger: str) -> Iterator[WorkerTrial]:
    with contextlib.closing(WorkerTrial(processes, postgres_ledger)) as trial:
        yield trial


@pytest.fixture
def users(postgres_ledger: str, processes: ProcessGroup) -> Iterator[Engine]:
    """The user's own database, or here a corner of the same."""
    prepare(postgres_ledger)
    engine = create_engine(postgres_ledger)
    yield engine
    engine.dispose()


def settled_by(users: Engine, table: str) -> int:
    with users.begin() as connection:
        return connection.execute(select(balances(table).c.settled_by)).scalar_one()  # type: ignore[no-any-return]  # a column


def test_a_frozen_worker_that_wakes_up_writes_where_nothing_guards_and_nowhere_else(
    trial: WorkerTrial, users: Engine, tmp_path: Path
) -> None:
    trial.set(lease="3s", heartbeat="1s")
    url = users.url.render_as_string(hide_password=False)
    job = trial.job(PythonTarget("tests.support.fenced_jobs:settle", (url, str(tmp_path))))
    first = trial.start_worker("first")
    (begun,) = eventually(lambda: list(tmp_path.glob("begun-*")), LONG, "the run is in the middle")
    eventually(begun.read_text, LONG, "it told its process")
    old = int(begun.name.removeprefix("begun-"))
    first.freeze_tree()

    (requeued,) = eventually(trial.store.grants.requeue_expired, LONG, "its lease is over")
    assert requeued.token == old
    trial.start_worker("second")
    trial.await_states(job, State.SUCCEEDED)
    (run,) = [run for run in trial.runs(job) if run.outcome == State.SUCCEEDED]
    assert run.token > old
    assert (settled_by(users, GUARDED), settled_by(users, UNGUARDED)) == (run.token, run.token)

    # The job wakes up before its worker could stop it: nothing may rest on that.
    (tmp_path / "gate").touch()
    os.kill(int(begun.read_text()), signal.SIGCONT)
    over = tmp_path / f"over-{old}"
    eventually(over.exists, LONG, "the old run has tried to write")
    assert over.read_text().startswith(f"stale token {old}: a newer run, token {run.token}, has passed the fence 'job-")
    assert settled_by(users, GUARDED) == run.token
    assert settled_by(users, UNGUARDED) == old, "this is what the fence is for"

    refused = trial.rows.counter("stale_results")  # on a slow machine the second may have lost a lease too
    first.thaw_tree()
    eventually(lambda: trial.rows.counter("stale_results") > refused, LONG, "its result is refused too, and counted")
    assert trial.states(job) == [State.SUCCEEDED]
