"""What a Python job may ask about its own run: ``from sexton_worker import context``; ``context.current()``."""

from __future__ import annotations

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


_current: RunContext | None = None


def current() -> RunContext:
    """The run in which the caller works. Raises ``LookupError`` outside of one."""
    if _current is None:
        raise LookupError("there is no run here: context.current() works inside a job that a Sexton worker runs")
    return _current


def enter(run: RunContext | None) -> None:
    """Make ``run`` the current one; None: no run. For Sexton's own child processes."""
    global _current
    _current = run
