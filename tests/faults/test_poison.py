"""A job that kills its worker, tick after tick: it is stopped, says so, and the others' ticks go on."""

from __future__ import annotations

from sexton.claims import State
from sexton.views import RunFilter
from tests.support.judge import Judge
from tests.support.trial import Trial, wait_until

JOBS = """
version: 1
jobs:
  poison:  # the parent of a command is the zygote, whose parent is the worker
    schedule: {every: 5s}
    shell: kill -9 $(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); sleep 30
    overlap: queue
    missed: {policy: all, grace: 60s, start_within: 10m}
  stroke:
    schedule: "* * * * * *"
    command: ["true"]
    overlap: queue
    missed: {policy: all, grace: 60s, max: 1000}
"""


def test_a_job_that_kills_its_workers_is_stopped_and_says_so(trial: Trial, judge: Judge) -> None:
    trial.apply(JOBS)
    trial.start(nodes=1, workers=1)
    wait_until(lambda: supervised(trial) and is_paused(trial), "the job is paused as poison")
    ended = trial.store.reads.runs_page(RunFilter(job="poison"), limit=50).runs
    assert ended
    assert all("did not renew it by" in run.error for run in ended)
    lost = [run for run in ended if run.outcome is State.LOST]
    assert len(lost) >= 2
    assert all("3 leases lost, it may be what kills workers" in run.error for run in lost)
    assert all(run.attempt == 3 for run in lost)
    events = trial.sexton("events", "--output", "jsonl")
    assert '"sexton"' in events
    assert "its last two ticks were lost with three workers each" in events
    assert "job poison is paused by sexton: its last two ticks were lost" in trial.sexton("status", code=1)
    trial.start_worker("worker-1")
    trial.wait_for_runs(3)
    judge.check()


def supervised(trial: Trial) -> bool:
    """Start each worker again that was killed, as a supervisor does."""
    for name, process in trial.workers.items():
        if not process.is_running():
            trial.start_worker(name)
    return True


def is_paused(trial: Trial) -> bool:
    return trial.store.edits.find_job("poison").is_paused
