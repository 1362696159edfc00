"""A limit to what the main thread does, however it waits: for calls that take none, or one for each of their steps."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Self

_AGAIN_SECONDS = 0.5  # should somebody have caught what was raised


class OutOfTime(BaseException):
    """Raised in the midst of what was going on; not an Exception, so that few catch it."""


class TimeLimit:
    """``with TimeLimit(seconds):`` raises ``OutOfTime`` in its body, or at its end, when that much time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, self._before)


def _ring(number: int, frame: FrameType | None) -> None:
    raise OutOfTime
