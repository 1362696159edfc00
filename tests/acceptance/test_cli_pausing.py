"""Pausing, resuming, skipping a tick and backfilling, by the commands; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.decisions import SkipReason
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store, StoreOptions
from tests.support.command_line import CommandLine
from tests.support.leader_scene import MINUTE, create, definition, lead, read, rows, set_columns
from tests.support.ledgers import make_ledger
from tests.support.past_jobs import claims_of, decide, differences, minutes_after, old_job, skip


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger where `sexton` looks for it when nothing else is said."""
    made = f"sqlite:///{tmp_path}/.sexton/sexton.db"
    make_ledger(made)
    return made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(StoreOptions(url))
    yield opened
    opened.close()


def iso(job: JobRow, minutes: int) -> str:
    return (job.at + minutes * MINUTE).isoformat()


def test_several_jobs_are_paused_and_resumed_by_one_command(store: Store, command: CommandLine) -> None:
    create(store, definition("one"), definition("two"), definition("three"))
    done = command.run("pause", "one", "TWO", "one", "--reason", "storage moves")
    assert [line.partition(" from")[0] for line in done.stdout.splitlines()] == ["one paused", "two paused"]
    refused = command.run("pause", "three", "two", "--reason", "more")
    assert (refused.returncode, "two is paused already; nothing was changed" in refused.stderr) == (1, True)
    assert [job.name for job in store.edits.current_jobs() if job.is_paused] == ["one", "two"]
    assert command.run("resume", "one", "two").returncode == 0
    assert command.run("resume", "one").returncode == 1


def test_the_pause_of_all_says_what_it_did_and_status_tells_of_it(store: Store, command: CommandLine) -> None:
    create(store, definition("one"), definition("two"), definition("three"))
    command.run("pause", "one", "--reason", "its own")
    paused = command.run("pause", "--all", "--reason", "storage moves")
    assert paused.stdout.startswith("2 jobs paused; 1 was paused before; what is applied meanwhile will be too")
    assert "all jobs are paused already" in command.run("pause", "--all", "--reason", "again").stdout
    assert "ALL PAUSED by" in command.run("status").stdout
    kept = command.run("pause", "two", "--reason", "stays down")
    assert "two was paused with all; now it stays paused" in kept.stdout
    ended = command.run("resume", "--all")
    assert ended.stdout == "1 job resumed; 2 paused on their own stay so\n"
    assert "all jobs are paused" not in command.run("status").stdout
    assert command.run("resume", "--all").returncode == 1
    assert command.run("pause", "--all", "--reason", "x", "-o", "json").returncode == 0
    assert json.loads(command.run("resume", "--all", "-o", "json").stdout)["pause"]["why"] == "x"


@pytest.mark.parametrize(
    "arguments",
    [
        ("pause", "--reason", "x"),
        ("pause", "one", "--all", "--reason", "x"),
        ("resume",),
        ("resume", "one", "--all"),
        ("skip-next", "one", "--undo", "--reason", "x"),
        ("skip-next", "one", "tomorrow"),
        ("backfill", "one", "--from", "2026-01-01", "--to", "2026-01-02T00:00:00Z"),
    ],
)
def test_wrong_usage_is_told_as_such(url: str, command: CommandLine, arguments: tuple[str, ...]) -> None:
    assert command.run(*arguments).returncode == 2


def test_a_resume_of_all_runs_what_was_missed(store: Store, url: str, command: CommandLine) -> None:
    """Each job by its own policy; a job paused on its own is left alone."""
    term = lead(store)
    jobs = [
        old_job(store, url, "latest"),
        old_job(store, url, "holds", missed=MissedRules(MissedPolicy.HOLD)),
        old_job(store, url, "own"),
    ]
    store.edits.edit([JobChange(ChangeKind.PAUSE, jobs[2].job_id, why="its own")], "ben")
    store.pauses.pause_all("ben", "storage moves")
    for job in jobs:
        set_columns(url, "pauses", {"job_id": job.job_id}, since=job.at)
        decide(store, term, read(store, job.job_id), 60, [skip(job, 0, 60, SkipReason.PAUSED)])
    done = command.run("resume", "--all", "--run-missed")
    assert "minutely, 60 missed: " in done.stdout
    assert "59 ticks held: `sexton holds list` shows" in done.stdout
    assert "2 jobs resumed; 1 paused on its own stays so" in done.stdout
    assert [job.name for job in store.edits.current_jobs() if job.is_paused] == ["own"]
    assert differences(store) == []
    assert "own resumed" in command.run("resume", "own", "--run-missed").stdout
    assert command.run("resume", "own", "--run-missed").returncode == 1


def test_a_backfill_lists_asks_and_runs(store: Store, url: str, command: CommandLine) -> None:
    term = lead(store)
    job = old_job(store, url)
    ran = minutes_after(job, 51, 60)
    decide(store, term, job, 60, [skip(job, 0, 50)], claims_of(job, ran))
    set_columns(url, "claims", {"job_id": job.job_id}, state=3, attempt=1)
    stretch = ("--from", iso(job, 49), "--to", iso(job, 53))
    listed = command.run("backfill", "books", *stretch, "--dry-run")
    assert [line.split()[1:] for line in listed.stdout.splitlines()[1:5]] == [
        ["expired", "runs"],
        ["expired", "runs"],
        ["succeeded", "stays"],
        ["succeeded", "stays"],
    ]
    assert "2 of 4 ticks of books would run" in listed.stdout
    assert "2 stay as they are; nothing was changed" in listed.stdout
    set_columns(url, "budget", {"id": 1}, next_at=store.now() + timedelta(hours=2))
    after_others = command.run("backfill", "books", "--from", iso(job, 49), "--to", "now", "--dry-run").stdout
    assert "started within 2h at the earliest" in after_others or "started within 1h59m" in after_others
    assert command.run("backfill", "books", *stretch).returncode == 1  # there is no terminal to ask on
    assert command.run("backfill", "books", *stretch, answer=lambda: "n\n").returncode == 1
    assert len(rows(url, "claims")) == 10
    done = command.run("backfill", "books", *stretch, "--note", "rates", answer=lambda: "y\n")
    assert (done.returncode, done.stdout.partition(", from")[0]) == (0, "books: 2 ticks to run")
    nothing = command.run("backfill", "books", *stretch, "--yes")
    assert (nothing.returncode, "nothing of books is left to run in there" in nothing.stdout) == (0, True)
    again = json.loads(command.run("backfill", "books", *stretch, "--rerun", "--yes", "-o", "json").stdout)
    assert (again["count"], again["is_paused"]) == (2, False)
    assert differences(store) == []


def test_what_a_backfill_refuses_says_what_to_do(store: Store, url: str, command: CommandLine) -> None:
    term = lead(store)
    job = old_job(store, url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    ahead = command.run("backfill", "books", "--from", iso(job, 1), "--to", iso(job, 90))
    assert (ahead.returncode, "is ahead of now" in ahead.stderr) == (1, True)
    before = command.run("backfill", "books", "--from", iso(job, -90), "--to", iso(job, -9))
    assert (before.returncode, "no tick of books fell due in there" in before.stdout) == (0, True)
    assert command.run("backfill", "book", "--from", iso(job, 1), "--to", iso(job, 2)).returncode == 1


def test_a_tick_is_skipped_and_runs_after_all(store: Store, url: str, command: CommandLine) -> None:
    """Cancelling a tick that is not due yet is the same."""
    term = lead(store)
    job = old_job(store, url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    skipped = command.run("skip-next", "books", "--reason", "storage moves")
    assert "will not run; the ticks around it do" in skipped.stdout
    listed = command.run("ticks", "books").stdout
    assert "skip-next by " in listed
    assert ": storage moves" in listed
    coming = command.run("next", "--job", "books", "-n", "1")
    named, following = (iso(job, minutes).replace("+00:00", "Z") for minutes in (61, 62))
    assert coming.stdout.splitlines()[1].startswith(following)
    assert f"books skips {named}: `sexton ticks books` tells why" in coming.stderr
    assert f"{named} is skipped: `sexton skip-next books" in command.run("jobs", "books").stdout
    assert json.loads(command.run("jobs", "-o", "json").stdout)[0]["next"] == following
    cancelled = command.run("cancel", "books", iso(job, 63), "--reason", "holiday")
    assert "2 ticks to come are skipped in all" in cancelled.stdout
    assert {row.upto for row in rows(url, "skips") if row.named_by} == {job.at + 61 * MINUTE, job.at + 63 * MINUTE}
    assert "will run" in command.run("skip-next", "books", iso(job, 63), "--undo").stdout
    assert "will run" in command.run("skip-next", "books", "--undo").stdout
    assert command.run("skip-next", "books", "--undo").returncode == 1
    command.run("skip-next", "books")
    assert f"; a skip-next is taken back: {named}" in command.run("pause", "books", "--reason", "closed").stdout
    assert differences(store) == []


def test_a_trigger_runs_a_paused_job_and_no_other_claim_of_it_is_granted(
    store: Store, url: str, command: CommandLine
) -> None:
    """While a job is paused only `manual` claims are granted, and a pause of all is no other than that of one."""
    term = lead(store)
    job = old_job(store, url)
    tick = job.at + 60 * MINUTE
    decide(store, term, job, 60, [skip(job, 0, 59)], claims_of(job, [tick]))
    set_columns(url, "claims", {"scheduled_at": tick}, start_by=store.now() + timedelta(hours=1))
    command.run("pause", "--all", "--reason", "storage moves")
    command.run("backfill", "books", "--from", iso(job, 10), "--to", iso(job, 12), "--yes")
    assert command.run("trigger", "books", "--request-id", "r1").returncode == 0
    granted = [(row.origin, row.blocked) for row in rows(url, "claims") if not row.blocked]
    assert granted == [(4, False)]
    assert len(rows(url, "claims")) == 4
    assert command.run("trigger", "nobody").returncode == 1
    store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "ben")
    assert "is retired" in command.run("trigger", "books").stderr
