"""What a Python run does to its process, or leaves in it, costs no other run its start, its time or its outcome."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sexton.jobs import PythonTarget
from sexton_worker.core.runs import Ending, StopReason
from tests.support.runs import Runs, is_alive
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
