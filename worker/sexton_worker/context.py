"""What a Python job may ask about its own run: ``from sexton_worker import context``; ``context.current()``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run at hand. ``token`` grows with every grant: hand it to whatever must refuse a stale writer.

    ``tick`` and ``deadline`` are UTC; the run is stopped after the deadline.
    """

    job: str
    tick: datetime
    attempt: int
    token: int
    deadline: datetime


_make: Callable[[], RunContext] | None = None
_current: RunContext | None = None


def current() -> RunContext:
    """The run in which the caller works. Raises ``LookupError`` outside of one."""
    global _current
    if _make is None:
        raise LookupError("there is no run here: context.current() works inside a job that a Sexton worker runs")
    if _current is None:
        _current = _make()
    return _current


def enter(make: Callable[[], RunContext] | None) -> None:
    """Make that run the current one, made when it is asked for; None: no run. For Sexton's own child processes."""
    global _make, _current
    _make, _current = make, None
