"""How another thread stops a run: a reason, and a descriptor that becomes readable with it."""

from __future__ import annotations

import os
import threading

from sexton_worker.core.runs import StopReason


class StopSignal:
    """Given once; the first reason stands, but ``is_urgent`` follows every later one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_open = True
        self.reason: StopReason | None = None
        self.is_urgent = False  # the worker ends: do not wait as long as the job may ask for

    def stop(self, reason: StopReason) -> None:
        """Ask the run to stop; nothing if it has ended."""
        with self._lock:
            is_news = self.reason is None or (reason is StopReason.GIVEN_BACK and not self.is_urgent)
            if not self._is_open or not is_news:
                return
            self.reason = self.reason or reason
            self.is_urgent = self.is_urgent or reason is StopReason.GIVEN_BACK
            os.eventfd_write(self._event, 1)

    def fileno(self) -> int:
        """Readable once ``stop`` was called with something new, until ``noticed``."""
        return self._event

    def noticed(self) -> None:
        """Make the descriptor quiet again."""
        os.eventfd_read(self._event)

    def close(self) -> None:
        """The run has ended; later stops do nothing."""
        with self._lock:
            self._is_open = False
            os.close(self._event)
