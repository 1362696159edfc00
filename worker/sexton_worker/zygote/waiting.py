"""What the zygote sleeps on: descriptors, each with whom it is about, and the elapsed clock."""

from __future__ import annotations

import select
import time

LONGEST_SLEEP = 10.0  # the kernel's own timer stands still while the machine sleeps, the elapsed clock does not


def elapsed() -> float:
    """Seconds of CLOCK_BOOTTIME, as the worker's elapsed clock tells them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Waiting:
    """Descriptors and whom they are about. Who closes one removes it before: a process that is just being started
    holds copies of all of them, with which the kernel would go on telling of it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._whose: dict[int, object] = {}

    def add(self, descriptor: int, whose: object, *, is_for_writing: bool = False) -> None:
        """Tell when something can be read there, or written. Raises OSError if the kernel has no room for it."""
        self._epoll.register(descriptor, select.EPOLLOUT if is_for_writing else select.EPOLLIN)
        self._whose[descriptor] = whose

    def change(self, descriptor: int, *, is_for_writing: bool) -> None:
        """Tell when it can be read, and when it can be written too."""
        self._epoll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if is_for_writing else 0))

    def remove(self, descriptor: int) -> None:
        """Tell nothing of it any more; nothing if it was never added."""
        if self._whose.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def wait(self, until: float) -> list[tuple[int, object]]:
        """Who has something to say, at the latest at this elapsed time; infinity: whenever that is."""
        seconds = None if until == float("inf") else min(LONGEST_SLEEP, max(0.0, until - elapsed()))
        ready = self._epoll.poll(seconds)
        return [(descriptor, self._whose[descriptor]) for descriptor, _ in ready if descriptor in self._whose]
