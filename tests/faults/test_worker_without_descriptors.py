"""A worker whose machine cannot start a process: its claims are not its to fail."""

from __future__ import annotations

import contextlib
import functools
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.claims import OnWorkerLost, State
from sexton.targets import PythonTarget
from tests.support.processes import ProcessGroup
from tests.support.runs import limit_that_leaves, zygote_of
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, TRUE, WorkerTrial


@pytest.fixture(params=["sqlite", "postgresql"])
def trial(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if is_sqlite else str(request.getfixturevalue("postgres_ledger"))
    with contextlib.closing(WorkerTrial(processes, url)) as trial:
        yield trial


def test_without_descriptors_no_claim_fails_and_all_run_once_there_are_some(trial: WorkerTrial) -> None:
    """An at-most-once run that was marked as started goes back too: its process never began."""
    first = trial.job(TRUE)
    worker = trial.start_worker()
    trial.await_states(first, State.SUCCEEDED)
    machine = (worker.pid, zygote_of(worker.pid))
    plenty = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
    for pid in machine:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit_that_leaves(pid, 3), plenty[1]))
    command = trial.job(TRUE)
    once = trial.job(TRUE, on_worker_lost=OnWorkerLost.FAIL, columns={"at_most_once": True})
    python = trial.job(PythonTarget("tests.support.work_module:noop"))
    jobs = (command, once, python)
    for job in jobs:
        eventually(functools.partial(trial.runs, job), LONG, f"job {job} was tried")
    assert {trial.states(job)[0] for job in jobs} <= {State.READY, State.RUNNING}
    for pid in machine:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, plenty)
    for job in jobs:
        trial.await_states(job, State.SUCCEEDED)
        *faults, last = trial.runs(job)
        assert (last.outcome, last.error) == (State.SUCCEEDED, None)
        assert faults
        assert {(run.outcome, run.started_at) for run in faults} == {(State.READY, None)}
        assert all("Too many open files" in run.error for run in faults)
    assert (worker.stdout() + worker.stderr()).count("worker.machine_fault") == 1
