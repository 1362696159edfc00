"""What a Python run has started in a session of its own ends with it, though its worker cannot see to that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.claims import State
from sexton.targets import PythonTarget
from tests.support.blows import children_of
from tests.support.processes import ProcessGroup
from tests.support.runs import is_alive
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, WorkerTrial


@pytest.fixture
def trial(processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    with contextlib.closing(WorkerTrial(processes, f"sqlite:///{tmp_path}/ledger.db")) as trial:
        yield trial


def pid_in(path: Path) -> int:
    return int(str(eventually(lambda: path.exists() and path.read_text().strip(), LONG, f"{path}")))


def gone(*pids: int) -> None:
    eventually(lambda: not any(map(is_alive, pids)), LONG, f"{pids} are gone")


def waits_for_stubborn(note: Path) -> PythonTarget:
    """A Python run that waits for a process in a session of its own, which does not heed SIGTERM."""
    script = f"trap '' TERM; echo $$ > {note}; while :; do sleep 0.1; done"
    return PythonTarget("subprocess:call", (["sh", "-c", script],), {"start_new_session": True})


def test_it_ends_with_a_dead_worker(trial: WorkerTrial, tmp_path: Path) -> None:
    trial.job(waits_for_stubborn(tmp_path / "note"), kill_after=timedelta(seconds=1))
    worker = trial.start_worker()
    pid = pid_in(tmp_path / "note")
    worker.kill()
    gone(pid)


def test_it_ends_at_its_deadline_though_the_worker_is_frozen(trial: WorkerTrial, tmp_path: Path) -> None:
    target = waits_for_stubborn(tmp_path / "note")
    job = trial.job(target, max_runtime=timedelta(seconds=10), kill_after=timedelta(seconds=1))
    worker = trial.start_worker()
    pid = pid_in(tmp_path / "note")
    worker.freeze()
    gone(pid)
    worker.thaw()
    trial.await_states(job, State.TIMED_OUT)


def test_it_ends_with_a_worker_that_dies_while_it_stops_the_run(trial: WorkerTrial, tmp_path: Path) -> None:
    target = waits_for_stubborn(tmp_path / "note")
    trial.job(target, max_runtime=timedelta(seconds=10), kill_after=timedelta(seconds=600))
    worker = trial.start_worker()
    pid = pid_in(tmp_path / "note")
    (leader,) = children_of(worker.pid, "python_child")
    gone(leader)
    worker.kill()
    gone(pid)
