"""Textual's driver, for a terminal that may be closed or stand still: leaving the console never waits for its screen.

Textual's own writer ends at the first failed write, and the thirtieth line after that waits for ever in the loop.
"""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable
from typing import IO, cast

from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

_STDERR = 2
_LOOK_EVERY = 0.2
_LAST_WORDS_WITHIN = 2.0


class _Descriptor:
    """A text file straight on a descriptor: a write that hangs holds no lock that the interpreter's end wants."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._descriptor


class PatientWriter(WriterThread):
    """Writes as Textual's does, until a write fails; from then on, and while ``is_leaving`` says so of a screen that
    takes nothing, what is written is dropped."""

    def __init__(self, descriptor: int, is_leaving: Callable[[], bool]) -> None:
        super().__init__(cast(IO[str], _Descriptor(descriptor)))
        self._is_leaving = is_leaving

    def write(self, text: str) -> None:
        while self.is_alive():
            try:
                self._queue.put(text, timeout=_LOOK_EVERY)
            except queue.Full:
                if self._is_leaving():
                    return
            else:
                return

    def run(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            super().run()

    def stop(self) -> None:
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=_LAST_WORDS_WITHIN)
        self.join(_LAST_WORDS_WITHIN)


def driver_that_leaves(is_leaving: Callable[[], bool]) -> type[LinuxDriver]:
    """LinuxDriver with such a writer; ``is_leaving`` is asked while the screen takes nothing."""

    class ConsoleDriver(LinuxDriver):
        @property
        def _writer_thread(self) -> WriterThread | None:
            return self._writer

        @_writer_thread.setter
        def _writer_thread(self, made: WriterThread | None) -> None:
            self._writer = None if made is None else PatientWriter(_STDERR, is_leaving)

        def _run_input_thread(self) -> None:
            with contextlib.suppress(OSError):  # the terminal is gone: the app leaves by itself
                self.run_input_thread()

    return ConsoleDriver
