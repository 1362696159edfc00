"""A backup of six hours ago is restored under a running cluster (invariants 2 and 3; `catch_up.hold_above`).

Left to itself, the cluster holds and names all that seems missed. Halted first, it waits for the operator, who has it
go on from now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sexton.store.postgres.places import JUMP
from tests.support import backup
from tests.support.leader_scene import lead, rows, set_columns
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.trial import Trial, wait_until

HOURS = timedelta(hours=6)
JOBS = """
version: 1
jobs:
  books:
    schedule: {every: 1s}
    shell: "true"
    missed: {policy: all, within: 2d, max: 50000}
  sync:
    schedule: {every: 1m}
    shell: "true"
  pay:
    schedule: {every: 10m}
    shell: "true"
    on_worker_lost: fail
    missed: {policy: all, within: 2d, max: 50000}
"""


@pytest.fixture
def trial(processes: ProcessGroup, own_postgres_server: PostgresServer) -> Iterator[Trial]:
    made = Trial(processes, own_postgres_server.create_database())
    yield made
    made.close()


def test_a_restored_backup_decides_nothing_by_itself_above_the_limit(
    trial: Trial, own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    trial.apply(JOBS)
    begin = trial.store.now() - HOURS
    set_columns(trial.url, "cursors", {}, at=begin)
    set_columns(trial.url, "revisions", {}, in_force_since=begin)
    trial.store.terms.leave(lead(trial.store))  # somebody led it then
    backup.dump(own_postgres_server, trial.url, tmp_path / "six-hours-ago")
    trial.sexton("cursors", "set", "--all", "--to", "now", "--reason", "a cluster that is up to date", "--yes")
    trial.start(nodes=1, workers=1)
    trial.wait_for_runs(2)

    restored = backup.restore(own_postgres_server, tmp_path / "six-hours-ago")
    at = put_under(trial, own_postgres_server, restored)
    wait_until(lambda: trial.term() > JUMP and trial.leader() is not None, "a leader beyond the jump")
    wait_until(lambda: len(rows(trial.url, "proposals")) >= 3, "all that was missed is held")
    trial.finished(trial.term())
    holds = {hold.job: hold.count for hold in trial.store.reads.holds()}
    assert holds.keys() == {"books", "sync", "pay"}
    assert holds["books"] >= HOURS.total_seconds()
    assert [row.scheduled_at for row in rows(trial.url, "claims") if row.scheduled_at <= at] == []
    trial.wait_for_runs(2)  # live ticks go on
    assert [row.action for row in rows(trial.url, "events")].count("ledger.moved") == 1
    trial.audit()

    restored = backup.restore(own_postgres_server, tmp_path / "six-hours-ago")
    trial.sexton("halt", "--reason", "restored from six hours ago", "--database", restored)
    put_under(trial, own_postgres_server, restored)
    wait_until(lambda: trial.term() > JUMP and trial.leader() is not None, "a leader beyond the jump")
    preview = json.loads(trial.sexton("takeovers", "--preview", "--output", "json"))
    assert (preview["holds_all"], preview["totals"]["missed"] > HOURS.total_seconds()) == (True, True)
    assert (rows(trial.url, "claims"), rows(trial.url, "skips")) == ([], [])
    trial.sexton("cursors", "set", "--all", "--to", "now", "--reason", "done elsewhere", "--yes")
    trial.sexton("halt", "--lift")
    trial.wait_for_runs(2)
    assert rows(trial.url, "proposals") == []
    assert "done elsewhere" in {row.detail for row in rows(trial.url, "skips")}
    trial.audit()


def put_under(trial: Trial, server: PostgresServer, restored: str) -> datetime:
    """Swap the databases under the running cluster; an instant before."""
    at = trial.store.now()
    backup.put_under(server, restored, trial.url)
    trial.wait_for_database()
    return at
