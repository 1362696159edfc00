"""Python runs that lie in one process's hands together: each is accounted for once, and minds its own business."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sexton.targets import CommandTarget, PythonTarget, Target
from sexton_worker.core.chunks import LARGEST_HAND, Durations
from sexton_worker.core.runs import Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets import python_process
from sexton_worker.targets.python_process import PythonChild
from tests.support.runs import DEADLINE, Runs, a_grant, rules_for
from tests.support.waiting import eventually, stays

Act = Callable[..., PythonTarget]


@pytest.fixture(autouse=True)
def all_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they go together however slow this machine is, and no process is replaced for being frozen."""
    monkeypatch.setattr(Durations, "most_together", lambda self, function: LARGEST_HAND)
    monkeypatch.setattr(python_process, "DEAF_SECONDS", 3600.0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def act(log: Path) -> Act:
    return lambda name, deed="": PythonTarget("tests.support.work_module:act", (str(log), name, deed))


def begun(log: Path) -> list[str]:
    """The names of what began, in that order."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def processes(log: Path) -> set[str]:
    return {line.split()[1] for line in log.read_text().splitlines()}


@pytest.fixture
def one() -> Iterator[Runs]:
    """One slot, one warm process."""
    with Runs(slots=1) as runs:
        runs.run(PythonTarget("tests.support.work_module:noop"))
        yield runs


def test_runs_that_go_together_end_one_by_one_in_their_order(one: Runs, act: Act, log: Path) -> None:
    names = [str(number) for number in range(200)]
    tokens = one.start_together(*(act(name) for name in names))
    ended = [one.end_of(token) for token in tokens]
    assert {(run.ending, run.exit_code, run.stdout, run.error) for run in ended} == {(Ending.EXITED, 0, b"", "")}
    assert begun(log) == names
    assert len(processes(log)) == 1
    times = [time for run in ended for time in (run.started, run.ended)]
    assert times == sorted(times, key=lambda time: time or 0.0)


def test_output_never_lands_in_a_neighbours_run(one: Runs, act: Act) -> None:
    deeds = ["", "print", "write", "raise", "", "", "print", "close", "print", "", "die", "write"] * 4
    tokens = one.start_together(*(act(f"run-{place}", deed) for place, deed in enumerate(deeds)))
    for place, (token, deed) in enumerate(zip(tokens, deeds, strict=True)):
        ended, own = one.end_of(token), f"run-{place}\n".encode()
        assert ended.stdout == (own if deed == "print" else b"")
        if deed == "raise":
            assert (ended.ending, ended.error) == (Ending.RAISED, f"ValueError: run-{place}")
            assert ended.stderr.startswith(b"Traceback")
            assert ended.stderr.endswith(f"ValueError: run-{place}\n".encode())
        else:
            assert ended.stderr == (own if deed == "write" else b"")
            assert (ended.ending, ended.exit_code) == ((Ending.RAISED, 137) if deed == "die" else (Ending.EXITED, 0))


def test_a_process_that_dies_in_the_middle_loses_the_run_it_was_in_and_no_other(one: Runs, act: Act, log: Path) -> None:
    names = [str(number) for number in range(30)]
    deadly = {"7", "8", "29"}
    tokens = one.start_together(*(act(name, "die" if name in deadly else "") for name in names))
    for name, token in zip(names, tokens, strict=True):
        ended = one.end_of(token)
        if name in deadly:
            assert (ended.ending, ended.exit_code) == (Ending.RAISED, 137)
            assert ended.error == "the job's process died in mid-run: ended by SIGKILL"
            assert ended.started is not None
        else:
            assert (ended.ending, ended.exit_code) == (Ending.EXITED, 0)
    assert begun(log) == names  # each once


def test_what_lies_behind_a_run_that_hangs_runs_elsewhere(act: Act, log: Path) -> None:
    with Runs(slots=2) as runs:
        hung, *others = runs.start_together(act("hung", "hang"), *(act(str(number)) for number in range(20)))
        for token in others:
            assert runs.end_of(token).exit_code == 0
        assert sorted(begun(log)) == sorted(["hung", *map(str, range(20))])
        _, of_hung = log.read_text().splitlines()[0].split()
        assert log.read_text().count(of_hung) == 1
        runs.execution.stop(hung, StopReason.CANCELLED)
        assert runs.end_of(hung).ending is Ending.CANCELLED


def test_what_lies_behind_a_run_that_hangs_can_be_recalled_and_never_begins(one: Runs, act: Act, log: Path) -> None:
    hung, *others = one.start_together(act("hung", "hang"), *(act(str(number)) for number in range(20)))
    recalled: set[int] = set()

    def all_are_back() -> bool:
        recalled.update(one.execution.recall())
        return recalled == set(others)

    eventually(all_are_back, 60, "the others are recalled")
    one.execution.stop(hung, StopReason.CANCELLED)
    assert one.end_of(hung).ending is Ending.CANCELLED
    assert one.run(act("after")).exit_code == 0
    assert begun(log) == ["hung", "after"]


def test_a_stop_hits_the_run_that_it_names(one: Runs, act: Act, log: Path) -> None:
    tokens = one.start_together(act("hung", "hang"), *(act(name) for name in "abc"))
    hung, a, b, c = tokens
    eventually(lambda: begun(log) == ["hung"], 60, "the first runs")
    one.execution.stop(b, StopReason.CANCELLED)
    ended = one.end_of(b)
    assert (ended.ending, ended.started, ended.error) == (Ending.CANCELLED, None, "cancelled before it started")
    stays(lambda: not one.execution.finished(), 0.3, "the others are left alone")
    one.execution.stop(hung, StopReason.LEASE_LOST)
    assert one.end_of(hung).ending is Ending.LEASE_LOST
    assert [one.end_of(token).ending for token in (a, c)] == [Ending.EXITED, Ending.EXITED]
    assert begun(log) == ["hung", "a", "c"]


@pytest.mark.parametrize("how", ["stopped", "timed out"])
def test_ending_a_run_that_has_just_ended_hits_no_neighbour(one: Runs, act: Act, log: Path, how: str) -> None:
    """While the lock is held, the worker cannot hear that the first has ended."""
    python = one.execution._python
    with one.execution._lock:
        for token, target in enumerate((act("first"), act("second", "wait")), 101):
            python.add(RunOrder(a_grant(token), "nightly", rules_for(target), DEADLINE), target, token)
        one.execution._begin_waiting()
        eventually(lambda: begun(log) == ["first", "second"], 60, "the second runs")
        if how == "stopped":
            python.stop(101, StopReason.CANCELLED)
        else:
            python._time_out(next(iter(python._children)), one.clock.elapsed())
    assert [one.end_of(token).ending for token in (101, 102)] == [Ending.EXITED] * 2


def test_each_run_has_its_own_time(one: Runs, act: Act) -> None:
    """Seven runs of 0.2 s; together they take longer than each may."""
    tokens = one.start_together(*(act(str(number), "wait") for number in range(7)), max_runtime=1)
    assert [one.end_of(token).ending for token in tokens] == [Ending.EXITED] * 7
    hung, after = one.start_together(act("hung", "hang"), act("after"), max_runtime=1)
    assert one.end_of(hung).ending is Ending.TIMED_OUT
    assert one.end_of(after).ending is Ending.EXITED


def test_a_process_begins_nothing_that_it_was_given_long_ago(
    one: Runs, act: Act, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was frozen with all that it had: whose leases those are now, the worker must say."""
    answers = []
    take_back = PythonChild.take_back

    def watched(child: PythonChild, most: int, **keys: Any) -> Any:
        tasks = take_back(child, most, **keys)
        if keys:
            answers.append(len(tasks))
        return tasks

    monkeypatch.setattr(PythonChild, "take_back", watched)
    pid = int(one.run(PythonTarget("tests.support.work_module:tell_pid")).stdout)
    os.kill(pid, signal.SIGSTOP)
    token = one.start(act("late"))
    began_at = one.clock.elapsed()
    eventually(lambda: one.clock.elapsed() - began_at > 1.5, 60, "it is late")
    assert begun(log) == []
    os.kill(pid, signal.SIGCONT)
    assert one.end_of(token).exit_code == 0
    assert answers == [1]
    assert begun(log) == ["late"]


def test_a_large_order_does_not_hold_up_others(one: Runs, act: Act) -> None:
    large = PythonTarget("tests.support.work_module:count", ("x" * 3_000_000,))
    tokens = one.start_together(act("before"), large, act("after"))
    assert [one.end_of(token).exit_code for token in tokens] == [0, 0, 0]
    assert one.end_of(tokens[1]).stdout == b"3000000\n"


@pytest.mark.parametrize(
    "target", [PythonTarget("tests.support.work_module:kill_self"), CommandTarget(("no-such-command",))]
)
def test_what_may_no_longer_begin_does_not(one: Runs, target: Target) -> None:
    """Its lease ran out while it waited."""
    order = RunOrder(a_grant(77), "nightly", rules_for(target), DEADLINE, begin_by=one.clock.elapsed())
    one.execution.start(order)
    ended = one.end_of(77)
    assert (ended.ending, ended.started) == (Ending.LEASE_LOST, None)


def test_a_word_that_is_heard_late_does_not_make_the_worker_deaf_for_the_next_run(one: Runs) -> None:
    """The end of a run, with all it wrote, may be seen by another thread than its output."""
    child = next(iter(one.execution._python._children))
    with one.execution._lock:
        for descriptor in child.outputs.descriptors():
            one.execution._python._hands.hear_output(child, descriptor)
    assert child.muted
    ended = one.run(PythonTarget("tests.support.work_module:write_binary", (5_000_192,)))
    assert ended.stdout_bytes == 5_000_192
