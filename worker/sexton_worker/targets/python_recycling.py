"""Python children that have served long enough, and who takes their place.

    in service ──worn──▶ due ──a spare is sent for──▶ (still in service) ──the spare is ready──▶ replaced: it gets no
        ▲                 │                                  │             more, and goes when its hands are empty
        └─────────────────┴──── the spare does not come ─────┘

A spare holds no slot while it comes up, and the worn child works on until it is there: so recycling costs no run its
time, and there is no run that it could cost more. Everything here belongs to who holds the execution's lock.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

import structlog

from sexton_worker.core.wear import LOOK_EVERY, TRY_AGAIN, WearLimits
from sexton_worker.targets.python_process import PythonChild

_PAGE = os.sysconf("SC_PAGESIZE")


class Recycling:
    """Of one worker's children."""

    def __init__(self, limits: WearLimits) -> None:
        self._limits = limits
        self._due: deque[PythonChild] = deque()
        self._spares: dict[PythonChild, PythonChild] = {}  # each with whom it is to replace
        self._look_after: dict[PythonChild, float] = {}  # elapsed seconds
        self._log = structlog.get_logger("sexton.worker.execution")

    @property
    def is_wanted(self) -> bool:
        """Whether a spare is to be started."""
        return bool(self._due)

    def look_at(self, child: PythonChild, now: float) -> bool:
        """Whether this child, which has just ended runs, has become due with that."""
        most = self._limits.runs
        is_full = most is not None and child.runs >= most
        if child.is_due or (not is_full and now < self._look_after.get(child, 0.0)):
            return False
        self._look_after[child] = now + LOOK_EVERY
        memory = resident_bytes(child.group.pid)
        if not self._limits.are_reached(child.runs, memory):
            return False
        child.is_due = True
        self._due.append(child)
        self._log.info("python.recycled", pid=child.group.pid, runs=child.runs, resident_mb=memory >> 20)
        return True

    def next_due(self) -> PythonChild | None:
        """For whom a spare is to be started now, if there is one."""
        return self._due.popleft() if self._due else None

    def note_started(self, spare: PythonChild, worn: PythonChild) -> None:
        self._spares[spare] = worn

    def note_failed(self, worn: PythonChild, now: float) -> None:
        """No spare could be started, or it did not come to be ready."""
        worn.is_due = False
        worn.runs = 0
        self._look_after[worn] = now + TRY_AGAIN

    def note_ready(self, spare: PythonChild) -> PythonChild | None:
        """Who gets no more runs now; None: it is no spare."""
        worn = self._spares.pop(spare, None)
        if worn is not None:
            worn.is_replaced = True
        return worn

    def forget(self, child: PythonChild, now: float) -> None:
        """It is no more."""
        self._look_after.pop(child, None)
        if child in self._due:
            self._due.remove(child)
        worn = self._spares.pop(child, None)
        if worn is not None:
            self.note_failed(worn, now)


def resident_bytes(pid: int) -> int:
    """Of physical memory that the process has; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0
