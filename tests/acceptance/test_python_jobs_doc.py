"""The jobs that docs/python-jobs.md shows are run here, by a worker on a ledger, with what else its table promises."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.claims import State
from sexton.targets import PythonTarget
from tests.support.processes import ProcessGroup
from tests.support.source_tree import ROOT
from tests.support.worker_trial import WorkerTrial

DOCUMENT = (ROOT / "docs" / "python-jobs.md").read_text()
SUCCEEDED, FAILED = State.SUCCEEDED, State.FAILED


@pytest.fixture(params=["sqlite", "postgresql"])
def trial(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if is_sqlite else str(request.getfixturevalue("postgres_ledger"))
    with contextlib.closing(WorkerTrial(processes, url)) as trial:
        yield trial


def test_the_jobs_of_the_document_and_those_that_go_wrong(trial: WorkerTrial) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE)
    (trial.processes.folder / "parish.py").write_text(code)
    sweep = trial.job(PythonTarget("parish:sweep", (["nave", "crypt"],)))
    greet = trial.job(PythonTarget("parish:greet", ("Ä\0",)))
    missing = trial.job(PythonTarget("parish:ring"))
    died = trial.job(PythonTarget("os:_exit", (3,)))
    crashed = trial.job(PythonTarget("tests.support.odd_jobs:crash"))
    much = trial.job(PythonTarget("tests.support.odd_jobs:give_much", (20_000,)))
    worker = trial.start_worker("w1")
    for job, state in (
        (sweep, SUCCEEDED),
        (greet, SUCCEEDED),
        *((bad, FAILED) for bad in (missing, died, crashed, much)),
    ):
        trial.await_states(job, state)
    (run,) = trial.runs(sweep)
    told = f"job-{sweep} at 2026-01-01 00:00 UTC, attempt 1, token {run.token}, on w1\n"
    assert trial.output(sweep)[0].decode() == f'{told}returned {{"swept": 2}}\n'
    assert trial.output(greet)[0].decode() == "Hello, Ä\0\n"
    assert {job: trial.runs(job)[0].error for job in (missing, died, crashed)} == {
        missing: "cannot import 'parish:ring': AttributeError: module 'parish' has no attribute 'ring'",
        died: "the job's process died in mid-run: exited with code 3",
        crashed: "the job's process died in mid-run: ended by SIGSEGV",
    }
    assert "it returned 20,002 bytes of JSON" in trial.runs(much)[0].error
    assert worker.is_running()
