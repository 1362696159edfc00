"""`sexton plan` on the command line, against SQLite and PostgreSQL: it tells all, writes nothing, and answers CI."""

from __future__ import annotations

import json
import stat
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sexton.claims import State
from sexton.store.protocol import Store
from sexton_tui.actor import actor
from tests.support.claim_rows import ClaimRows
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger

MINUTE = timedelta(minutes=1)
JOBS = {
    "report": "{schedule: '0 2 * * *', timezone: Europe/Berlin, command: [report]}",
    "sync": "{schedule: '* * * * *', command: [sync]}",
    "old": "{schedule: 'H 5 * * *', command: [x]}",
    "gone": "{schedule: '0 5 * * *', command: [gone]}",
}


class Planner:
    """A folder of job files and a database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.command = CommandLine(folder)

    def write(self, **jobs: str) -> None:
        lines = "".join(f"  {name}: {job}\n" for name, job in jobs.items())
        (self.folder / "jobs.yaml").write_text(f"version: 1\njobs:\n{lines}")

    def run(self, *arguments: str, code: int = 0) -> str:
        done = self.command.run(arguments[0], "jobs.yaml", *arguments[1:], "--database", self.url)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 or done.stdout else done.stderr

    def apply(self, **jobs: str) -> None:
        self.write(**jobs)
        self.run("apply", "--yes")

    def plan(self, *arguments: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run("plan", "--output", "json", *arguments))
        return document


@pytest.fixture
def planner(tmp_path: Path, url: str) -> Planner:
    return Planner(tmp_path, url)


def changes(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {change["job"]: change for change in document["changes"]}


def test_a_plan_tells_what_apply_then_does(planner: Planner, store: Store) -> None:
    planner.apply(**JOBS)
    planner.write(
        report=JOBS["report"].replace("0 2", "0 4"),
        sync=JOBS["sync"].replace("* * * * *", "*/2 * * * *"),
        new=JOBS["old"].replace("{", "{renamed_from: old, "),
        added="{schedule: '0 7 * * *', command: [added]}",
    )
    document = planner.plan("--prune")
    assert document["summary"] == {"added": 1, "changed": 2, "renamed": 1, "retired": 1, "unchanged": 0, "kept": 0}
    told = changes(document)
    assert {name: change["change"] for name, change in told.items()} == {
        "added": "add",
        "report": "change",
        "sync": "change",
        "new": "rename",
        "gone": "retire",
    }
    assert told["report"]["differences"] == [
        {"key": "schedule", "old": "0 2 * * *", "new": "0 4 * * *", "hidden": False}
    ]
    assert (told["report"]["ticks"]["move"], told["new"]["ticks"]["keep"], told["new"]["hash_seed"]) == (7, 7, "old")
    assert told["sync"]["ticks"]["pairs_sought"] is False
    assert told["sync"]["ticks"]["appear"] == 0
    assert told["sync"]["ticks"]["vanish"] == pytest.approx(5040, abs=1)
    assert len(store.edits.current_jobs()) == 4
    planner.run("apply", "--yes", "--prune")
    assert sorted(job.name for job in store.edits.current_jobs()) == ["added", "new", "report", "sync"]
    after = planner.plan("--prune")
    assert (after["is_empty"], after["changes"], after["unchanged"]) == (True, [], ["report", "sync", "new", "added"])


def test_it_answers_ci_by_its_exit_code_and_warnings_do_not(planner: Planner) -> None:
    planner.write(payroll="{schedule: '30 2 1 * *', timezone: Europe/Berlin, command: [x], missed: {policy: skip}}")
    text = planner.run("plan")
    assert "! payroll: its ticks are 28d or more apart" in text
    assert text.splitlines()[-1] == "Plan: 1 added."
    planner.run("plan", "--check", code=1)
    planner.run("apply", "--yes")
    assert planner.run("plan", "--check") == "Nothing to change: 1 unchanged.\n"


def test_claims_ahead_and_runs_in_flight_are_told_with_their_job(planner: Planner, store: Store) -> None:
    planner.apply(**JOBS)
    by_name = {job.name: job.job_id for job in store.edits.current_jobs()}
    minute = store.now().replace(second=0, microsecond=0)
    claims = ClaimRows(planner.url)
    for later in (30, 31):
        claims.add(by_name["sync"], minute + later * MINUTE)
    leased = {"token": 1, "attempt": 1, "granted_at": minute, "lease_expires_at": minute + 5 * MINUTE}
    claims.add(by_name["gone"], minute, state=int(State.RUNNING), **leased)
    claims.close()
    planner.write(**{name: job.replace("{", "{priority: 1, ") for name, job in JOBS.items() if name != "gone"})
    told = changes(planner.plan("--prune"))
    assert (told["sync"]["claims"]["withdrawn"], told["sync"]["ticks"]["keep"] > 10_000) == (2, True)
    assert told["gone"]["runs_in_flight"] == [{"revision": 1, "count": 1, "since": f"{minute:%Y-%m-%dT%H:%M:%SZ}"}]
    text = planner.run("plan", "--prune")
    assert "2 claims written ahead are withdrawn" in text
    assert f"1 run in flight since {minute:%Y-%m-%dT%H:%M:%SZ} goes on under revision 1, and may end" in text


def test_who_made_the_present_revision_stands_beside_its_job_and_other_inputs_are_told(
    planner: Planner, store: Store
) -> None:
    planner.apply(report=JOBS["report"])
    planner.write(report=JOBS["report"].replace("0 2", "0 4"))
    store.terms.enroll("database", "2019a/1/0.1", "2019a", 1)
    text = planner.run("plan")
    assert text.startswith(f"~ report  (revision 1 by {actor()}, ")
    assert "those of the cluster with 2019a/1/0.1" in " ".join(text.split())
    document = planner.plan()
    assert changes(document)["report"]["revision_by"] == actor()
    assert datetime.fromisoformat(changes(document)["report"]["revision_at"]) <= store.now()
    assert document["warnings"][-1]["warning"] == "other_inputs"


def test_it_needs_no_right_to_write(planner: Planner) -> None:
    planner.apply(**JOBS)
    if not planner.url.startswith("postgresql"):
        before = (planner.folder / "ledger.db").read_bytes()
        planner.run("plan", "--prune", "--prune-limit", "9")
        assert (planner.folder / "ledger.db").read_bytes() == before
        return
    with psycopg.connect(planner.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS plan_reader")
        connection.execute("CREATE ROLE plan_reader LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO plan_reader")
        planner.write(report=JOBS["report"].replace("0 2", "0 4"))
        planner.url = planner.url.replace("://sexton@", "://plan_reader@")
        assert "~ report  7 move by +2h" in planner.run("plan", "--out", "p.plan")
        connection.execute("DROP OWNED BY plan_reader")
        connection.execute("DROP ROLE plan_reader")


def test_a_saved_plan_is_its_owners_alone_and_replaces_nothing_else(planner: Planner) -> None:
    planner.write(**JOBS)
    text = planner.run("plan", "--out", "p.plan")
    assert text.splitlines()[-1] == "Saved to p.plan; carry it out with: sexton apply --plan p.plan"
    assert stat.S_IMODE((planner.folder / "p.plan").stat().st_mode) == 0o600
    planner.run("plan", "--out", "p.plan")  # over a plan it goes
    assert "jobs.yaml exists and is not a plan" in planner.run("plan", "--out", "jobs.yaml", code=1)


def test_the_window_ends_where_it_is_told_to(planner: Planner, store: Store) -> None:
    planner.write(report=JOBS["report"])
    assert changes(planner.plan("--until", "1d"))["report"]["ticks"]["appear"] == 1
    end = (store.now() + timedelta(days=3)).replace(microsecond=0)
    document = planner.plan("--until", f"{end:%Y-%m-%dT%H:%M:%SZ}")
    assert datetime.fromisoformat(document["until"]) == end
    assert changes(document)["report"]["ticks"]["appear"] == 3


@pytest.mark.parametrize("until", ["0s", "7", "yesterday", "2020-01-01T00:00:00Z", "2026-01-01"])
def test_a_window_that_is_none_is_wrong_usage(tmp_path: Path, until: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    planner = Planner(tmp_path, url)
    planner.write(report=JOBS["report"])
    assert "--until" in planner.run("plan", "--until", until, code=2)


def test_json_lines_are_a_change_or_a_warning_each_and_the_sums_last(planner: Planner) -> None:
    planner.write(**JOBS)
    rows = [json.loads(line) for line in planner.run("plan", "--output", "jsonl").splitlines()]
    assert [row.get("job") for row in rows[:4]] == list(JOBS)
    assert [row["warning"] for row in rows[4:-1]] == ["clock_change", "no_worker"]
    assert (rows[-1]["summary"]["added"], rows[-1]["ticks"]["appear"]) == (
        4,
        sum(r["ticks"]["appear"] for r in rows[:4]),
    )


def test_too_much_pruning_is_refused_before_anything_is_told(planner: Planner) -> None:
    planner.apply(**JOBS)
    planner.write(report=JOBS["report"])
    assert "add --prune-limit 3" in planner.run("plan", "--prune", code=1)
    assert planner.plan("--prune", "--prune-limit", "3")["summary"]["retired"] == 3
    assert planner.plan()["kept"] == ["gone", "old", "sync"]
