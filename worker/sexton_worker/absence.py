"""What a worker does first that was away: frozen, swapped out, or kept from the processor by others."""

from __future__ import annotations

from sexton.clock import Clock
from sexton_worker.core.runs import StopReason
from sexton_worker.execution import Execution
from sexton_worker.lease_book import LeaseBook

NOTICED_SECONDS = 1.0


class Absence:
    """Of one loop, which says when it is there. A lease that ran out meanwhile may be another's by now."""

    def __init__(self, clock: Clock, execution: Execution, book: LeaseBook) -> None:
        self._clock = clock
        self._execution = execution
        self._book = book
        self._here_at = clock.elapsed()

    def end(self) -> None:
        """The loop is there: if it was away, the runs that must not outlive their leases, and have, are stopped."""
        now = self._clock.elapsed()
        if now - self._here_at >= NOTICED_SECONDS:
            for token in self._book.lapsed(now):
                self._execution.stop(token, StopReason.LEASE_LOST)
        self._here_at = now
