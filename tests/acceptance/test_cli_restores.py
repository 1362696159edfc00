"""What an operator does after a restore, by the commands: look, set the cursors, lift the halt."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from tests.support.command_line import CommandLine
from tests.support.leader_scene import MINUTE, batch, lead, rows, set_columns
from tests.support.ledgers import make_ledger

JOBS = """
version: 1
jobs:
  sync: {schedule: "* * * * *", command: [echo, a], missed: {policy: latest}}
  books: {schedule: "* * * * *", command: [echo, a], missed: {policy: all, within: 2d, max: 2000}}
  pay: {schedule: "0 * * * *", command: [echo, a], missed: {policy: hold, within: 2d}}
"""
SINCE = timedelta(hours=20)


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def url(tmp_path: Path, command: CommandLine) -> str:
    """A ledger in which nothing was decided for 20 hours, as a backup of so long ago is."""
    url = f"sqlite:///{tmp_path}/.sexton/sexton.db"
    make_ledger(url)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    assert command.run("apply", "jobs.yaml", "--yes").returncode == 0
    begin = datetime.now(UTC) - SINCE
    set_columns(url, "cursors", {}, at=begin)
    set_columns(url, "revisions", {}, in_force_since=begin)
    return url


def answer(command: CommandLine, *arguments: str) -> Any:
    done = command.run(*arguments, "--output", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_preview_tells_each_decision_without_a_node_and_writes_nothing(url: str, command: CommandLine) -> None:
    preview = answer(command, "takeovers", "--preview")
    by_job = {row["job"]: row for row in preview["jobs"]}
    assert preview["holds_all"] is True
    assert preview["would_fire"] > preview["hold_above"] == 1000
    assert by_job["sync"]["merged"] == by_job["sync"]["missed"] - 1
    assert (by_job["books"]["held"], by_job["books"]["fired"]) == (by_job["books"]["missed"], 0)
    assert by_job["pay"]["held"] == by_job["pay"]["missed"] in (20, 21)
    assert preview["totals"]["missed"] == sum(row["missed"] for row in preview["jobs"])
    assert command.run("settings", "set", "catch_up.hold_above", "2000").returncode == 0
    below = answer(command, "takeovers", "--preview")
    assert (below["holds_all"], below["totals"]["fired"] > 1000) == (False, True)
    assert all(rows(url, table) == [] for table in ("claims", "skips", "proposals", "decisions"))
    told = command.run("takeovers", "--preview").stdout
    assert "a takeover now (" in told
    assert "would decide" in told
    assert command.run("takeovers", "1", "--preview").returncode == 2
    assert "besides" not in told


def test_a_preview_says_that_it_leaves_out_claims_that_no_worker_took(url: str, command: CommandLine) -> None:
    store = open_store(StoreOptions(url))
    (job,) = [one for one in store.ticks.load_jobs().jobs if one.name == "sync"]
    store.ticks.commit(batch(store, lead(store), [(job, [job.at.replace(second=0, microsecond=0) + MINUTE])]))
    store.close()
    set_columns(url, "claims", {}, start_by=job.at)
    assert answer(command, "takeovers", "--preview")["not_started"] == 1
    assert "besides, 1 claim that no worker took in time" in command.run("takeovers", "--preview").stdout


def test_cursors_set_to_now_leave_nothing_to_decide(url: str, command: CommandLine) -> None:
    undecided = {row["job"]: row["undecided"] for row in answer(command, "cursors", "list")}
    assert undecided["sync"] in (1200, 1201)
    what = ("cursors", "set", "--all", "--to", "now", "--reason", "restored from 02:00")
    assert "nothing was changed" in command.run(*what, "--dry-run").stdout
    assert command.run(*what).returncode == 1  # no terminal to ask on
    assert command.run(*what, answer=lambda: "n").returncode == 1
    assert rows(url, "skips") == []
    done = command.run(*what, answer=lambda: "y")
    assert done.returncode == 0, done.stderr
    assert "set 3 cursors" in done.stdout
    assert {row.detail for row in rows(url, "skips")} == {"restored from 02:00"}
    assert answer(command, "takeovers", "--preview")["totals"]["missed"] <= 2  # a minute may have begun
    assert command.run("audit").returncode == 0
    kinds = [row.action for row in rows(url, "events")]
    assert kinds.count("cursor.set") == 3


def test_bad_cursors_are_refused_with_the_reason(url: str, command: CommandLine) -> None:
    set_to = ("cursors", "set", "--reason", "x", "--yes", "--to")
    ahead = command.run(*set_to, "2999-01-01T00:00:00Z", "sync")
    assert (ahead.returncode, "is ahead of the database's now" in ahead.stderr) == (1, True)
    before = command.run(*set_to, "1999-01-01T00:00:00Z", "sync")
    assert (before.returncode, "its first revision begins at" in before.stderr) == (1, True)
    assert command.run(*set_to, "now").returncode == 2  # neither jobs nor --all
    assert command.run(*set_to, "now", "--all", "sync").returncode == 2
    assert command.run(*set_to, "yesterday", "sync").returncode == 2
    assert command.run("cursors", "set", "sync", "--to", "now", "--reason", " ").returncode == 2
    assert command.run(*set_to, "now", "synk").returncode == 1
    assert rows(url, "skips") == []
