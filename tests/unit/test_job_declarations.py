"""``from sexton import job, Job``: plain values, and a function that is called as ever."""

from __future__ import annotations

import inspect

import pytest

from sexton import Job, job
from sexton.job_declarations import DECLARATION, FunctionKeys, JobKeys, SharedKeys
from sexton.jobfiles.keys import JOB_KEYS

TARGETS = {"command", "shell", "python", "http", "celery"}


def test_a_decorated_function_is_itself() -> None:
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    decorated = job(schedule="0 2 * * *")(double)
    assert decorated is double
    assert decorated(4) == 8
    assert inspect.signature(decorated).parameters.keys() == {"number"}


def test_a_decorated_function_carries_its_job_and_nothing_is_registered() -> None:
    @job(schedule="0 2 * * *", queue="slow")
    def nightly() -> None: ...

    declared = getattr(nightly, DECLARATION)
    assert isinstance(declared, Job)
    assert (declared.name, declared.function) == ("nightly", nightly)
    assert declared.keys == {"schedule": "0 2 * * *", "queue": "slow"}


def test_a_name_of_its_own_wins() -> None:
    @job(name="night-shift", schedule="@daily")
    def nightly() -> None: ...

    assert getattr(nightly, DECLARATION).name == "night-shift"


def test_the_brackets_are_asked_for() -> None:
    with pytest.raises(TypeError, match="in brackets; write @job"):
        job(lambda: None)  # type: ignore[arg-type]  # what a checker refuses too


def test_editors_know_every_key_and_only_these() -> None:
    assert JobKeys.__annotations__.keys() == {key.name for key in JOB_KEYS}
    assert FunctionKeys.__annotations__.keys() == JobKeys.__annotations__.keys() - TARGETS
    assert SharedKeys.__annotations__.keys() == {key.name for key in JOB_KEYS if not key.own}
