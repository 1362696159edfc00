"""Signals that ask a process to end, as events its main thread deals with in its own time.

A signal must not be lost. Python runs a handler in the main thread alone, and only between two of its steps: a signal
that another thread took from the kernel, or that came just before the main thread began to wait for a lock, would wait
with it, for ever. So the main thread waits for a pipe (``Endings``), into which every signal writes a byte at once,
whichever thread took it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Endings:
    """What a process's main thread waits for: to be asked to end, and to hear that all has ended."""

    def __init__(self, bell: int, cord: int) -> None:
        self._news: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()
        self._bell = bell
        self._cord = cord

    def next(self) -> signal.Signals | None:
        """Wait for the next signal that asks this process to end; None: it has ended by itself."""
        while self._news.empty():
            self._wait(None)
        return self._news.get()

    def came(self, within: float) -> bool:
        """Wait so many seconds at most for one that ``next`` then returns; whether it is there. It may be sooner."""
        if self._news.empty():
            self._wait(within)
        return not self._news.empty()

    def put(self, number: signal.Signals | None) -> None:
        """Have ``next`` return this; from any thread, and from handlers."""
        self._news.put(number)
        with contextlib.suppress(BlockingIOError):  # full of bytes: it rings already
            os.write(self._cord, b"\0")

    def _wait(self, seconds: float | None) -> None:
        waiting = select.poll()
        waiting.register(self._bell, select.POLLIN)
        if waiting.poll(None if seconds is None else seconds * 1000):
            os.read(self._bell, 4096)


@contextlib.contextmanager
def ending_signals() -> Iterator[Endings]:
    """While entered, these signals are news for ``Endings.next`` instead of the process's end. For the main thread."""
    bell, cord = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(cord, warn_on_full_buffer=False)
    try:
        endings = Endings(bell, cord)
        with on_ending_signals(endings.put):
            yield endings
    finally:
        # The pipe stays open: a thread of this process's that ends late still says so.
        signal.set_wakeup_fd(before)


@contextlib.contextmanager
def on_ending_signals(act: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While entered, call ``act`` with each of these signals instead of dying of it. For a main thread that never waits
    for long.

    A terminal that is closed sends SIGHUP, to many and more than once: it asks a process to end, and never a second
    time; where it is ignored (nohup) it stays so. ``act`` runs inside the handler: it may set flags and put into a
    ``SimpleQueue``, and nothing that locks.
    """
    asked = False

    def note(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if number == signal.SIGHUP and asked:
            return
        asked = True
        act(signal.Signals(number))

    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = [number for number in ENDING_SIGNALS if not (number == signal.SIGHUP and is_ignored)]
    before = {number: signal.signal(number, note) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
