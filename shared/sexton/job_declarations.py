"""``job`` and ``Job``: how a Python file says what its jobs are. Plain values; nothing is registered by importing.

    from sexton import Job, job

    @job(schedule="0 2 * * *", timezone="Europe/Berlin")
    def nightly(): ...

    jobs = [nightly, Job("weekly-report", schedule="@weekly", command=["report", "--all"])]

What a file's list ``jobs`` holds are its jobs. Keys and values are those of every job file, in Python's types; they are
checked when Sexton reads the file, all at once, and not when the file is imported: a worker that imports it to call the
function needs none of that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from types import CodeType
from typing import Any, Literal, Never, TypedDict, TypeVar, Unpack

DECLARATION = "__sexton_job__"
"""The attribute by which a decorated function carries its ``Job``."""

_FRAMES_KEPT = 8
_Function = TypeVar("_Function", bound=Callable[..., Any])

Duration = str | timedelta
Instant = str | datetime
Schedule = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
Json = str | int | float | bool | None | Sequence[Any] | Mapping[str, Any]


class SharedKeys(TypedDict, total=False):
    """The keys that ``defaults`` may hold too."""

    timezone: str
    start: Instant | None
    end: Instant | None
    exclude: Mapping[str, Sequence[str | date]]
    jitter: Duration
    dst: Mapping[str, str]
    enabled: bool
    env: Mapping[str, str]
    cwd: str | None
    stdin: str | None
    success_codes: Sequence[int]
    limits: Mapping[str, Any]
    queue: str
    priority: int
    overlap: Literal["skip", "queue", "replace", "allow"]
    queue_limit: int
    concurrency_key: Mapping[str, Any] | None
    max_runtime: Duration
    kill_after: Duration
    retries: Mapping[str, Any]
    on_worker_lost: Literal["retry", "fail"]
    on_lease_lost: Literal["continue", "kill"]
    missed: Mapping[str, Any]
    description: str
    owner: str
    tags: Sequence[str]
    alert: Mapping[str, Any]


class FunctionKeys(SharedKeys, total=False):
    """The keys of a decorated function, which is its own target."""

    schedule: Schedule
    hash_seed: str
    args: Sequence[Json]
    kwargs: Mapping[str, Json]
    renamed_from: str | None


class JobKeys(FunctionKeys, total=False):
    """The keys of a ``Job``, which names its target."""

    command: Sequence[str]
    shell: str
    python: str
    http: Mapping[str, Any]
    celery: Mapping[str, Any]


class Job:
    """A job by its name and its keys, the target among them. Goes into the file's list ``jobs``."""

    __slots__ = ("function", "keys", "made_at", "name")

    def __init__(self, name: str, **keys: Unpack[JobKeys]) -> None:
        self.name: object = name
        self.keys: dict[str, object] = {**keys}
        self.function: Callable[..., Any] | None = None
        """The decorated function whose job this is."""
        self.made_at: tuple[tuple[CodeType, int], ...] = _callers()

    def __repr__(self) -> str:
        return f"Job({self.name!r})"


def job(*misplaced: Never, name: str | None = None, **keys: Unpack[FunctionKeys]) -> Callable[[_Function], _Function]:
    """Make the decorated function the target of a job, called ``name`` or else as the function is called.

    The function itself is returned, to be called as ever; it becomes a job by standing in the file's list ``jobs``.
    """
    if misplaced:
        raise TypeError('job takes its keys by name and in brackets; write @job(schedule="0 2 * * *")')
    made_at = _callers()

    def declare(function: _Function) -> _Function:
        declared = Job(getattr(function, "__name__", "") if name is None else name, **keys)
        declared.function = function
        declared.made_at = made_at
        setattr(function, DECLARATION, declared)
        return function

    return declare


def _callers() -> tuple[tuple[CodeType, int], ...]:
    """Who called the caller of this, innermost first, as code and instruction; what places these are is seen later."""
    callers: list[tuple[CodeType, int]] = []
    frame = sys._getframe(2)
    while frame is not None and len(callers) < _FRAMES_KEPT:
        callers.append((frame.f_code, frame.f_lasti))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return tuple(callers)
