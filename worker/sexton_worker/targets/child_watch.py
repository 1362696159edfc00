"""What the thread over the Python children sleeps on: their bell, outputs, ends, and a time.

The bell is one for all children, and for the worker's other threads. All methods but ``wait`` belong to who holds
the execution's lock.
"""

from __future__ import annotations

import contextlib
import os
import select

from sexton.clock import Clock
from sexton_worker.targets.python_process import PythonChild

NEVER = float("inf")
STAYS_AWAKE = 0.5  # seconds after runs were given out: so that not each of them must wake the thread
LONGEST_SLEEP = 60.0  # the kernel's own timer stands still while the machine sleeps


class ChildWatch:
    """Raises OSError if the machine has no descriptors for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[int, PythonChild] = {}
        self._sleeps_until = NEVER  # as of elapsed seconds, like all times here
        self._given_at = -NEVER
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self.bell, select.EPOLLIN)

    def add(self, child: PythonChild) -> None:
        for descriptor in (*child.outputs.descriptors(), child.group.fileno()):
            self._watch(child, descriptor, select.EPOLLIN)

    def remove(self, child: PythonChild) -> None:
        for descriptor in [one for one, whose in self._watched.items() if whose is child]:
            del self._watched[descriptor]
            with contextlib.suppress(OSError):
                self._epoll.unregister(descriptor)

    def child_of(self, descriptor: int) -> PythonChild | None:
        """None: it was removed a moment ago."""
        return self._watched.get(descriptor)

    def forget(self, descriptor: int) -> None:
        """This output was closed, with which the kernel has forgotten it too."""
        self._watched.pop(descriptor, None)

    def mute(self, child: PythonChild, descriptor: int) -> None:
        """Do not hear this output until ``unmute``; only its end."""
        self._epoll.modify(descriptor, 0)
        child.muted.add(descriptor)

    def unmute(self, child: PythonChild) -> None:
        for descriptor in child.muted:
            self._epoll.modify(descriptor, select.EPOLLIN)
        child.muted.clear()

    def flush(self, child: PythonChild) -> None:
        """Send on what the child has not taken yet, now or when it does."""
        if child.outbox:
            child.flush()
        descriptor = child.fileno()
        if child.outbox and descriptor not in self._watched:
            self._watch(child, descriptor, select.EPOLLOUT)
        elif not child.outbox and descriptor in self._watched:
            del self._watched[descriptor]
            self._epoll.unregister(descriptor)

    def _watch(self, child: PythonChild, descriptor: int, events: int) -> None:
        self._watched[descriptor] = child
        self._epoll.register(descriptor, events)

    # --- sleep ------------------------------------------------------------------------------------------------------

    def ring(self) -> None:
        """Wake the thread."""
        self._sleeps_until = 0.0
        os.eventfd_write(self.bell, 1)

    def wake_by(self, until: float) -> None:
        """Runs were given out: time alone may change something then."""
        self._given_at = self._clock.elapsed()
        if until < self._sleeps_until:
            self.ring()

    def patience(self, until: float, now: float, nap: float) -> float:
        """The seconds for ``wait``, if nothing is due before ``until``; no more than ``nap`` in busy times."""
        if now - self._given_at < STAYS_AWAKE:
            until = min(until, now + nap)
        self._sleeps_until = until
        return -1.0 if until == NEVER else min(LONGEST_SLEEP, max(0.001, until - now))

    def wait(self, seconds: float) -> list[int]:
        """Descriptors that have something to say; -1 waits for ever. Without the lock."""
        return [descriptor for descriptor, _ in self._epoll.poll(seconds)]

    def hush(self) -> None:
        """The bell was heard."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.bell)

    def close(self) -> None:
        self._epoll.close()
        os.close(self.bell)
