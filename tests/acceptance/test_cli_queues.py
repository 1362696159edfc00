"""Limits of queues, as an operator sets and sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    """`sexton` with a ledger of one job, of queue gpu, that nobody serves."""
    make_ledger(f"sqlite:///{tmp_path / '.sexton' / 'sexton.db'}")
    jobs = "version: 1\njobs:\n  train: {schedule: '0 5 * * *', command: [echo, ding], queue: gpu}\n"
    (tmp_path / "jobs.yaml").write_text(jobs)
    sexton = CommandLine(tmp_path)
    assert sexton.run("apply", "jobs.yaml", "--yes").returncode == 0
    return sexton


def test_a_limit_is_set_listed_and_on_record(command: CommandLine) -> None:
    done = command.run("queues", "set", "gpu", "--slots", "4", "--rate", "600/m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "queue gpu: slots 4, rate 10/s\n", "")
    assert command.run("queues", "set", "gpu", "--rate", "none").stdout == "queue gpu: slots 4, rate none\n"
    (listed,) = json.loads(command.run("queues", "--output", "json").stdout)
    assert (listed["name"], listed["limit"], listed["rate"], listed["running"]) == ("gpu", 4, None, 0)
    heading, row = command.run("queues").stdout.splitlines()
    assert dict(zip(heading.split(), row.split(), strict=True))["limit"] == "4"
    events = command.run("events", "--output", "jsonl").stdout.splitlines()
    newest = json.loads(events[0])
    assert newest["action"] == "queue.changed"
    assert newest["detail"] == {"queue": "gpu", "from": "slots 4, rate 10/s", "to": "slots 4, rate none"}


def test_a_queue_that_nobody_names_is_told_of(command: CommandLine) -> None:
    done = command.run("queues", "set", "gpv", "--slots", "4")
    assert done.returncode == 0
    assert done.stderr == "no job and no worker names queue gpv yet; is it spelled right?\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gpu",), "nothing to set for queue gpu; give --slots N or --rate 10/s"),
        (("gpu", "--slots", "0"), "--slots: '0' is no number of slots; write a whole number from 1 to 100000, or none"),
        (("gpu", "--rate", "often"), "--rate: 'often' is no rate; write e.g. 10/s, 600/m, 30/h or none"),
        (("g p u", "--slots", "1"), "'g p u' is no name of a queue"),
    ],
)
def test_what_is_no_limit_is_wrong_usage_told_in_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = CommandLine(tmp_path).run("queues", "set", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"sexton: {told}")
    assert "Traceback" not in done.stderr
