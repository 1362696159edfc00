"""A Python run that comes to a limit says so, however the interpreter said it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sexton.job_rules import NO_LIMITS, Limits
from sexton.targets import PythonTarget
from sexton_worker.core.runs import EndedRun, Ending
from sexton_worker.execution import RunOrder
from sexton_worker.targets.python_limits import why_limited
from tests.support.runs import DEADLINE, a_grant, rules_for

MEMORY = Limits(memory=10 << 20)
SPARSE = ", perhaps because of its limit memory 10MiB; an interpreter alone takes 30 MB"


def said(limits: Limits, ending: Ending, error: str, exceptions: tuple[str, ...], code: int | None = None) -> str:
    order = RunOrder(a_grant(1), "nightly", rules_for(PythonTarget("a:b"), limits=limits), DEADLINE)
    ended = EndedRun(1, ending, 1.0, 2.0, code, error, exceptions)
    return why_limited(order, ended).error.removeprefix(error)


@pytest.mark.parametrize(
    ("limits", "ending", "error", "exceptions", "more"),
    [
        (MEMORY, Ending.NOT_STARTED, "cannot import: OSError: [Errno 12] Cannot allocate memory", ("OSError",), SPARSE),
        (MEMORY, Ending.NOT_STARTED, "cannot import: MemoryError", ("MemoryError",), SPARSE),
        (MEMORY, Ending.NOT_STARTED, "ImportError: x.so: failed to map segment", ("ImportError",), SPARSE),
        (MEMORY, Ending.RAISED, "RuntimeError: can't start new thread", ("RuntimeError",), SPARSE),
        (MEMORY, Ending.RAISED, "died in mid-run: exited with code 1", (), SPARSE),
        (Limits(memory=1 << 30), Ending.RAISED, "", ("MemoryError",), ", perhaps because of its limit memory 1GiB"),
        (MEMORY, Ending.NOT_STARTED, "cannot import: no module", ("ModuleNotFoundError",), ""),
        (MEMORY, Ending.EXITED, "SystemExit: 1", (), ""),
        (NO_LIMITS, Ending.RAISED, "MemoryError", ("MemoryError",), ""),
        (
            Limits(open_files=9),
            Ending.RAISED,
            "OSError: [Errno 24] Too many open files: 'x'",
            ("OSError",),
            ", perhaps because of its limit open_files 9",
        ),
        (
            Limits(cpu_time=timedelta(seconds=1)),
            Ending.RAISED,
            "SIGXCPU",
            (),
            ", for it used more processor time than its limit cpu_time 1s",
        ),
    ],
)
def test_a_limit_is_named(limits: Limits, ending: Ending, error: str, exceptions: tuple[str, ...], more: str) -> None:
    assert said(limits, ending, error, exceptions, 128 + 24 if error == "SIGXCPU" else 1) == more
