"""`sexton apply`: what is asked, what an answer does, and saved plans that the cluster has left behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sexton.inputs import own_inputs
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.jobfiles.saved_plans import SavedPlan, save_plan
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange, Store, StoreOptions
from tests.support.command_line import CommandLine
from tests.support.leader_scene import MINUTE, definition
from tests.support.ledgers import make_ledger
from tests.support.processes import SEXTON, clean_environment


@pytest.fixture
def store(postgres_ledger: str, tmp_path: Path) -> Iterator[Store]:
    """A cluster's empty ledger. What the stores answer is tested on both databases in `stores`."""
    url = postgres_ledger
    (tmp_path / "sexton.toml").write_text(f'database = "{url}"\n')
    opened = open_store(StoreOptions(url))
    yield opened
    opened.close()


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def write(folder: Path, *jobs: str) -> str:
    lines = "".join(f"  {job}\n" for job in jobs)
    (folder / "jobs.yaml").write_text(f"version: 1\njobs:\n{lines}" if jobs else "version: 1\njobs: {}\n")
    return "jobs.yaml"


def job(name: str, more: str = "") -> str:
    return f"{name}: {{schedule: '0 5 * * *', command: [echo, hi]{', ' + more if more else ''}}}"


def jobs_of(store: Store) -> dict[str, CurrentJob]:
    return {one.name: one for one in store.edits.current_jobs()}


def apply(command: CommandLine, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = command.run("apply", *arguments, "--yes")
    assert done.returncode == 0, done.stderr
    return done


def bob_revises(store: Store, name: str) -> Callable[[], str]:
    """Someone who changes a job while another thinks about the question, who then says yes."""

    def answer() -> str:
        found = store.edits.find_job(name)
        new = definition(name, MINUTE, queue=f"of-revision-{found.revision + 1}")
        store.edits.edit([JobChange(ChangeKind.REVISE, found.job_id, new)], "bob@desk")
        return "y\n"

    return answer


# --- the question -----------------------------------------------------------------------------------------------------


def test_the_question_names_every_kind_of_change(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("a"), job("b"), job("c")))
    file = write(tmp_path, job("a", "queue: q"), job("bee", "renamed_from: b"), job("d"), job("e"))
    done = command.run("apply", file, "--prune", answer=lambda: "y\n")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Apply 5 changes (2 added, 1 changed, 1 renamed, 1 retired)? [y/N] "
    assert sorted(jobs_of(store)) == ["a", "bee", "d", "e"]


@pytest.mark.parametrize("answer", ["n\n", "\n", "no\n", "", "maybe\n"])
def test_whatever_is_not_yes_changes_nothing(store: Store, tmp_path: Path, command: CommandLine, answer: str) -> None:
    done = command.run("apply", write(tmp_path, job("a")), answer=lambda: answer)
    assert done.returncode == 1
    assert done.stderr.endswith("sexton: stopped; nothing was changed\n")
    assert jobs_of(store) == {}


def test_ctrl_c_changes_nothing_and_says_so(store: Store, tmp_path: Path, command: CommandLine) -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    done = command.run("apply", write(tmp_path, job("a")), answer=interrupt)
    assert done.returncode == 130
    assert done.stderr.endswith("sexton: stopped; nothing was changed\n")
    assert jobs_of(store) == {}


def test_nothing_to_change_is_not_asked_about(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("a")))
    done = command.run("apply", "jobs.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Nothing to change: 1 unchanged.\n")


@pytest.mark.parametrize("name", ["changed", "unchanged"])
def test_a_job_of_the_files_that_someone_changes_before_the_answer_refuses_it_all(
    store: Store, tmp_path: Path, command: CommandLine, name: str
) -> None:
    apply(command, write(tmp_path, job("changed"), job("unchanged"), job("other")))
    file = write(tmp_path, job("changed", "queue: q"), job("unchanged"), job("new"))
    done = command.run("apply", file, answer=bob_revises(store, name))
    assert done.returncode == 1
    assert f"job '{name}' is at revision 2, not 1: bob@desk revised it at 20" in done.stderr
    assert "plan again" in done.stderr
    assert sorted(jobs_of(store)) == ["changed", "other", "unchanged"]
    assert jobs_of(store)["changed"].definition.queue in ("default", "of-revision-2")


def test_a_job_of_others_that_changes_before_the_answer_is_none_of_this_apply_s(
    store: Store, tmp_path: Path, command: CommandLine
) -> None:
    apply(command, write(tmp_path, job("other")))
    done = command.run("apply", write(tmp_path, job("mine")), answer=bob_revises(store, "other"))
    assert done.returncode == 0, done.stderr
    assert {one.name: one.revision for one in jobs_of(store).values()} == {"mine": 1, "other": 2}


def test_data_for_programs_shows_no_plan_and_so_it_needs_yes(
    store: Store, tmp_path: Path, command: CommandLine
) -> None:
    done = command.run("apply", write(tmp_path, job("a")), "-o", "json", answer=lambda: "y\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert jobs_of(store) == {}


def test_at_a_real_terminal_ctrl_c_ends_the_question(store: Store, tmp_path: Path) -> None:
    file = write(tmp_path, job("a"))
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(
        [str(SEXTON), "apply", file],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        start_new_session=True,
    )
    os.close(its_end)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while piece := os.read(terminal, 1024):
            shown += piece
            if shown.endswith(b"[y/N] ") and process.poll() is None:
                process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    os.close(terminal)
    assert b"Apply 1 change (1 added)? [y/N] " in shown
    assert shown.endswith(b"sexton: stopped; nothing was changed\r\n")
    assert jobs_of(store) == {}


# --- renames ----------------------------------------------------------------------------------------------------------


def test_a_rename_keeps_cursor_history_and_what_is_hashed(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("old", "jitter: 1m")))
    before = jobs_of(store)["old"]
    store.edits.trigger(before.job_id, "test")
    cursor = store.reads.job("old").cursor
    renamed = job("new", "jitter: 1m, renamed_from: old")
    apply(command, write(tmp_path, renamed))
    after = jobs_of(store)["new"]
    assert (after.job_id, after.revision, after.hash_seed) == (before.job_id, 2, "old")
    assert store.reads.job("new").cursor == cursor
    assert len(store.reads.ticks_page("new").claims) == 1
    again = command.run("apply", "jobs.yaml")  # the key has done its work
    assert (again.returncode, again.stdout) == (0, "Nothing to change: 1 unchanged.\n")
    apply(command, write(tmp_path, renamed.replace("new:", "New:").replace("renamed_from: old", "queue: q")))
    assert (jobs_of(store)["New"].job_id, jobs_of(store)["New"].revision) == (before.job_id, 3)


def test_a_rename_that_contradicts_the_files_or_the_cluster_is_refused_at_its_place(
    store: Store, tmp_path: Path, command: CommandLine
) -> None:
    apply(command, write(tmp_path, job("old")))
    for jobs, why in (
        ((job("old"), job("new", "renamed_from: old")), "old is still in the files"),
        ((job("new", "renamed_from: odl"),), "the cluster knows neither odl nor new"),
        ((job("new", "renamed_from: old"), job("newer", "renamed_from: OLD")), "is also what new was"),
    ):
        done = command.run("apply", write(tmp_path, *jobs), "--yes")
        assert done.returncode == 1
        assert f"jobs.yaml:{2 + len(jobs)}:" in done.stderr
        assert why in done.stderr
    assert {one.name: one.revision for one in jobs_of(store).values()} == {"old": 1}


# --- prune ------------------------------------------------------------------------------------------------------------


def test_an_empty_folder_is_not_a_cluster_without_jobs(store: Store, tmp_path: Path, command: CommandLine) -> None:
    """The disaster of a checkout that went wrong."""
    apply(command, write(tmp_path, *(job(name) for name in "abcdefghijklm")))
    (tmp_path / "empty").mkdir()
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "jobs.yaml").write_text("version: 1\njobs: {}\n")
    for path, why in (
        ("empty", "holds no job files"),
        ("none", "--prune would retire 13 of 13 jobs"),
        ("jbos.yaml", "does not exist"),
        ("none/jobs.yml", "does not exist"),
    ):
        for words in (("apply", path, "--prune", "--yes"), ("plan", path, "--prune", "--out", "p.plan")):
            done = command.run(*words)
            assert done.returncode == 1
            assert why in done.stderr
    assert len(jobs_of(store)) == 13
    assert not (tmp_path / "p.plan").exists()


def test_a_tenth_may_go_at_once_and_more_by_its_number(store: Store, tmp_path: Path, command: CommandLine) -> None:
    names = [f"job-{number}" for number in range(20)]
    apply(command, write(tmp_path, *map(job, names)))
    done = command.run("apply", write(tmp_path, *map(job, names[3:])), "--prune", "--yes")
    assert done.returncode == 1
    assert "more than the 2 allowed; if this is meant, add --prune-limit 3" in done.stderr
    apply(command, write(tmp_path, *map(job, names[2:])), "--prune")
    apply(command, write(tmp_path, *map(job, names[9:])), "--prune", "--prune-limit", "7")
    assert sorted(jobs_of(store)) == sorted(names[9:])


def test_a_saved_plan_may_retire_no_more_than_its_limit_either(
    store: Store, tmp_path: Path, command: CommandLine
) -> None:
    apply(command, write(tmp_path, *map(job, "abcd")))
    everything = plan_changes(
        load_job_text("version: 1\njobs: {}\n"), store.edits.current_jobs(), prune=True, prune_limit=4
    )
    cluster_id = store.terms.cluster().cluster_id
    for limit, code in ((None, 1), (3, 1), (4, 0)):
        saved = SavedPlan(everything, cluster_id, own_inputs().inputs_id, store.now(), "x", (), limit)
        save_plan(tmp_path / "p.plan", saved)
        done = command.run("apply", "--plan", "p.plan", "--yes")
        assert done.returncode == code
        assert len(jobs_of(store)) == (4 if code else 0)
        assert ("--prune would retire 4 of 4 jobs" in done.stderr) is bool(code)


# --- saved plans ------------------------------------------------------------------------------------------------------


def save(command: CommandLine, *arguments: str) -> None:
    done = command.run("plan", "jobs.yaml", "--out", "p.plan", *arguments)
    assert done.returncode == 0, done.stderr


def test_a_saved_plan_is_shown_and_carried_out(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("a"), job("b")))
    write(tmp_path, job("a", "queue: q"), job("c"))
    save(command, "--prune")
    assert (tmp_path / "p.plan").stat().st_mode & 0o777 == 0o600
    (tmp_path / "jobs.yaml").unlink()
    done = command.run("apply", "--plan", "p.plan", answer=lambda: "y\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("p.plan: the plan of jobs.yaml, made by ")
    assert "queue: default → q" in done.stdout
    assert done.stderr == "Apply 3 changes (1 added, 1 changed, 1 retired)? [y/N] "
    assert {one.name: one.revision for one in jobs_of(store).values()} == {"a": 2, "c": 1}


def test_a_plan_is_carried_out_once(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("a")))
    write(tmp_path, job("a", "queue: q"), job("b"))
    save(command)
    apply(command, "--plan", "p.plan")
    again = command.run("apply", "--plan", "p.plan", "--yes")
    assert again.returncode == 1
    assert "job 'a' is at revision 2, not 1: " in again.stderr
    assert "plan again" in again.stderr


@pytest.mark.parametrize("name", ["changed", "unchanged", "retired"])
def test_a_plan_that_the_cluster_left_behind_is_refused_before_anybody_is_asked(
    store: Store, tmp_path: Path, command: CommandLine, name: str
) -> None:
    apply(command, write(tmp_path, job("changed"), job("unchanged"), job("retired")))
    write(tmp_path, job("changed", "queue: q"), job("unchanged"))
    save(command, "--prune")
    bob_revises(store, name)()
    done = command.run("apply", "--plan", "p.plan", answer=lambda: pytest.fail("asked"))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"job '{name}' is at revision 2, not 1: bob@desk revised it at 20" in done.stderr
    assert sorted(jobs_of(store)) == ["changed", "retired", "unchanged"]


@pytest.mark.parametrize("name", ["changed", "unchanged", "retired"])
def test_a_plan_left_behind_between_question_and_answer_is_refused_too(
    store: Store, tmp_path: Path, command: CommandLine, name: str
) -> None:
    apply(command, write(tmp_path, job("changed"), job("unchanged"), job("retired")))
    write(tmp_path, job("changed", "queue: q"), job("unchanged"))
    save(command, "--prune")
    done = command.run("apply", "--plan", "p.plan", answer=bob_revises(store, name))
    assert done.returncode == 1
    assert f"job '{name}' is at revision 2, not 1: bob@desk revised it at 20" in done.stderr
    assert sorted(jobs_of(store)) == ["changed", "retired", "unchanged"]


def test_a_name_taken_since_the_plan_refuses_it(store: Store, tmp_path: Path, command: CommandLine) -> None:
    write(tmp_path, job("new"), job("newer"))
    save(command)
    store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition("NEW"))], "bob@desk")
    done = command.run("apply", "--plan", "p.plan", "--yes")
    assert done.returncode == 1
    assert "there is a job named 'new' already" in done.stderr
    assert "bob@desk created it at 20" in done.stderr
    assert list(jobs_of(store)) == ["NEW"]


def test_a_plan_of_another_cluster_is_refused(store: Store, tmp_path: Path, command: CommandLine) -> None:
    apply(command, write(tmp_path, job("a")))
    save(command)
    make_ledger(f"sqlite:///{tmp_path}/other.db")
    done = command.run("apply", "--plan", "p.plan", "--yes", "--database", f"sqlite:///{tmp_path}/other.db")
    assert done.returncode == 1
    assert "this plan was made for the cluster " in done.stderr


def test_a_plan_of_other_inputs_is_refused(store: Store, tmp_path: Path, command: CommandLine) -> None:
    write(tmp_path, job("a"))
    save(command)
    store.terms.enroll("database:", "1999a/1/0.1", "1999a", 1)
    done = command.run("apply", "--plan", "p.plan", "--yes")
    assert done.returncode == 1
    assert "the cluster's are 1999a/1/0.1; nothing was changed; plan again" in done.stderr
    assert jobs_of(store) == {}


def test_a_plan_someone_edited_is_refused(store: Store, tmp_path: Path, command: CommandLine) -> None:
    write(tmp_path, job("a"))
    save(command)
    file = tmp_path / "p.plan"
    content = json.loads(file.read_text())
    content["added"][0]["definition"]["target"] = {"shell": "rm -rf /"}
    file.write_text(json.dumps(content))
    done = command.run("apply", "--plan", "p.plan", "--yes")
    assert done.returncode == 1
    assert "p.plan was changed after it was written" in done.stderr
    assert jobs_of(store) == {}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["jobs.yaml", "--plan", "p.plan"],
        ["--plan", "p.plan", "--prune"],
        ["--plan", "p.plan", "--prune-limit", "3"],
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    tmp_path: Path, command: CommandLine, words: list[str]
) -> None:
    assert command.run("apply", *words, "--yes").returncode == 2
