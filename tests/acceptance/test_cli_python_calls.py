"""A plan tells of Python functions that will not take their arguments, and runs none of the code it reads for that."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger

JOBS = """\
version: 1
jobs:
  close: {schedule: "0 5 * * *", python: "parish_of_test:close", args: [1, 2]}
  open: {schedule: "0 6 * * *", python: "parish_of_test:close", kwargs: {month: 1}}
"""


def test_plan_and_apply_warn_of_a_call_that_will_fail(tmp_path: Path) -> None:
    make_ledger(f"sqlite:///{tmp_path}/.sexton/sexton.db")
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "parish_of_test.py").write_text("raise SystemExit(9)\n\ndef close(month: int) -> None: ...\n")
    command = CommandLine(tmp_path)
    done = command.run("plan", "jobs.yaml", "--output", "json")
    assert done.returncode == 0, done.stderr
    (call,) = [one for one in json.loads(done.stdout)["warnings"] if one["warning"] == "call"]
    assert call["jobs"] == ["close"]
    assert "does not take its arguments: too many positional arguments" in call["fact"]
    applied = command.run("apply", "jobs.yaml", "--yes")
    assert (applied.returncode, "does not take its" in applied.stdout) == (0, True), applied.stderr
    again = command.run("plan", "jobs.yaml", "--output", "json")
    assert [one for one in json.loads(again.stdout)["warnings"] if one["warning"] == "call"] == []
