"""What `overlap: replace` does to a real run, by a worker that hears of it by notification alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.claims import Overlap, State
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, WorkerTrial


@pytest.fixture
def trial(processes: ProcessGroup, postgres_ledger: str) -> Iterator[WorkerTrial]:
    with contextlib.closing(WorkerTrial(processes, postgres_ledger)) as one:
        one.set(lease="3600s", heartbeat="1200s")  # no renewal tells the worker either
        yield one


def test_a_run_is_stopped_for_the_tick_that_replaces_it_and_never_runs_beside_it(
    trial: WorkerTrial, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    script = f"echo up >> {note}; trap 'sleep 0.2; echo down >> {note}; exit 0' TERM; while :; do sleep 0.05; done"
    job = trial.job(script, overlap=Overlap.REPLACE)
    trial.start_worker(slots=4)
    for number in range(1, 4):
        eventually(lambda: told(note) == ["up", "down"] * (number - 1) + ["up"], LONG, f"run {number} is up, alone")  # noqa: B023 - called at once
        if number < 3:
            trial.claim(job, overlap=int(Overlap.REPLACE))
    trial.await_states(job, State.CANCELLED, State.CANCELLED, State.RUNNING)
    first, second = trial.runs(job)
    assert (first.outcome, second.outcome) == (State.CANCELLED, State.CANCELLED)
    reason = trial.rows.row(job, first.scheduled_at).reason
    assert reason == f"overlap replace: asked to stop for the tick of {second.scheduled_at:%Y-%m-%dT%H:%M:%S.%fZ}"


def told(note: Path) -> list[str]:
    return note.read_text().split() if note.exists() else []
