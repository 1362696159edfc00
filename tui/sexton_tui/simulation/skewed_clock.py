"""The clock of one host whose wall clock is off, moved on by hand."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from sexton.clock import Wakeup


class SkewedClock:
    """A `Clock`. ``truth`` is the instant that it really is; nobody waits by this clock."""

    def __init__(self, truth: datetime, skew: timedelta) -> None:
        self.truth = truth
        self._booted = truth
        self._skew = skew

    def advance(self, by: timedelta) -> None:
        """It is later by this much."""
        self.truth += by

    def elapsed(self) -> float:
        return (self.truth - self._booted).total_seconds()

    def wall(self) -> datetime:
        return self.truth + self._skew

    def wakeup(self) -> Wakeup:
        return threading.Event()

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        self.advance(timedelta(seconds=seconds))
        return wakeup.is_set()
