"""Textual's driver, for a terminal that may be closed or stand still: leaving the console never waits for its screen.

Textual's own writer ends at the first failed write, and the thirtieth line after that waits for ever in the loop. Its
reader knows an escape key after 100 to 200 ms, by nothing coming after it; this one after 50.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import select
from collections.abc import Callable
from typing import IO, cast

from textual import constants
from textual._xterm_parser import XTermParser  # its version is pinned
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

_STDERR = 2
_LOOK_EVERY = 0.2
_LOOK_FOR_KEYS, _LOOK_FOR_ESCAPE = 0.1, 0.01
_LAST_WORDS_WITHIN = 2.0
_ESCAPE_WITHIN = 0.05  # what a key sends follows its escape character sooner; ESCDELAY is for slow lines


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

        def run_input_thread(self) -> None:
            if "ESCDELAY" not in os.environ:
                constants.ESCAPE_DELAY = _ESCAPE_WITHIN  # type: ignore[misc]  # it is read anew for each key
            parser, decode = XTermParser(self._debug), codecs.getincrementaldecoder("utf-8")("replace").decode
            while not self.exit_event.is_set():
                is_escape = parser._timeout_time is not None
                if select.select([self.fileno], [], [], _LOOK_FOR_ESCAPE if is_escape else _LOOK_FOR_KEYS)[0]:
                    if not (data := os.read(self.fileno, 4096)):
                        return
                    for event in parser.feed(decode(data)):
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)

    return ConsoleDriver
