"""``sexton jobs JOB``: ticks to come with what the clocks do to them, how the runs went, and each change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger

JOB = """version: 1
jobs:
  bell:
    schedule: "{schedule}"
    timezone: Europe/Berlin
    owner: {owner}
    command: ["true"]
"""
IN_THE_GAP = "30 2 * 3 0L"  # the last Sunday of March, when 02:30 does not exist


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    (tmp_path / ".sexton").mkdir()
    make_ledger(f"sqlite:///{tmp_path}/.sexton/sexton.db")
    command = CommandLine(tmp_path)
    for schedule, owner in (("0 5 * * *", "ann"), (IN_THE_GAP, "bob")):
        (tmp_path / "jobs.yaml").write_text(JOB.format(schedule=schedule, owner=owner))
        assert command.run("apply", "jobs.yaml", "--yes").returncode == 0
    return command


def test_it_tells_what_clocks_do_to_its_ticks_and_what_each_revision_changed(command: CommandLine) -> None:
    done = command.run("jobs", "bell")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"schedule  {IN_THE_GAP}  Europe/Berlin\n          at 02:30, on the last Sunday" in done.stdout
    assert done.stdout.count("CEST") >= 10
    assert "02:30" in done.stdout.split("Next ticks")[1].split("Newest ticks")[0]
    changes = done.stdout.split("\nChanges\n")[1]
    assert changes.index("revision 2  revised") < changes.index("revision 1  created")
    assert f"    schedule: 0 5 * * * → {IN_THE_GAP}\n" in changes
    assert "    owner: ann → bob\n" in changes


def test_programs_get_the_same(command: CommandLine) -> None:
    record = json.loads(command.run("jobs", "bell", "-o", "json").stdout)
    assert len(record["upcoming"]) == 10
    assert all(tick["note"] for tick in record["upcoming"])
    assert [entry["revision"] for entry in record["changes"]] == [2, 1]
    assert {"key": "owner", "old": "ann", "new": "bob"} in record["changes"][0]["changes"]
    assert record["success_rate"] is None


def test_a_retired_job_has_no_ticks_to_come(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs: {}\n")
    assert command.run("apply", "jobs.yaml", "--prune", "--yes").returncode == 0
    done = command.run("jobs", "bell")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Next ticks\nnone: the job is retired\n" in done.stdout
