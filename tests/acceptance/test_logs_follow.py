"""Output while its run goes on, and whole afterwards: real workers and followers, on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import signal
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select
from sqlalchemy.pool import NullPool

from sexton.store.tables import live_outputs, watches
from tests.support.command_line import CommandLine
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LONG = 60.0  # a limit, no expectation
JOBS = """
version: 1
defaults: {{missed: {{policy: skip}}, kill_after: 1s}}
jobs:
  slow:
    schedule: {{at: ["2190-01-01T00:00:00Z"]}}
    shell: |
      echo one; echo oops >&2
      echo "key=$KEY" ; printf '\\377\\033[31m'; echo
      while [ ! -e {folder}/gate ]; do sleep 0.05; done
      echo two
    env: {{KEY: "${{secret:api-key}}"}}
  twice:
    schedule: {{at: ["2190-01-01T00:00:00Z"]}}
    shell: |
      echo "try $SEXTON_ATTEMPT"
      while [ ! -e {folder}/gate ]; do sleep 0.05; done
      [ "$SEXTON_ATTEMPT" != 1 ]
    retries: {{max: 1, delay: 200ms}}
  called:
    schedule: {{at: ["2190-01-01T00:00:00Z"]}}
    python: tests.support.work_module:write_slowly
    args: ["{folder}/gate"]
    env: {{KEY: "${{secret:api-key}}"}}
  loud:
    schedule: {{at: ["2190-01-01T00:00:00Z"]}}
    shell: head -c 3000000 /dev/zero | tr '\\0' x; echo "$KEY"; echo last >&2
    env: {{KEY: "${{secret:api-key}}"}}
"""
SECRET = "hunter2-hunter2"  # noqa: S105 - the test's own


class Scene:
    """A ledger with the jobs above, and a folder."""

    def __init__(self, url: str, processes: ProcessGroup, folder: Path) -> None:
        self.url = url
        self.processes = processes
        self.folder = folder
        self.gate = folder / "gate"
        self._line = CommandLine(folder)
        (folder / "jobs.yaml").write_text(JOBS.format(folder=folder))
        self.sexton("apply", "jobs.yaml", "--yes")

    def sexton(self, *arguments: str) -> str:
        done = self._line.run(*arguments, "--database", self.url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def worker(self, *arguments: str) -> RunningProcess:
        env = {"SEXTON_SECRET_API_KEY": SECRET, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder / "tmp")}
        (self.folder / "tmp").mkdir(exist_ok=True)
        return self.processes.sexton("worker", "--database", self.url, "--poll", "200ms", *arguments, env=env)

    def follow(self, job: str, *arguments: str) -> RunningProcess:
        return self.processes.sexton("logs", job, "--follow", "--database", self.url, *arguments, name="follow")

    def rows(self) -> int:
        """How many rows there are about output that is followed."""
        engine = create_engine(self.url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
        with engine.connect() as connection:
            return sum(
                connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (watches, live_outputs)
            )


@pytest.fixture
def scene(url: str, processes: ProcessGroup, tmp_path: Path) -> Scene:
    return Scene(url, processes, tmp_path)


def shows(process: RunningProcess, *texts: str) -> None:
    eventually(lambda: all(text in process.stdout() for text in texts), LONG, f"{texts} in {process.report()}")


def test_a_run_is_followed_from_before_its_start_to_its_end_and_shows_no_secret(scene: Scene) -> None:
    scene.sexton("trigger", "slow")
    follower = scene.follow("slow", "--label")
    eventually(lambda: "has not begun" in follower.stderr(), LONG, "it waits for the run")
    scene.worker()
    shows(follower, "stdout | one\n", "stderr | oops\n", "stdout | key=***\n")
    assert "two" not in follower.stdout()
    assert scene.sexton("logs", "slow", "--stream", "stderr") == "oops\n"
    scene.gate.touch()
    assert follower.wait(LONG) == 0, follower.report()
    lines = [line for line in follower.stdout().splitlines() if line.startswith("stdout")]
    assert lines == ["stdout | one", "stdout | key=***", "stdout | \\xff\\x1b[31m", "stdout | two"]
    assert "try 1 succeeded, exit code 0" in follower.stderr()
    assert "hunter2" not in follower.report()
    kept = json.loads(scene.sexton("logs", "slow", "--output", "json"))
    assert (kept["stdout"], kept["stderr"]) == ("one\nkey=***\n\\xff\x1b[31m\ntwo\n", "oops\n")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_retry_is_followed_into_its_next_try_and_python_runs_are_followed_too(scene: Scene) -> None:
    scene.worker()
    scene.sexton("trigger", "twice")
    follower = scene.follow("twice", "--output", "jsonl")
    shows(follower, "try 1")
    scene.gate.touch()
    assert follower.wait(LONG) == 0, follower.report()
    events = [json.loads(line) for line in follower.stdout().splitlines()]
    assert [one["text"] for one in events if one["event"] == "output"] == ["try 1\n", "try 2\n"]
    assert [one["run"]["outcome"] for one in events if one["event"] == "ended"] == ["ready", "succeeded"]

    scene.gate.unlink()
    scene.sexton("trigger", "called")
    called = scene.follow("called")
    shows(called, "before ***\n")
    called.signal(signal.SIGINT)
    assert called.wait(LONG) == 130
    assert called.stderr() == ""
    scene.gate.touch()
    eventually(lambda: "after" in scene.sexton("logs", "called", "--stream", "stdout"), LONG, "it ends")
    assert scene.rows() > 0  # until a node's housekeeping has seen that nobody follows any more


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_whole_output_is_kept_where_the_worker_was_told_without_its_secrets(scene: Scene) -> None:
    whole = scene.folder / "whole"
    worker = scene.worker("--output", str(whole))
    scene.sexton("trigger", "loud")
    eventually(lambda: list(whole.glob("loud/*/*.stderr")), LONG, "it is carried there")
    eventually(lambda: "is at" in _errors(scene, "logs", "loud"), LONG, "its row says so")
    text = scene.sexton("logs", "loud", "--whole", "--stream", "stdout")
    assert text == "x" * 3_000_000 + "***\n"
    assert scene.sexton("logs", "loud", "--whole", "--stream", "stderr") == "last\n"
    assert len(scene.sexton("logs", "loud", "--stream", "stdout")) <= 64 * 1024
    worker.signal(signal.SIGTERM)
    assert worker.wait(LONG) == 0
    assert list((scene.folder / "tmp").glob("sexton-output-*/*")) == []


def _errors(scene: Scene, *arguments: str) -> str:
    with contextlib.suppress(AssertionError):
        return CommandLine(scene.folder).run(*arguments, "--database", scene.url).stderr
    return ""
