"""Signals that ask a process to end, as events its main thread deals with in its own time."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def on_ending_signals(act: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While entered, call ``act`` with each of these signals instead of dying of it. For the main thread.

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
