"""Warm Python processes are replaced after so many runs or with so much memory; no run notices."""

from __future__ import annotations

import errno
import os
import signal
from collections import deque
from pathlib import Path

import pytest

from sexton.targets import PythonTarget
from sexton_worker.core.runs import EndedRun
from sexton_worker.core.wear import WearLimits
from sexton_worker.targets import python_process
from sexton_worker.targets.python_recycling import resident_bytes
from tests.support.freezing import freeze
from tests.support.runs import Runs, is_alive
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

WITHIN = 60.0
TELL_PID = PythonTarget("tests.support.work_module:tell_pid")
GROW = PythonTarget("tests.support.odd_jobs:grow", (200,))


def pid(ended: EndedRun) -> int:
    assert (ended.exit_code, ended.error) == (0, "")
    return int(ended.stdout)


def another_comes(runs: Runs, before: int) -> int:
    """Run until another process does; the process before is gone then, or will be."""
    found = eventually(lambda: next((now for now in [pid(runs.run(TELL_PID))] if now != before), 0), WITHIN, "another")
    eventually(lambda: not is_alive(before), WITHIN, "the worn one has left")
    return found


def test_a_process_that_made_its_runs_is_replaced_and_works_until_the_other_is_there() -> None:
    with Runs(slots=1, wear=WearLimits(runs=3)) as runs:
        first = pid(runs.run(TELL_PID))
        assert [pid(runs.run(TELL_PID)) for _ in range(2)] == [first] * 2
        second = another_comes(runs, first)
        assert another_comes(runs, second) not in (first, second)
        assert len(list(runs.execution._python._children)) <= 2


def test_a_process_that_keeps_too_much_memory_is_replaced() -> None:
    with Runs(slots=1, wear=WearLimits(memory=150 << 20)) as runs:
        first = pid(runs.run(TELL_PID))
        assert 0 < resident_bytes(first) < 150 << 20
        assert pid(runs.run(GROW)) == first
        another_comes(runs, first)


def test_a_crowd_of_runs_over_processes_that_wear_out_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The backlog is never empty, so that no process comes to rest by itself."""
    log = tmp_path / "log"
    log.touch()
    given: list[str] = []
    tokens: deque[int] = deque()
    with Runs(slots=1, wear=WearLimits(runs=20)) as runs:

        def feed() -> bool:
            names = [f"{len(given) + number}" for number in range(100)]
            given.extend(names)
            orders = [PythonTarget("tests.support.work_module:act", (str(log), name)) for name in names]
            tokens.extend(runs.start_together(*orders))
            while len(tokens) > 100:
                assert runs.end_of(tokens.popleft()).exit_code == 0
            processes = {int(process) for _, process in noted(log)}
            return sum(not is_alive(process) for process in processes) >= 2

        eventually(feed, WITHIN, "two were replaced")
        for token in tokens:
            assert runs.end_of(token).exit_code == 0
        eventually(lambda: len(list(runs.execution._python._children)) <= 2, WITHIN, "few are left")
        assert runs.execution._slots.free == 1
    assert sorted(name for name, _ in noted(log)) == sorted(given)


def test_a_spare_that_is_ready_begins_nothing_without_a_slot(tmp_path: Path) -> None:
    """The worn process is in a long run, and holds the only one."""
    with Runs(slots=1, wear=WearLimits(runs=1)) as runs:
        wait = PythonTarget("tests.support.odd_jobs:wait_for", (str(tmp_path / "gate"),))
        quick, long, behind = runs.start_together(TELL_PID, wait, TELL_PID)  # so that they follow at once
        first = pid(runs.end_of(quick))
        children = runs.execution._python._children

        def spare_is_ready() -> bool:
            runs.execution.finished()
            return any(child.is_ready and child.group.pid != first for child in children)

        eventually(spare_is_ready, WITHIN, "the spare is ready")
        with runs.execution._lock:
            assert [child.hand for child in children if child.group.pid != first] == [deque()]
            assert runs.execution._slots.free == 0
        (tmp_path / "gate").touch()
        assert runs.end_of(long).exit_code == 0
        assert pid(runs.end_of(behind)) != first
        assert runs.execution._slots.free == 1


def noted(log: Path) -> list[list[str]]:
    """Name and process of every run that began."""
    return [line.split() for line in log.read_text().splitlines()]


@pytest.mark.parametrize("how", ["does not start", "dies while it comes up"])
def test_where_none_can_come_in_its_place_a_worn_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Every process after the first is killed before it is ready, or not even that."""
    deed = "os.kill(os.getpid(), 9)"
    text = f"import os\ntry:\n    open('{tmp_path}/first', 'x')\nexcept FileExistsError:\n    {deed}\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    with Runs(slots=1, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, wear=WearLimits(runs=2)) as runs:
        first = pid(runs.run(TELL_PID))
        if how == "does not start":
            monkeypatch.setattr(python_process, "launch", refuse)
        for _ in range(5):
            assert pid(runs.run(TELL_PID)) == first
        children = runs.execution._python._children
        eventually(lambda: not children._recycling.is_wanted and len(list(children)) == 1, WITHIN, "it was tried")
        assert pid(runs.run(TELL_PID)) == first
        assert runs.execution._slots.free == 1


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EAGAIN, "no more processes")


def test_a_worn_process_that_dies_before_its_spare_is_there_leaves_the_spare_in_service() -> None:
    with Runs(slots=1, wear=WearLimits(runs=1)) as runs:
        first = pid(runs.run(TELL_PID))
        freeze(first)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: not is_alive(first), WITHIN, "it is gone")
        assert pid(runs.run(TELL_PID)) != first
