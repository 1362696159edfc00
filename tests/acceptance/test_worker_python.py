"""The python target against real child processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sexton.targets import PythonTarget
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from tests.support.runs import Runs, is_alive
from tests.support.waiting import eventually

WORK = "tests.support.work_module"


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Runs(environment={"WORKER_SECRET": "hunter2"}) as runs:
        yield runs


def job(name: str, *args: Any, **kwargs: Any) -> PythonTarget:
    return PythonTarget(f"{WORK}:{name}", args, kwargs)


def pid_of_child(runs: Runs) -> int:
    return int(runs.run(job("tell_pid")).stdout)


def assert_works(runs: Runs) -> None:
    ended = runs.run(job("noop"))
    assert (ended.ending, ended.exit_code, ended.error, ended.stdout) == (Ending.EXITED, 0, "", b"")


def test_a_function_gets_its_arguments_its_context_and_a_clean_environment(runs: Runs, tmp_path: Path) -> None:
    target = job("tell", 1, [2, None], who="Ä")
    ended = runs.run(target, env={"COLOUR": "blue"}, cwd=str(tmp_path), stdin="some input")
    assert ended.stdout.decode().splitlines() == [
        "args=(1, [2, None]) kwargs={'who': 'Ä'}",
        f"context=nightly 2026-03-29T01:00:00+00:00 3 {ended.token} 2026-03-30T01:00:00+00:00",
        "SEXTON_JOB=nightly",
        "SEXTON_TICK=2026-03-29T01:00:00Z",
        "SEXTON_ATTEMPT=3",
        f"SEXTON_TOKEN={ended.token}",
        "SEXTON_DEADLINE=2026-03-30T01:00:00Z",
        "COLOUR=blue",
        f"cwd={tmp_path} stdin='some input' secret=None",
    ]


def test_a_run_leaves_its_surroundings_to_no_other(runs: Runs) -> None:
    pid = pid_of_child(runs)
    runs.run(job("spoil_surroundings"))
    told = runs.run(job("tell")).stdout.decode()
    assert "COLOUR=None" in told
    assert f"cwd={os.getcwd()} " in told
    assert pid_of_child(runs) == pid  # one warm process did all of it


def test_each_run_keeps_its_own_outputs(runs: Runs) -> None:
    for text in ("first", "second"):
        ended = runs.run(job("write_both", text))
        assert ended.stdout == f"{text} by print\n{text} by descriptor\n".encode()
        assert ended.stderr == f"{text} by stderr\n".encode()
    ended = runs.run(job("write_binary", 5_000_192))
    assert ended.stdout_bytes == 5_000_192
    assert len(ended.stdout) <= KEPT_BYTES


def test_an_exception_fails_the_run_and_names_its_kinds(runs: Runs) -> None:
    ended = runs.run(job("fill_disk"))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.RAISED, 1, "DiskFull: no room")
    assert ended.exceptions[:4] == ("DiskFull", f"{WORK}.DiskFull", "OSError", "builtins.OSError")
    assert b"Traceback" in ended.stderr
    assert runs.run(job("raise_unprintable")).error == "Unprintable"
    assert_works(runs)


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [(None, 0, ""), (0, 0, ""), (3, 3, "SystemExit: 3"), ("no luck", 1, "SystemExit: no luck")],
)
def test_system_exit_ends_the_run_and_nothing_else(runs: Runs, code: object, exit_code: int, error: str) -> None:
    ended = runs.run(job("leave", code))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, exit_code, error)
    assert_works(runs)


@pytest.mark.parametrize(
    ("name", "args", "exit_code", "says"),
    [
        ("kill_self", (), 137, "the job's process died in mid-run: ended by SIGKILL"),
        ("exit_hard", (5,), 5, "the job's process died in mid-run: exited with code 5"),
        ("exit_hard", (0,), 0, "the job's process died in mid-run: exited with code 0"),
    ],
)
def test_a_run_that_kills_its_process_fails_and_the_next_gets_another(
    runs: Runs, name: str, args: tuple[int, ...], exit_code: int, says: str
) -> None:
    before = pid_of_child(runs)
    ended = runs.run(job(name, *args))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.RAISED, exit_code, says)
    assert pid_of_child(runs) != before


@pytest.mark.parametrize("name", ["close_outputs", "close_everything"])
def test_a_run_that_spoils_its_process_harms_no_other(runs: Runs, name: str) -> None:
    runs.run(job(name))
    for _ in range(3):
        assert runs.run(job("write_both", "all there")).stderr == b"all there by stderr\n"


def test_an_idle_process_that_died_is_replaced(runs: Runs) -> None:
    pid = pid_of_child(runs)
    os.kill(pid, 9)
    eventually(lambda: not is_alive(pid), 30, "it is gone")
    assert_works(runs)


def test_a_fork_that_a_job_lets_return_takes_no_work(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    assert runs.run(job("fork_and_return", str(note))).exit_code == 0
    eventually(lambda: not is_alive(int(note.read_text())), 30, "the second process ends")
    assert_works(runs)


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("no_such_module:f", "cannot import 'no_such_module:f': ModuleNotFoundError: No module named 'no_such_module'"),
        (f"{WORK}:no_such_function", "AttributeError"),
        (f"{WORK}:not_a_function", "TypeError: tests.support.work_module:not_a_function is no function but int"),
    ],
)
def test_what_cannot_be_imported_fails_with_one_sentence(runs: Runs, reference: str, says: str) -> None:
    ended = runs.run(PythonTarget(reference))
    assert (ended.ending, ended.started) == (Ending.NOT_STARTED, None)
    assert says in ended.error
    assert "\n" not in ended.error
    assert_works(runs)


def test_a_module_that_breaks_while_it_loads_says_so(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "broken_jobs.py").write_text("import os\nraise RuntimeError('not today')\n")
    with Runs(environment={"PYTHONPATH": str(tmp_path)}) as elsewhere:
        ended = elsewhere.run(PythonTarget("broken_jobs:run"))
    where = f"{tmp_path}/broken_jobs.py, line 2"
    assert ended.error == f"cannot import 'broken_jobs:run': {where}: RuntimeError: not today"
    assert "ImportError" not in ended.exceptions


def test_what_is_no_json_is_refused_before_it_runs(runs: Runs) -> None:
    ended = runs.run(job("tell", object()))
    assert ended.ending is Ending.NOT_STARTED
    assert "must be JSON values" in ended.error


def test_a_coroutine_is_awaited(runs: Runs) -> None:
    assert runs.run(job("later")).stdout == b"awaited\n"


def test_a_hung_function_is_stopped_at_its_deadline_and_its_process_replaced(runs: Runs, tmp_path: Path) -> None:
    before = pid_of_child(runs)
    ended = runs.run(job("wait_for_ever"), max_runtime=0.5)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 143)
    assert not is_alive(before)
    assert pid_of_child(runs) != before
    ended = runs.run(job("refuse_to_end", str(tmp_path / "pid")), max_runtime=0.5, kill_after=0.3)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 137)


def test_a_run_can_be_cancelled(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    token = runs.start(job("wait_for_ever", str(note)))
    eventually(note.exists, 60, "the function runs")
    runs.execution.stop(token, StopReason.CANCELLED)
    assert runs.end_of(token).ending is Ending.CANCELLED
    assert_works(runs)


def test_a_process_left_behind_does_not_keep_the_run_open(runs: Runs, tmp_path: Path) -> None:
    ended = runs.run(job("leave_process_behind", str(tmp_path / "pid")))
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 0)
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert_works(runs)


def test_many_runs_side_by_side_share_few_processes(runs: Runs) -> None:
    tokens = [runs.start(job("tell_pid")) for _ in range(40)]
    ended: list[EndedRun] = [runs.end_of(token) for token in tokens]
    assert [one.exit_code for one in ended] == [0] * 40
    assert len({one.stdout for one in ended}) <= 2


def test_no_process_outlives_the_worker(tmp_path: Path) -> None:
    with Runs() as runs:
        pid = pid_of_child(runs)
        assert is_alive(pid)
    assert not is_alive(pid)


def test_a_function_that_this_worker_may_not_run_is_refused() -> None:
    with Runs(allow=("billing",)) as runs:
        ended = runs.run(job("noop"))
    assert ended.ending is Ending.NOT_STARTED
    assert "may run (billing)" in ended.error
