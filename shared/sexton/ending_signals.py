"""Signals that ask a process to end, as events its main thread deals with in its own time."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_ending_signals(
    act: Callable[[signal.Signals], None], signals: tuple[signal.Signals, ...] = ENDING_SIGNALS
) -> Iterator[None]:
    """While entered, call ``act`` with each of these signals instead of dying of it. For the main thread.

    ``act`` runs inside the handler: it may set flags and put into a ``SimpleQueue``, and nothing that locks.
    """

    def note(number: int, _: FrameType | None) -> None:
        act(signal.Signals(number))

    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
