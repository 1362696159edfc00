"""How much work a call is, in lines of Python run: the same number on every machine, however loaded.

A loop over half a million ticks runs half a million lines; arithmetic in their place runs a few hundred. What a call
takes in seconds is a figure (`bench/`), not a test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def with_lines_run(call: Callable[[], T]) -> tuple[T, int]:
    """The call's answer, and the lines of Python that this thread ran for it (loops inside C functions count once)."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = call()
    finally:
        sys.settrace(before)
    return answer, lines
