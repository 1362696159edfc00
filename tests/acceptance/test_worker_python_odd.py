"""What a Python job sees of its run, and everything it may get wrong: each ends with one sentence, the process goes on
or is replaced, and the next run is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sexton.targets import PythonTarget
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from tests.support.runs import Runs
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

WITHIN = 60.0


@pytest.fixture(scope="module")
def shared() -> Iterator[Runs]:
    """One slot, so that one process does it all, as long as it is fit."""
    with Runs(slots=1, environment={"SEXTON_WORKER": "w1"}) as runs:
        yield runs


@pytest.fixture
def runs(shared: Runs) -> Iterator[Runs]:
    yield shared
    assert_is_well(shared.run(PythonTarget("tests.support.work_module:noop")))


def job(name: str, *args: Any) -> PythonTarget:
    return PythonTarget(f"tests.support.odd_jobs:{name}", args)


def assert_is_well(ended: EndedRun) -> None:
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 0, "")


def test_a_run_is_known_in_coroutines_tasks_and_threads(runs: Runs) -> None:
    ended = runs.run(job("ask_everywhere"))
    assert_is_well(ended)
    token = ended.token
    assert ended.stdout.decode().splitlines() == [
        f"coroutine {token}",
        f"task {token}",
        f"to_thread {token}",
        f"gather {token} {token}",
    ]
    ended = runs.run(job("ask_in_thread"))
    assert ended.stdout.decode() == f"thread {ended.token} of w1\n"


def test_a_thread_of_an_earlier_run_is_never_told_the_token_of_a_later_one(runs: Runs, tmp_path: Path) -> None:
    """Else what was left behind of it would pass every fence."""
    note = str(tmp_path / "note")
    assert_is_well(runs.run(job("leave_asker_behind", note)))
    said = runs.run(job("let_asker_ask", note)).stdout.decode()
    assert said.startswith("refused: thread 'asker' is older than the run at hand")


def test_a_coroutine_is_cancelled_when_its_run_is_stopped(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "note"
    token = runs.start(job("tidy_up_when_cancelled", str(note)), kill_after=600)
    eventually(lambda: note.exists() and note.read_text(), WITHIN, "the coroutine runs")
    runs.execution.stop(token, StopReason.CANCELLED)
    ended = runs.end_of(token)
    assert (ended.ending, note.read_text()) == (Ending.CANCELLED, "tidy, cancelled True")
    assert ended.stderr == b""


def test_a_function_that_asks_whether_it_is_cancelled_is_told_and_returns(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "note"
    token = runs.start(job("return_when_cancelled", str(note)), kill_after=600)
    eventually(note.exists, WITHIN, "it has asked")
    runs.execution.stop(token, StopReason.CANCELLED)
    assert runs.end_of(token).ending is Ending.CANCELLED
    assert note.read_text() == "returned"


def test_who_asks_after_a_run_that_asked_is_not_deaf_to_sigterm(runs: Runs, tmp_path: Path) -> None:
    runs.run(PythonTarget("tests.support.odd_jobs:ask_once"))
    assert runs.run(job("tell_sigterm")).stdout == b"True\n"


@pytest.mark.parametrize(
    ("name", "args", "ending", "says"),
    [
        ("fail_later", (), Ending.RAISED, "ValueError: later"),
        ("interrupt", (), Ending.RAISED, "KeyboardInterrupt"),
        ("crash", (), Ending.RAISED, "the job's process died in mid-run: ended by SIGSEGV"),
        (
            "generate",
            (),
            Ending.NOT_STARTED,
            "tests.support.odd_jobs:generate is a generator function, and calling it would run nothing; "
            "write a plain function or a coroutine",
        ),
        (
            "give_much",
            (20_000,),
            Ending.RAISED,
            "it returned 20,002 bytes of JSON, more than the 16,384 that are kept; store it, and return where it is",
        ),
        (
            "leave_thread_at_work",
            (),
            Ending.RAISED,
            "it returned and left a thread at work ('still at it'); join what the job starts, or make it a daemon",
        ),
    ],
)
def test_what_a_job_gets_wrong_is_said_in_one_sentence(
    runs: Runs, name: str, args: tuple[Any, ...], ending: Ending, says: str
) -> None:
    ended = runs.run(job(name, *args))
    assert (ended.ending, ended.error) == (ending, says)


def test_an_asynchronous_generator_is_no_job_either(runs: Runs) -> None:
    assert "is a generator function" in runs.run(job("produce")).error


def test_a_crash_in_c_leaves_where_it_was(runs: Runs) -> None:
    ended = runs.run(job("crash"))
    assert ended.stdout == b"before\n"
    assert b"Segmentation fault" in ended.stderr
    assert b"in crash" in ended.stderr


@pytest.mark.parametrize(
    ("value", "kept"), [(None, b""), ({"rows": 3}, b'returned {"rows": 3}\n'), (0, b"returned 0\n")]
)
def test_what_a_job_returns_stands_in_its_output(runs: Runs, value: object, kept: bytes) -> None:
    assert runs.run(job("give", value)).stdout == kept


@pytest.mark.parametrize(
    "name", ["give_no_json", "close_streams", "detach_stdout", "leave_thread_that_ends", "leave_pool"]
)
def test_what_is_odd_and_does_no_harm_fails_no_run(runs: Runs, name: str) -> None:
    assert_is_well(runs.run(job(name)))


@pytest.mark.parametrize(("deed", "code"), [("return", b"0\n"), ("exit", b"7\n"), ("raise", b"1\n")])
def test_a_fork_that_a_job_makes_ends_with_the_code_of_what_it_did(runs: Runs, deed: str, code: bytes) -> None:
    ended = runs.run(job("tell_code_of_clone", deed))
    assert_is_well(ended)
    assert ended.stdout == code


def test_a_thread_that_ends_with_its_run_is_waited_for(runs: Runs) -> None:
    assert runs.run(job("leave_thread_that_ends")).stdout == b"thread done\n"


def test_arguments_may_hold_any_character(runs: Runs) -> None:
    assert runs.run(job("measure", "\0", "\ud800", "x" * 100_000, ["\u2028\n"])).stdout == b"1 1 100000 12\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os\nimport no_such_thing\n", "line 2: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def run(:\n", "line 1: SyntaxError: invalid syntax"),
        ("x = 1\nraise SystemExit(3)\n", "line 2: SystemExit: 3"),
        ("raise ValueError('two\\nlines')\n", "line 1: ValueError: two lines"),
    ],
)
def test_a_module_that_does_not_load_says_where_and_its_traceback_comes_once(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "mended_jobs.py").write_text(text)
    target = PythonTarget("mended_jobs:run")
    with Runs(slots=1, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"}) as elsewhere:
        first, second = elsewhere.run(target), elsewhere.run(target)
        assert first.ending is second.ending is Ending.NOT_STARTED
        assert first.error == second.error == f"cannot import 'mended_jobs:run': {tmp_path}/mended_jobs.py, {says}"
        assert (b"mended_jobs.py" in first.stderr, second.stderr) == (True, b"")
        assert b"importlib" not in first.stderr
        (tmp_path / "mended_jobs.py").write_text("def run() -> None:\n    pass  # and longer than before\n")
        assert_is_well(elsewhere.run(target))
