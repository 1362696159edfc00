"""`sexton holds`: what an operator reads and answers at night."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sexton.claims import Origin
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from tests.support.command_line import CommandLine
from tests.support.held_scene import hold_claims, hold_gap
from tests.support.leader_scene import SECOND, definition, lead, read, rows
from tests.support.ledgers import make_ledger

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def url(tmp_path: Path) -> str:  # the databases differ in `tests/stores/test_holds.py`
    make_ledger(made := f"sqlite:///{tmp_path}/ledger.db")
    return made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(StoreOptions(url))) as opened:
        yield opened


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def run(command: CommandLine, url: str) -> Run:
    """`sexton holds ...` on the ledger; at 80 columns, as no terminal says otherwise."""
    return lambda *arguments, **keys: command.run("holds", *arguments, env={"SEXTON_DATABASE": url}, **keys)


def test_the_list_says_how_many_since_when_and_why(store: Store, url: str, run: Run) -> None:
    assert (run("list").returncode, run("list").stderr) == (0, "nothing is held\n")
    job = hold_gap(store, url, lead(store))
    done = run()
    assert done.returncode == 0
    assert "policy hold: older than grace 0s" in done.stdout
    (row,) = json.loads(run("list", "-o", "json").stdout)
    assert (row["proposal_id"], row["job"], row["count"], row["span"], row["state"]) == (1, "held", 5, 4.0, "open")
    assert (row["drain"], row["order"], row["is_paused"]) == (None, "oldest", False)
    assert json.loads(run("list", "--job", "HELD", "-o", "json").stdout)[0]["job_id"] == job.job_id
    assert run("list", "--job", "hel").returncode == 1


def test_show_has_the_ticks_that_would_run_and_when(store: Store, url: str, run: Run) -> None:
    job = hold_gap(store, url, lead(store))
    shown = run("show", "1", "--limit", "2")
    assert shown.returncode == 0
    assert shown.stdout.startswith("proposal 1 of held: 5 held ticks, open\n")
    assert "... and 3 more" in shown.stdout
    record = json.loads(run("show", "1", "-o", "json").stdout)
    wanted = [(job.at + number * SECOND).isoformat().replace("+00:00", "Z") for number in range(1, 6)]
    assert [tick["scheduled_at"] for tick in record["ticks"]] == wanted
    assert (record["is_whole"], record["ticks"][0]["starts_at"] < record["ticks"][1]["starts_at"]) == (True, True)


def test_approving_asks_and_says_what_may_start(store: Store, url: str, run: Run) -> None:
    hold_gap(store, url, lead(store))
    for refused in (run("approve", "1"), run("approve", "1", answer=lambda: "n\n")):
        assert refused.returncode == 1
        assert rows(url, "claims") == []
    done = run("approve", "held", "--note", "books are open", answer=lambda: "y\n")
    assert done.returncode == 0, done.stderr
    assert "5 held ticks would run" in done.stderr
    assert done.stdout.startswith("proposal 1 of held is approved: 5 held ticks may start at ")
    assert [one.origin for one in rows(url, "claims")] == [Origin.HELD] * 5


def test_a_dry_run_shows_the_part_and_changes_nothing(store: Store, url: str, run: Run) -> None:
    job = hold_gap(store, url, lead(store))
    begin = (job.at + 2 * SECOND).isoformat()
    dry = run("approve", "1", "--from", begin, "--dry-run", "-o", "json")
    assert [tick["scheduled_at"] for tick in json.loads(dry.stdout)] == [
        (job.at + number * SECOND).isoformat().replace("+00:00", "Z") for number in range(2, 6)
    ]
    told = run("approve", "1", "--newest", "2", "--dry-run").stdout
    assert "2 held ticks would run" in told
    assert "the other 3 would be rejected" in told
    assert len(store.reads.holds()) == 1


def test_a_part_is_approved_and_the_list_of_all_tells_of_it(store: Store, url: str, run: Run) -> None:
    hold_gap(store, url, lead(store))
    done = run("approve", "1", "--newest", "2", "--note", "the rest was paid", "--yes")
    assert done.stdout.endswith("; the other 3 are rejected\n")
    assert run("list").stderr == "nothing is held\n"
    assert run("list", "--all").stdout.count("the rest was paid") == 1
    assert "approved in part (2 of 5 ticks) by " in run("show", "1").stdout
    (row,) = json.loads(run("list", "--all", "-o", "json").stdout)
    assert (row["state"], row["approved"], row["count"], row["waits"]) == ("approved", 2, 5, None)


def test_a_tick_list_tells_what_waits_from_what_was_rejected_and_what_runs_once(
    store: Store, url: str, command: CommandLine
) -> None:
    def told() -> list[tuple[str, int]]:
        listed = command.run("ticks", "held", "--upcoming", "0", "-o", "json", env={"SEXTON_DATABASE": url}).stdout
        return [(row["state"], row["count"]) for row in json.loads(listed)]

    hold_gap(store, url, lead(store))
    assert told() == [("held", 5)]
    command.run("holds", "approve", "1", "--newest", "2", "--yes", env={"SEXTON_DATABASE": url})
    assert told() == [("ready", 1), ("ready", 1), ("rejected", 3)]


def test_who_comes_second_is_told_who_was_before(store: Store, url: str, run: Run) -> None:
    hold_gap(store, url, lead(store))
    store.holds.reject(1, "ana@desk", "paid by hand")
    for again in (run("approve", "1", "--yes"), run("reject", "1", "--yes")):
        assert (again.returncode, again.stdout) == (1, "")
        assert "proposal 1 of held was rejected by ana@desk at " in again.stderr
        assert "(paid by hand); this changed nothing" in again.stderr
    assert json.loads(run("approve", "1", "--yes", "-o", "json").stdout)[0]["is_done"] is False
    nothing = run("approve", "held", "--yes")
    assert (nothing.returncode, "nothing of held is held" in nothing.stderr) == (1, True)


def test_a_job_s_name_stands_for_all_its_open_proposals(store: Store, url: str, run: Run) -> None:
    term = lead(store)
    job = hold_gap(store, url, term)
    hold_claims(store, term, job=read(store, job.job_id))
    part = run("approve", "held", "--newest", "1", "--yes")
    assert (part.returncode, "name one by its id" in part.stderr) == (1, True)
    done = run("reject", "held", "1", "--yes")
    assert done.stdout == (
        "proposal 1 of held is rejected: 5 held ticks will not run\n"
        "proposal 2 of held is rejected: 3 held ticks will not run\n"
    )


def test_what_keeps_approved_ticks_from_running_is_said(store: Store, url: str, run: Run) -> None:
    job = hold_gap(store, url, lead(store))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why="books closed")], "ana")
    store.edits.halt("ana", "restore")
    assert "waits for `sexton resume held`" in run("show", "1").stdout
    done = run("approve", "1", "--yes")
    assert "5 held ticks once it is resumed" in done.stdout
    assert "the cluster is halted" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("approve", "9"), 1, "there is no proposal 9"),
        (("approve", "9" * 30), 1, "there is no proposal"),
        (("show", "held"), 2, "is no id"),
        (("approve", "hald"), 1, "did you mean held"),
        (("approve",), 2, "ID|JOB"),
        (("approve", "1", "--newest", "0"), 2, "--newest"),
        (("approve", "1", "--newest", "1", "--to", "2026-01-01T00:00:00Z"), 2, "--newest goes without"),
        (("approve", "1", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-02T00:00:00Z"), 2, "--from is not before"),
        (("approve", "1", "--from", "2026-01-02"), 2, "has no zone"),
        (("approve", "1", "--to", "2020-01-02T00:00:00Z", "--yes"), 1, "no tick of this proposal lies there"),
        (("reject", "1", "--note", "a\nb", "--yes"), 1, "one line"),
        (("reject", "1", "--note", "x" * 1001, "--yes"), 2, "--note"),
    ],
)
def test_bad_input_is_named_and_answers_nothing(
    store: Store, url: str, run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    hold_gap(store, url, lead(store))
    done = run(*arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert len(store.reads.holds()) == 1


def test_status_names_open_holds_with_the_oldest(store: Store, url: str, command: CommandLine) -> None:
    hold_gap(store, url, lead(store))
    store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition("other"))], "ana")
    done = command.run("status", env={"SEXTON_DATABASE": url})
    assert done.returncode == 1
    assert "1 proposal held, the oldest for " in done.stdout
