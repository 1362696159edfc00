"""Jobs that behave as badly as they can, as commands and as Python runs: one table for both.

The worker stays alive and on time, the run ends as it should, and nothing of it is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.job_rules import NO_LIMITS, Limits
from sexton.targets import CommandTarget, PythonTarget, Target
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from tests.support import reaper
from tests.support.blows import children_of
from tests.support.runs import Runs, is_alive, open_in, zygote_of
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LONG = 60.0
MODULE = "tests.support.hostile_jobs"
OF_A_CHILD = 8  # descriptors that a worker has open for each Python process
OF_A_WATCHED = 2  # that its zygote has
HANGS = 0.3  # seconds from SIGTERM to SIGKILL


@dataclass(frozen=True)
class Case:
    """A job, and how its run ends. ``ups``: the processes that note that they are there, and hang until the run is
    stopped. ``error``, ``code``: of a Python run, where they differ from a command's."""

    job: str
    code: int = 0
    ending: Ending = Ending.EXITED
    limits: Limits = NO_LIMITS
    ups: int = 0
    megabytes: int = 0
    python: tuple[Ending, int | None] | None = None
    says: str = ""


CASES = [
    Case("eat_memory", 1, limits=Limits(memory=512 << 20), python=(Ending.RAISED, 1), says="limit memory 512MiB"),
    Case(
        "eat_processor_time",
        128 + signal.SIGXCPU,
        limits=Limits(cpu_time=timedelta(milliseconds=500)),
        python=(Ending.RAISED, 128 + signal.SIGXCPU),
        says="more processor time than its limit cpu_time 500ms",
    ),
    Case("open_files", 1, limits=Limits(open_files=64), python=(Ending.RAISED, 1), says="Too many open files"),
    Case("fork_a_tree", 128 + signal.SIGKILL, Ending.CANCELLED, ups=13, says="SIGKILL"),
    Case("leave_the_group", 128 + signal.SIGTERM, Ending.CANCELLED, ups=2, says="SIGTERM"),
    Case("ignore_sigterm", 128 + signal.SIGKILL, Ending.CANCELLED, ups=1, says="SIGKILL, for it did not end on"),
    Case("never_return", 128 + signal.SIGTERM, Ending.CANCELLED, ups=1, says="SIGTERM"),
    Case("stop_itself", 128 + signal.SIGTERM, Ending.CANCELLED, ups=1, says="SIGTERM"),
    Case("print_megabytes", megabytes=100),
    Case("write_binary"),
    Case("close_outputs"),
    Case("raise_system_exit", 3, says="3"),
    Case("crash_in_c", 128 + signal.SIGSEGV, python=(Ending.RAISED, 128 + signal.SIGSEGV), says="ended by SIGSEGV"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def elders() -> set[int]:
    """What other tests left running below this process: no job's."""
    return set(reaper.descendants(os.getpid()))


@pytest.fixture(scope="module")
def runs(folder: Path, elders: set[int]) -> Iterator[Runs]:
    """One worker's processes for all cases: what one of them spoils, the next would meet."""
    before = open_in(os.getpid())
    with Runs(slots=3, environment={"TMPDIR": str(folder)}) as runs:
        runs.run(CommandTarget(("true",)))
        runs.run(PythonTarget("tests.support.work_module:noop"))
        yield runs
        zygote = zygote_of(os.getpid())
    assert not is_alive(zygote)
    assert open_in(os.getpid()) == before


def target_of(kind: str, job: str, *arguments: str) -> Target:
    if kind == "python":
        return PythonTarget(f"{MODULE}:{job}", arguments)
    return CommandTarget((sys.executable, "-m", MODULE, job, *arguments))


@pytest.mark.parametrize("kind", ["command", "python"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.job)
def test_a_hostile_job(
    runs: Runs, case: Case, kind: str, folder: Path, elders: set[int], soak: float, tmp_path: Path
) -> None:
    zygote = zygote_of(os.getpid())
    before = descriptors(zygote)
    megabytes = 1000 if soak and case.megabytes else case.megabytes
    note = tmp_path / "pids"
    arguments = [str(note)] if case.ups else [str(megabytes)] if megabytes else []
    token = runs.start(
        target_of(kind, case.job, *arguments),
        limits=case.limits,
        kill_after=HANGS,
        cwd=str(ROOT),
        env={"PYTHONPATH": str(ROOT)},
    )
    if case.ups:
        eventually(lambda: len(noted(note)) == case.ups, LONG, "all of it is up")
    assert runs.run(CommandTarget(("true",))).exit_code == 0  # beside it
    assert runs.run(PythonTarget("tests.support.work_module:noop")).exit_code == 0
    if case.ups:
        assert token not in runs.ended
        runs.execution.stop(token, StopReason.CANCELLED)
    ended = runs.end_of(token)
    check(ended, case, kind, megabytes)
    assert not [pid for pid in noted(note) if is_alive(pid)]
    assert runs.run(target_of(kind, "raise_system_exit"), env={"PYTHONPATH": str(ROOT)}, cwd=str(ROOT)).exit_code == 3
    eventually(lambda: strangers(zygote, elders) == [], LONG, "only the zygote and warm processes are left")
    eventually(lambda: descriptors(zygote) == before, LONG, "no descriptor is left")
    assert zygote_of(os.getpid()) == zygote
    assert list(folder.iterdir()) == []


# --- limits of Python runs --------------------------------------------------------------------------------------------


def test_a_python_run_with_limits_has_a_process_of_its_own(runs: Runs) -> None:
    """One run after another, each with its whole processor time; those without limits share theirs as before."""
    tell, limits = (
        PythonTarget("tests.support.work_module:tell_pid"),
        Limits(cpu_time=timedelta(seconds=5), open_files=99),
    )
    own = [runs.run(tell, limits=limits).stdout for _ in range(2)]
    shared = [runs.run(tell).stdout for _ in range(2)]
    assert len({*own, *shared}) == 3
    assert shared[0] == shared[1]
    tokens = runs.start_together(*[tell] * 4, limits=limits)
    assert len({runs.end_of(token).stdout for token in tokens}) == 4


def test_a_python_run_with_limits_that_is_stopped_while_its_process_comes_up_never_begins(runs: Runs) -> None:
    token = runs.start(PythonTarget("tests.support.work_module:noop"), limits=Limits(open_files=99))
    runs.execution.stop(token, StopReason.CANCELLED)
    ended = runs.end_of(token)
    assert (ended.ending, ended.started) == (Ending.CANCELLED, None)
    assert runs.run(PythonTarget("tests.support.work_module:noop"), limits=Limits(open_files=99)).exit_code == 0


def test_limits_within_which_no_python_process_can_work_are_told_as_the_jobs_fault(runs: Runs) -> None:
    ended = runs.run(PythonTarget("tests.support.work_module:noop"), limits=Limits(memory=1 << 20))
    assert ended.ending in (Ending.NOT_STARTED, Ending.RAISED)
    assert "limit" in ended.error


# --- how that is seen -------------------------------------------------------------------------------------------------


def check(ended: EndedRun, case: Case, kind: str, megabytes: int) -> None:
    ending, code = case.python if case.python and kind == "python" else (case.ending, case.code)
    assert (ended.ending, ended.exit_code) == (ending, code), ended
    if kind == "python" or case.ups:
        assert case.says in ended.error
    assert "live on" not in ended.error
    if megabytes:
        assert ended.stdout_bytes == megabytes << 20
        assert len(ended.stdout) <= KEPT_BYTES
    if case.job == "write_binary":
        assert ended.stdout == bytes(range(256))


def noted(note: Path) -> list[int]:
    return [int(pid) for pid in note.read_text().split()] if note.exists() else []


def descriptors(zygote: int) -> tuple[int, int]:
    """Of the zygote and of this process, which is the worker here, without those for its Python processes."""
    children = len(children_of(os.getpid(), "python_child"))
    return len(open_in(zygote)) - OF_A_WATCHED * children, len(open_in(os.getpid())) - OF_A_CHILD * children


def strangers(zygote: int, elders: set[int]) -> list[bytes]:
    """What runs below this process and is neither its zygote nor a Python process at rest."""
    expected = {*elders, zygote, *children_of(os.getpid(), "python_child"), *reapers()}
    found = []
    for pid in set(reaper.descendants(os.getpid())) - expected:
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def reapers() -> list[int]:
    return children_of(os.getpid(), "support/reaper.py")
