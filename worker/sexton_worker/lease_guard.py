"""The end of leases, on a thread that waits for nobody: neither a job nor the database can make it late.

A run that must not outlive its lease is stopped when that has run out by the worker's own clock, also while the
heartbeat waits for an answer that does not come. For a worker that is frozen as a whole its zygote does the same.
"""

from __future__ import annotations

import structlog

from sexton.clock import Clock, Wakeup
from sexton_worker.core.runs import StopReason
from sexton_worker.execution import Execution
from sexton_worker.lease_book import LeaseBook

LONGEST_PAUSE = 0.5  # what was granted meanwhile is seen in time for the shortest lease


class LeaseGuard:
    """Over what ``book`` holds."""

    def __init__(self, clock: Clock, execution: Execution, book: LeaseBook, wakeup: Wakeup) -> None:
        self._clock = clock
        self._execution = execution
        self._book = book
        self._wakeup = wakeup
        self._log = structlog.get_logger("sexton.worker.heartbeat")
        self._is_ended = False

    def run(self) -> None:
        """Guard until ``end``."""
        while not self._is_ended:
            try:
                seconds = self.step()
            except Exception:
                self._log.exception("lease_guard.failed")
                seconds = LONGEST_PAUSE
            self._clock.wait(self._wakeup, seconds)
            self._wakeup.clear()

    def end(self) -> None:
        """Have ``run`` return."""
        self._is_ended = True
        self._wakeup.set()

    def step(self) -> float:
        """Stop what has outlived its lease; seconds until the next look."""
        now, seconds = self._clock.elapsed(), LONGEST_PAUSE
        for token, until in self._book.binding().items():
            if now >= until:
                self._execution.stop(token, StopReason.LEASE_LOST)
            else:
                seconds = min(seconds, until - now)
        return seconds
