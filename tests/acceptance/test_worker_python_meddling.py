"""docs/architecture.md, invariant 9: whatever a Python job does to its own process costs that process at worst."""

from __future__ import annotations

from pathlib import Path

import pytest

from sexton.targets import PythonTarget
from sexton_worker.core.runs import Ending
from tests.support.runs import Runs

TELL = PythonTarget("tests.support.meddling_jobs:tell")


def of(name: str, *arguments: object, **named: object) -> PythonTarget:
    return PythonTarget(f"tests.support.meddling_jobs:{name}", arguments, named)


def test_what_a_job_leaves_in_modules_is_not_sexton_s() -> None:
    with Runs(slots=1) as runs:
        spoilt = runs.run(of("spoil_modules"))
        assert (spoilt.error, spoilt.stdout) == ("", b"spoilt\n")
        after = runs.run(TELL)
        assert (after.ending, after.exit_code, after.error) == (Ending.EXITED, 0, "")
        assert after.started is not None
        assert spoilt.ended <= after.started <= after.ended


@pytest.mark.parametrize(
    ("text", "print_first"),
    [("[999999,0,0,false,null]\n", True), ("[999999,0,0,false,null]\n", False), ("hello\n", True), ('"ready"\n', True)],
)
def test_a_line_that_a_job_writes_to_sexton_s_socket_costs_no_other_run(text: str, *, print_first: bool) -> None:
    with Runs(slots=1) as runs:
        meddler = runs.run(of("write_to_socket", text, print_first=print_first))
        assert (meddler.ending, meddler.exit_code, meddler.error) == (Ending.EXITED, 0, "")
        for _ in range(2):
            after = runs.run(TELL)
            assert (after.ending, after.exit_code, after.error) == (Ending.EXITED, 0, "")


def test_an_answer_that_was_lost_in_a_job_s_own_writing_is_that_run_s_and_ends_at_once() -> None:
    with Runs(slots=1) as runs:
        meddler = runs.run(of("write_to_socket", "no end of line", print_first=True))
        assert (meddler.ending, meddler.stdout) == (Ending.RAISED, b"said\n")
        assert meddler.error.startswith("what became of it is unknown: a job of its process wrote to files of Sexton's")
        assert runs.run(TELL).error == ""


def test_an_exception_with_an_endless_name_is_told_in_short() -> None:
    with Runs(slots=1) as runs:
        ended = runs.run(of("raise_a_long_name"))
        assert (ended.ending, ended.error[:10]) == (Ending.RAISED, "N" * 10)
        assert len(ended.error) <= 2000
        assert len(ended.exceptions[0]) == 200


def test_an_alarm_that_a_run_forgot_ends_no_other() -> None:
    with Runs(slots=1) as runs:
        assert runs.run(of("forget_alarm", 3600)).error == ""
        assert runs.run(of("tell_alarm")).stdout == b"0\n"


def test_a_worker_whose_folder_was_deleted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = tmp_path / "release"
    release.mkdir()
    monkeypatch.chdir(release)
    with Runs(slots=1) as runs:
        assert runs.run(TELL).stdout == f"told {release}\n".encode()
        release.rmdir()
        for cwd in (None, None, "/tmp", None):  # noqa: S108 - only a place that is there
            ended = runs.run(PythonTarget("tests.support.meddling_jobs:where"), cwd=cwd)
            assert (ended.ending, ended.error) == (Ending.EXITED, ""), cwd
