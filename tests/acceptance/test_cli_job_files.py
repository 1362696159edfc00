"""Job files on the command line: from files to the cluster's jobs, or to every problem and no change at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import CurrentJob, StoreOptions
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "jobs"
FIVE_MISTAKES = """\
version: 1
jobs:
  good:
    schedule: "0 5 * * *"
    command: [echo, good]
  backup:
    schedule: */5 * * * *
    command: [backup]
  report:
    schedule: "61 * * * *"
    comand: [report]
  sync:
    schedule: {every: 5}
    shell: sync
    timezone: Mars/Olympus
"""


def jobs_file(folder: Path, *jobs: str) -> str:
    lines = "".join(f"  {job}\n" for job in jobs)
    (folder / "jobs.yaml").write_text(f"version: 1\njobs:\n{lines}")
    return "jobs.yaml"


def job(name: str, more: str = "") -> str:
    return f"{name}: {{schedule: '0 5 * * *', command: [echo, hi]{', ' + more if more else ''}}}"


def jobs_of(url: str) -> dict[str, CurrentJob]:
    store = open_store(StoreOptions(url))
    try:
        return {job.name: job for job in store.edits.current_jobs()}
    finally:
        store.close()


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with its tables, where `sexton` looks for it when nothing else is said."""
    url = f"sqlite:///{tmp_path}/.sexton/sexton.db"
    make_ledger(url)
    return url


def test_five_mistakes_are_five_lines_and_nothing_is_applied(url: str, tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "five.yaml").write_text(FIVE_MISTAKES)
    for arguments in (["validate", "five.yaml"], ["apply", "five.yaml", "--yes"]):
        done = command.run(*arguments)
        assert done.returncode == 1
        assert done.stdout == ""
        assert [line.split(" ")[0] for line in done.stderr.splitlines()] == [
            "five.yaml:7:15:",
            "five.yaml:10:15:",
            "five.yaml:11:5:",
            "five.yaml:13:23:",
            "five.yaml:15:15:",
        ]
    assert jobs_of(url) == {}


def test_one_bad_file_keeps_the_good_ones_out(url: str, tmp_path: Path, command: CommandLine) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    jobs_file(folder, job("good"))
    (folder / "bad.yaml").write_text("version: 1\njobs:\n")
    assert command.run("apply", "jobs", "--yes").returncode == 1
    assert jobs_of(url) == {}


def test_jobs_are_added_changed_renamed_and_retired(url: str, tmp_path: Path, command: CommandLine) -> None:
    done = command.run("apply", jobs_file(tmp_path, job("a"), job("b"), job("c")), "--yes")
    assert done.returncode == 0, done.stderr
    assert "Plan: 3 added." in done.stdout
    first = jobs_of(url)
    assert list(first) == ["a", "b", "c"]

    file = jobs_file(tmp_path, job("a", "queue: slow"), job("bee", "renamed_from: b"))
    done = command.run("apply", file, "--yes")
    assert done.returncode == 0, done.stderr
    assert "queue: default → slow" in done.stdout
    assert "b → bee" in done.stdout
    second = jobs_of(url)
    assert list(second) == ["a", "bee", "c"]
    assert second["bee"].job_id == first["b"].job_id
    assert second["bee"].hash_seed == "b"
    assert second["a"].revision == 2

    done = command.run("apply", file, "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "Nothing to change: 2 unchanged, 1 of the cluster not in the files.",
    )

    done = command.run("apply", file, "--yes", "--prune")
    assert done.returncode == 0, done.stderr
    assert list(jobs_of(url)) == ["a", "bee"]


def test_too_much_pruning_is_refused_whole(url: str, tmp_path: Path, command: CommandLine) -> None:
    command.run("apply", jobs_file(tmp_path, *(job(name) for name in "abcd")), "--yes")
    done = command.run("apply", jobs_file(tmp_path, job("a"), job("new")), "--yes", "--prune")
    assert done.returncode == 1
    assert "add --prune-limit 3" in done.stderr
    assert list(jobs_of(url)) == ["a", "b", "c", "d"]
    done = command.run("apply", jobs_file(tmp_path, job("a"), job("new")), "--yes", "--prune", "--prune-limit", "3")
    assert done.returncode == 0, done.stderr
    assert list(jobs_of(url)) == ["a", "new"]


def test_without_a_terminal_and_without_yes_nothing_is_applied(url: str, tmp_path: Path, command: CommandLine) -> None:
    done = command.run("apply", jobs_file(tmp_path, job("a")))
    assert done.returncode == 1
    assert "Plan: 1 added." in done.stdout
    assert "add --yes" in done.stderr
    assert jobs_of(url) == {}


def test_a_rename_from_nowhere_is_refused_at_its_place(url: str, tmp_path: Path, command: CommandLine) -> None:
    done = command.run("apply", jobs_file(tmp_path, job("a", "renamed_from: old")), "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith("jobs.yaml:3:")
    assert jobs_of(url) == {}


def test_apply_as_json_is_what_was_done(url: str, tmp_path: Path, command: CommandLine) -> None:
    done = command.run("apply", jobs_file(tmp_path, job("a")), "--yes", "-o", "json")
    assert done.returncode == 0, done.stderr
    (change,) = json.loads(done.stdout)
    assert (change["name"], change["kind"], change["revision"]) == ("a", "create", 1)
    assert change["effective_at"].endswith("Z")


def test_the_examples_are_valid_and_apply(url: str, command: CommandLine) -> None:
    done = command.run("validate", str(EXAMPLES), "-o", "json")
    assert done.returncode == 0, done.stderr
    names = {row["job"] for row in json.loads(done.stdout)}
    done = command.run("apply", str(EXAMPLES), "--yes")
    assert done.returncode == 0, done.stderr
    assert jobs_of(url).keys() == names


def test_a_path_that_is_not_there_is_exit_1(command: CommandLine) -> None:
    done = command.run("validate", "nowhere")
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        ["sexton: nowhere does not exist; name a job file or a folder of job files"],
    )
