"""A python job's function and its arguments, held against each other by reading the module, never by running it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sexton.jobfiles.python_calls import wrong_call
from sexton.targets import PythonTarget

MODULE = """
raise SystemExit("it was run")

import functools
from elsewhere import imported

def none(): ...
def two(a, b=1): ...
def only_positional(a, /, *, key): ...
def anything(*args, **kwargs): ...
async def later(a): ...
def numbers():
    yield 1
def uses_a_generator():
    def inner():
        yield 1
    return [x for x in inner()]
@functools.cache
def decorated(a): ...
if True:
    def twice(a): ...
else:
    def twice(a, b): ...
assigned = two
class Made:
    def __init__(self, a): ...
"""


@pytest.fixture
def path(tmp_path: Path) -> list[str]:
    package = tmp_path / "billing"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('it was run')\n")
    (package / "jobs.py").write_text(MODULE)
    (package / "broken.py").write_text("def f(:\n")
    (package / "open.py").write_text("from billing.jobs import *\n")
    return [str(tmp_path), *sys.path]


def told(path: list[str], reference: str, *args: Any, **kwargs: Any) -> str | None:
    return wrong_call(PythonTarget(reference, args, kwargs), path)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("none", (), {}),
        ("two", (1,), {"b": 2}),
        ("only_positional", (1,), {"key": 2}),
        ("anything", (1, 2), {"c": 3}),
        ("later", (1,), {}),
        ("uses_a_generator", (), {}),
        # What reading cannot tell:
        ("decorated", (), {}),
        ("twice", (), {}),
        ("assigned", (), {}),
        ("imported", (), {}),
        ("Made", (), {}),
        ("Made.method", (), {}),
    ],
)
def test_what_fits_or_cannot_be_told_is_not_warned_of(
    path: list[str], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    assert told(path, f"billing.jobs:{name}", *args, **kwargs) is None


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "says"),
    [
        ("none", (1,), {}, "none (FILE, line 7) does not take its arguments: too many positional arguments"),
        ("two", (), {}, "two (FILE, line 8) does not take its arguments: missing a required argument: 'a'"),
        ("two", (1,), {"c": 3}, "got an unexpected keyword argument 'c'"),
        ("only_positional", (1,), {}, "'key'"),
        ("numbers", (), {}, "numbers (FILE, line 12) is a generator function, and calling it would run nothing"),
        ("absent", (), {}, "FILE has no function 'absent'"),
    ],
)
def test_what_will_fail_is_told(
    path: list[str], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    wrong = told(path, f"billing.jobs:{name}", *args, **kwargs)
    assert wrong is not None
    assert says.replace("FILE", f"{path[0]}/billing/jobs.py") in wrong


def test_a_module_that_cannot_be_parsed_is_told(path: list[str]) -> None:
    assert told(path, "billing.broken:f") == f"{path[0]}/billing/broken.py, line 1: invalid syntax"


@pytest.mark.parametrize("reference", ["no_such:f", "billing.no_such:f", "billing.jobs.deeper:f", "billing.open:f"])
def test_a_module_of_other_machines_or_of_open_names_is_not_warned_of(path: list[str], reference: str) -> None:
    assert told(path, reference) is None


@pytest.mark.parametrize("reference", ["sys:exit", "math:sqrt", "zipimport:zipimporter"])
def test_a_module_without_source_is_not_warned_of(path: list[str], reference: str) -> None:
    assert told(path, reference) is None
