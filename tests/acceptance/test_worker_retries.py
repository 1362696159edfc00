"""Retries by a real worker: which failures are tried again, and each try with an output of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, WorkerTrial

RETRIES = {"max": 2, "delay": "20ms", "jitter": False}
RAISES = "tests.support.work_module:fill_disk"
SLEEPS = {"python": "time:sleep", "args": [600], "max_runtime": "1s", "kill_after": "1s"}
COUNTS = 'echo "try $SEXTON_ATTEMPT"; exit $((6 + SEXTON_ATTEMPT))'
JOBS: dict[str, dict[str, Any]] = {
    "by-base-class": {"python": RAISES, "retries": {**RETRIES, "on": ["OSError"]}},
    "other-exception": {"python": RAISES, "retries": {**RETRIES, "on": ["ValueError"]}},
    "timeout": {**SLEEPS, "retries": {**RETRIES, "max": 1, "on": ["TimeoutError"]}},
    "timeout-not-named": {**SLEEPS, "retries": {**RETRIES, "on": [1]}},
    "by-code": {"shell": COUNTS, "retries": {**RETRIES, "on": [7]}},
    "every-failure": {"shell": COUNTS, "retries": RETRIES},
}
EXPECTED = {
    "by-base-class": ["to_retry", "to_retry", "failed"],
    "other-exception": ["failed"],
    "timeout": ["to_retry", "timed_out"],
    "timeout-not-named": ["timed_out"],
    "by-code": ["to_retry", "failed"],  # 7, then 8
    "every-failure": ["to_retry", "to_retry", "failed"],
}


class Ledger:
    def __init__(self, trial: WorkerTrial, command: CommandLine) -> None:
        self.command, self.env = command, {"SEXTON_DATABASE": trial.url}

    def say(self, *arguments: str) -> str:
        done = self.command.run(*arguments, env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tries(self, job: str) -> list[str]:
        rows = json.loads(self.say("runs", job, "--output", "json"))
        return [row["state"] for row in sorted(rows, key=lambda row: int(row["attempt"]))]


@pytest.fixture
def trial(processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    with closing(WorkerTrial(processes, f"sqlite:///{tmp_path}/ledger.db")) as trial:
        yield trial


def test_chosen_failures_are_tried_again_and_each_try_keeps_its_output(trial: WorkerTrial, tmp_path: Path) -> None:
    ledger = Ledger(trial, CommandLine(tmp_path))
    jobs = {name: {"schedule": "0 5 1 1 *", **job} for name, job in JOBS.items()}
    (tmp_path / "jobs.yaml").write_text(json.dumps({"version": 1, "jobs": jobs}))
    ledger.say("apply", "jobs.yaml", "--yes")
    ticks = {name: json.loads(ledger.say("trigger", name, "-o", "json"))["scheduled_at"] for name in jobs}
    trial.start_worker(slots=6)
    eventually(lambda: {name: ledger.tries(name) for name in jobs} == EXPECTED, LONG, "all ended as they should")
    for attempt in (1, 2, 3):
        assert (
            ledger.say("logs", "every-failure", ticks["every-failure"], "--attempt", str(attempt)) == f"try {attempt}\n"
        )
