"""Waiting for a fact. The only module of the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.02
SLOWEST_POLL_SECONDS = 0.08
"""What has been waited for long is asked for less often: asking takes from the processor what is waited for."""
WATCH_SECONDS = 0.1
"""Between two looks at what is to stay: more of them would keep busy the cluster that they look at."""


class NeverHappenedError(AssertionError):
    """What a test waited for did not become true in time."""


def eventually(
    predicate: Callable[[], T], within: float, what: str | Callable[[], str], *, every: float | None = None
) -> T:
    """Return the first truthy answer of `predicate`, asked `every` so many seconds, or at first often, for `within`.

    Raises NeverHappenedError, which names `what` (asked then, where it is a call) and the last answer, once the time is
    over. The predicate is asked at least once, and once more after the time is over, so that a stall of the test itself
    fails nothing. Exceptions of the predicate are not caught: one that means "not yet" is the predicate's to turn into
    False.
    """
    pause = POLL_SECONDS if every is None else every
    deadline = time.monotonic() + within
    while True:
        is_last = time.monotonic() >= deadline
        answer = predicate()
        if answer:
            return answer
        if is_last:
            said = what if isinstance(what, str) else what()
            raise NeverHappenedError(f"not within {within:g} s: {said} (last answer: {answer!r})")
        time.sleep(pause)
        if every is None:
            pause = min(pause * 1.05, SLOWEST_POLL_SECONDS)


def stays(predicate: Callable[[], object], during: float, what: str) -> None:
    """Return if `predicate` stayed truthy for `during` seconds; raise AssertionError, naming `what`, if it did not."""
    deadline = time.monotonic() + during
    while True:
        is_last = time.monotonic() >= deadline
        answer = predicate()
        if not answer:
            raise AssertionError(f"no longer true: {what} (answer: {answer!r})")
        if is_last:
            return
        time.sleep(WATCH_SECONDS)
