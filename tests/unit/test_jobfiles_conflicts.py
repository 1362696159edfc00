"""A file with an unresolved merge has that one fault, in whatever format."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.merge_conflicts import tell_conflicts
from sexton.jobfiles.problems import FileProblems

YAML = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n"
TOML = "version = 1\n[jobs.a]\nschedule = '0 5 * * *'\nshell = '''\n<<<<<<< HEAD\n=======\n>>>>>>> x'''\n"


def told(text: str, file: str = "jobs.yaml") -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text, file)
    return [f"{one.line}:{one.column}: {one.message}" for one in refused.value.problems]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_in_yaml_within_a_job_and_around_the_whole(end: str) -> None:
    (inside,) = told(f"{YAML}<<<<<<< HEAD\n    queue: a\n=======\n    queue: b\n>>>>>>> branch\n".replace("\n", end))
    assert inside.startswith("6:1: a merge conflict begins here ('<<<<<<< HEAD') and ends in line 10; keep one of")
    (whole,) = told(f"<<<<<<< HEAD\n{YAML}=======\n{YAML}>>>>>>> branch\n".replace("\n", end))
    assert whole.startswith("1:1: a merge conflict begins here")


def test_each_of_several_in_toml() -> None:
    keys = "schedule = '0 5 * * *'\nshell = 'x'\n"
    one = f"<<<<<<< HEAD\n[jobs.a]\n{keys}||||||| base\n=======\n[jobs.b]\n{keys}>>>>>>> x\n"
    assert [fault.partition(": ")[0] for fault in told(f"version = 1\n{one}{one}", "jobs.toml")] == ["2:1", "12:1"]


def test_in_python_whose_own_fault_is_not_told() -> None:
    problems = FileProblems("jobs.py")
    problems.add_first_at(1, 1, "this is not Python")
    assert tell_conflicts("<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> x\n", problems)
    assert [(one.line, one.message[:16]) for one in problems.told()] == [(1, "a merge conflict")]


def test_marks_within_a_text_of_a_good_file_are_a_text() -> None:
    (job,) = load_job_text(TOML, "jobs.toml").jobs
    assert "<<<<<<<" in str(job.definition.target)


def test_a_mark_that_is_left_is_the_one_fault() -> None:
    (fault,) = told(f"<<<<<<< HEAD\n{YAML}")
    assert fault.startswith("1:1: '<<<<<<< HEAD' is left of a merge conflict; remove the line")
    (fault,) = told(f"{YAML}>>>>>>> branch\n")
    assert fault.startswith("6:1: '>>>>>>> branch' is left of")
