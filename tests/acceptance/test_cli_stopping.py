"""Cancel, rerun and drain as an operator does them, with a real worker that hears of it by notification alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, WorkerTrial

NEVER = 3600.0  # seconds between two looks of the worker: it is woken, or it is too late


class Scene:
    """A ledger with one stubborn job, and a worker; what an operator says about them."""

    def __init__(self, trial: WorkerTrial, command: CommandLine, folder: Path) -> None:
        self.trial, self.command, self.folder = trial, command, folder
        self.env = {"SEXTON_DATABASE": trial.url}
        script = f"[ -e {folder}/gentle ] && exit 0; trap '' TERM; echo up >> {folder}/ups; while :; do sleep 0.1; done"
        job = {"schedule": "0 5 1 1 *", "shell": script, "overlap": "queue", "kill_after": "1s"}
        (folder / "jobs.json.yaml").write_text(json.dumps({"version": 1, "jobs": {"stubborn": job}}))
        assert self.say("apply", "jobs.json.yaml", "--yes")[0] == 0

    def start_worker(self) -> RunningProcess:
        return self.trial.start_worker(poll=NEVER, slots=2)

    def say(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        done = self.command.run(*arguments, env=self.env, **options)
        return done.returncode, done.stdout, done.stderr

    def rows(self, *arguments: str) -> tuple[int, Any]:
        code, output, errors = self.say(*arguments, "--output", "json")
        assert output, errors
        return code, json.loads(output)

    def trigger(self) -> str:
        return str(self.rows("trigger", "stubborn")[1]["scheduled_at"])

    def ups(self) -> int:
        note = self.folder / "ups"
        return len(note.read_text().splitlines()) if note.exists() else 0

    def await_ups(self, count: int) -> None:
        eventually(lambda: self.ups() == count, LONG, f"{count} runs have begun")


@pytest.fixture(params=["sqlite", "postgresql"])
def scene(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[Scene]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if is_sqlite else str(request.getfixturevalue("postgres_ledger"))
    with contextlib.closing(WorkerTrial(processes, url)) as trial:
        trial.set(lease="3600s", heartbeat="1200s")  # no renewal tells the worker either
        yield Scene(trial, CommandLine(tmp_path), tmp_path)


def test_an_operator_stops_a_stubborn_run_has_it_run_again_and_drains_the_worker(scene: Scene) -> None:
    worker = scene.start_worker()
    first, second = scene.trigger(), scene.trigger()
    scene.await_ups(1)

    assert scene.say("cancel", "stubborn")[0] == 1  # two at once, and nobody to ask
    assert scene.say("cancel", "stubborn", answer=lambda: "n\n")[0] == 1
    code, rows = scene.rows("cancel", "stubborn", "--yes", "--wait", "--reason", "too loud")
    assert (code, [row["outcome"] for row in rows]) == (0, ["cancelled", "cancelled"])
    assert {row["scheduled_at"] for row in rows} == {first, second}
    assert scene.ups() == 1
    assert scene.rows("cancel", "stubborn")[1] == []
    code, output, _ = scene.say("cancel", "stubborn", first)
    assert (code, output) == (0, f"stubborn {first} was cancelled before\n")

    (scene.folder / "gentle").touch()
    code, output, _ = scene.say("rerun", "stubborn", first, "--reason", "gentle now")
    assert code == 0
    assert "it had ended as cancelled, attempt 2 is next" in output

    def outcomes() -> list[tuple[int, str]]:
        return [(run["attempt"], run["state"]) for run in scene.rows("runs", "stubborn", first)[1]]

    eventually(lambda: sorted(outcomes()) == [(1, "cancelled"), (2, "succeeded")], LONG, "it ran again")
    code, _, errors = scene.say("cancel", "stubborn", first)
    assert code == 1
    assert "had ended before: succeeded" in errors
    assert scene.say("rerun", "stubborn", "2026-01-01T00:00:00Z")[0] == 1

    assert scene.say("workers", "drain")[0] == 2
    code, _, errors = scene.say("workers", "drain", "w2")
    assert code == 1
    assert "no worker of the name w2 was heard of" in errors
    assert scene.rows("workers", "drain", "w1")[1][0]["state"] == "asked to drain"
    assert worker.wait(within=LONG) == 0, worker.report()
    (row,) = scene.rows("workers", "--stopped")[1]
    assert (row["name"], row["state"]) == ("w1", "drained")
    events = [event["action"] for event in scene.rows("events")[1]]
    assert {"job.cancelled", "job.rerun", "workers.asked_to_drain"} <= set(events)


def test_a_drain_is_taken_back_while_a_run_goes_on(scene: Scene) -> None:
    worker = scene.start_worker()
    scene.trigger()
    scene.await_ups(1)
    scene.rows("workers", "drain", "--queue", "default")
    eventually(lambda: "worker.asked_to_drain" in worker.report(), LONG, "the worker was told")
    assert scene.rows("workers", "drain", "--queue", "default", "--undo")[1][0]["state"] == "serves"
    eventually(lambda: "worker.drain_taken_back" in worker.report(), LONG, "the worker was told again")
    assert scene.rows("cancel", "stubborn", "--yes", "--wait")[0] == 0
    scene.trigger()
    scene.await_ups(2)  # it takes new work
