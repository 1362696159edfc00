"""What a Python run does to its process, or leaves in it, costs no other run its start, its time or its outcome."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sexton.targets import PythonTarget
from sexton_worker.core.runs import Ending, StopReason
from tests.support.runs import Runs, is_alive
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

WORK = "tests.support.work_module"
WITHIN = 60.0


@pytest.fixture
def one() -> Iterator[Runs]:
    """One slot."""
    with Runs(slots=1) as runs:
        yield runs


def job(name: str, *args: Any) -> PythonTarget:
    return PythonTarget(f"{WORK}:{name}", args)


def dying_at_start(folder: Path, times: int) -> Runs:
    """Whose Python processes are killed so many times before they are ready, as by a machine without memory."""
    (folder / "sitecustomize.py").write_text(
        "import os\n"
        f"for number in range({times}):\n"
        "    try:\n"
        f"        open(f'{folder}/death-{{number}}', 'x').close()\n"
        "    except FileExistsError:\n"
        "        continue\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    return Runs(slots=1, environment={"PYTHONPATH": f"{folder}:{ROOT}"})


def pid_of_child(runs: Runs) -> int:
    return int(runs.run(job("tell_pid")).stdout)


@pytest.mark.parametrize("what", ["thread", "atexit function"])
def test_nothing_that_a_job_left_behind_keeps_a_process_that_serves_no_more(one: Runs, what: str) -> None:
    pid = pid_of_child(one)
    one.run(job("leave_something_that_hangs", what))
    eventually(lambda: not is_alive(pid), WITHIN, "its process ends by itself")
    assert one.run(job("noop")).exit_code == 0


def test_a_run_given_to_a_process_that_does_not_begin_it_runs_elsewhere(one: Runs) -> None:
    """The frozen process would keep it for max_runtime."""
    pid = pid_of_child(one)
    os.kill(pid, signal.SIGSTOP)
    ended = one.run(job("tell_pid"))
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 0)
    assert int(ended.stdout) != pid
    eventually(lambda: not is_alive(pid), WITHIN, "the deaf one is killed")


def test_stopping_a_run_that_a_process_does_not_begin_leaves_no_process_behind(one: Runs) -> None:
    pid = pid_of_child(one)
    os.kill(pid, signal.SIGSTOP)
    before = one.execution._python._children
    token = one.start(job("noop"))
    one.execution.stop(token, StopReason.CANCELLED)
    ended = one.end_of(token)
    assert (ended.ending, ended.started) == (Ending.CANCELLED, None)
    eventually(lambda: not is_alive(pid), WITHIN, "the deaf one is killed")
    assert not list(before)
    assert one.run(job("noop")).exit_code == 0


def test_what_a_stopped_job_started_has_kill_after_to_end_too(one: Runs, tmp_path: Path) -> None:
    """The Python process dies of SIGTERM at once, the shell that it waited for takes its time."""
    note, pid = tmp_path / "note", pid_of_child(one)
    token = one.start(job("wait_for_a_tidy_process", str(note)), kill_after=600)
    eventually(lambda: note.exists() and note.read_text() == "up\n", WITHIN, "the shell is up")
    one.execution.stop(token, StopReason.CANCELLED)
    eventually(lambda: not is_alive(pid), WITHIN, "the Python process has ended")
    Path(f"{note}.go").touch()
    ended = one.end_of(token)
    assert note.read_text() == "tidy\n"
    assert (ended.ending, ended.exit_code) == (Ending.CANCELLED, 143)
    assert ended.error == "cancelled on request; ended by SIGTERM"


def test_what_a_stopped_job_started_is_killed_after_that_and_the_end_says_so(one: Runs, tmp_path: Path) -> None:
    note = tmp_path / "note"
    token = one.start(job("wait_for_a_tidy_process", str(note)), kill_after=0.5)
    eventually(lambda: note.exists() and note.read_text() == "up\n", WITHIN, "the shell is up")
    one.execution.stop(token, StopReason.CANCELLED)
    ended = one.end_of(token)
    assert (ended.ending, ended.exit_code) == (Ending.CANCELLED, 143)
    assert ended.error == "cancelled on request; ended by SIGTERM, and what it had started by SIGKILL"


def test_a_job_that_returns_on_sigterm_is_waited_for_no_longer(one: Runs, tmp_path: Path) -> None:
    note = tmp_path / "note"
    token = one.start(job("survive_sigterm", str(note)), kill_after=600)
    eventually(note.exists, WITHIN, "it runs")
    one.execution.stop(token, StopReason.CANCELLED)
    ended = one.end_of(token)
    assert (ended.ending, ended.error) == (Ending.CANCELLED, "cancelled on request; ended by SIGTERM")
    assert one.run(job("noop")).exit_code == 0


def test_a_run_outlasts_processes_that_die_before_they_are_ready(tmp_path: Path) -> None:
    with dying_at_start(tmp_path, times=2) as runs:
        assert runs.run(job("noop")).exit_code == 0
    assert len(list(tmp_path.glob("death-*"))) == 2


def test_a_run_that_no_process_comes_to_begin_is_given_back_and_has_not_failed(tmp_path: Path) -> None:
    with dying_at_start(tmp_path, times=3) as runs:
        ended = runs.run(job("noop"))
        assert (ended.ending, ended.started) == (Ending.MACHINE_FAULT, None)
        says = "3 Python processes did not come to begin it; the last ended by SIGKILL while starting"
        assert says in ended.error
        assert runs.run(job("noop")).exit_code == 0


@pytest.mark.parametrize("when", ["resting", "answering"])
def test_what_was_taken_of_earlier_runs_is_not_held_to_be_of_the_next(one: Runs, when: str) -> None:
    """A process without its descriptors can still end a run that wrote nothing, for there is nothing to say."""
    pid_of_child(one)
    child = next(iter(one.execution._python._children))
    with one.execution._lock:
        if when == "resting":  # somebody's last words, after the run
            child.board.note_taking()
        else:  # an output that was heard of, but taken with the end of its run
            for descriptor in child.outputs.descriptors():
                child.hand.append(None)  # type: ignore[arg-type]  # as if there were a run
                one.execution._python._hands.hear_output(child, descriptor)
                child.hand.clear()
    ended = one.run(job("close_descriptors"))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 0, "")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"env": {"COLOUR": "re\0d"}}, "cannot set variable 'COLOUR': embedded null byte; correct the job's env"),
        ({"env": {"CO=LOUR": "red"}}, "cannot set variable 'CO=LOUR': "),
        ({"env": {"": "red"}}, "cannot set variable '': "),
        ({"env": {"COLOUR": "\ud800"}}, "cannot set variable 'COLOUR': "),
        ({"cwd": "/no\0"}, "cannot work in '/no\\x00': "),
        ({"cwd": "/\ud800"}, "cannot work in '/\\ud800': "),
        ({"cwd": "/no/such"}, "cannot work in '/no/such': No such file or directory; create it on this worker"),
    ],
)
def test_surroundings_that_the_machine_refuses_end_the_run_with_a_sentence(
    one: Runs, keys: dict[str, Any], says: str
) -> None:
    ended = one.run(job("noop"), **keys)
    assert (ended.ending, ended.started) == (Ending.NOT_STARTED, None)
    assert ended.error.startswith(says)
    assert one.run(job("noop")).exit_code == 0
