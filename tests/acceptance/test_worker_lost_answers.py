"""What a worker asked was done, and the answer was lost: on real databases, at each of its statements.

Nothing stays granted to nobody, and what runs at most once runs once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.claims import OnWorkerLost, State
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import StepResult
from sexton_worker.worker import Worker, WorkerOptions
from tests.support.processes import ProcessGroup
from tests.support.worker_trial import WorkerTrial


@pytest.fixture(params=["sqlite", "postgresql"])
def trial(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if is_sqlite else str(request.getfixturevalue("postgres_ledger"))
    with contextlib.closing(WorkerTrial(processes, url)) as trial:
        yield trial


class Losing:
    """The worker's statements, of which the first answer that ``is_the_one`` is lost: the statement was committed."""

    def __init__(self, grants: Any, statement: str, is_the_one: Callable[[Any], bool]) -> None:
        self._grants = grants
        self._statement = statement
        self._is_the_one = is_the_one
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._grants, name)
        if name != self._statement:
            return original

        def call(*arguments: Any) -> Any:
            answer = original(*arguments)
            if not self.lost and self._is_the_one(answer):
                self.lost += 1
                raise DatabaseUnreachable("the answer was lost")
            return answer

        return call


def grants_some(answer: StepResult) -> bool:
    return bool(answer.grants)


def accepts_some(answer: StepResult) -> bool:
    return bool(answer.accepted)


@pytest.mark.parametrize(
    ("statement", "is_the_one", "outcomes"),
    [
        ("step", grants_some, [State.READY, State.SUCCEEDED]),
        ("mark_started", bool, [State.SUCCEEDED]),
        ("step", accepts_some, [State.SUCCEEDED]),
    ],
    ids=["pull", "started", "result"],
)
def test_an_answer_that_is_lost_after_the_commit(
    trial: WorkerTrial, tmp_path: Path, statement: str, is_the_one: Callable[[Any], bool], outcomes: list[State]
) -> None:
    once: dict[str, Any] = {"on_worker_lost": OnWorkerLost.FAIL, "columns": {"at_most_once": True}}
    log = tmp_path / "log"
    job = trial.job(f"echo ran >> {log}", **once)
    worker = Worker(WorkerOptions(trial.url, "w1", slots=2, poll=timedelta(seconds=0.2)))
    losing = Losing(worker._loop._store.grants, statement, is_the_one)
    worker._loop._store.grants = losing  # type: ignore[misc]  # all of it, but for one answer
    worker.start()
    try:
        trial.await_states(job, State.SUCCEEDED)
    finally:
        worker.drain()
        worker.join()
    assert losing.lost == 1
    assert [run.outcome for run in trial.runs(job)] == outcomes
    assert log.read_text() == "ran\n"
    assert trial.runs(job)[0].error in (None, "given back: the answer that granted it was lost")
