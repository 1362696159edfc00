"""Standard error as a log that can fail and never harms: a line that cannot be written is left out.

    written ◀── the disk is full, the reader is gone, or took nothing for ``PATIENCE`` ──▶ left out
       └── the next line that goes: "N log lines could not be written"

A worker outlives its log: whoever logs may be about to start a run, renew a lease or drain. Once a line had to be left
out because nobody reads, no further one waits, until somebody does.
"""

from __future__ import annotations

import io
import os
import select
import threading
from typing import TextIO, cast

PATIENCE = 2.0  # seconds
_AT_ONCE = 4096  # what a pipe that can be written to takes without waiting (PIPE_BUF)


class LogStream(io.TextIOBase):
    """Writes to this descriptor, which stays its owner's. From any thread; no method raises for what is written."""

    def __init__(self, descriptor: int, *, is_terminal: bool = False) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._is_terminal = is_terminal
        self._lock = threading.Lock()
        self._left_out = 0
        self._is_broken = False  # in the midst of a line

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if self._left_out:
                start = "\n" if self._is_broken else ""
                data = f"{start}{self._left_out} log lines could not be written\n".encode() + data
            self._is_broken = False
            if self._send(data):
                self._left_out = 0
            else:
                self._left_out += 1
        return len(text)

    def _send(self, data: bytes) -> bool:
        rest = memoryview(data)
        try:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLOUT)
            while rest:
                if not poll.poll(0 if self._left_out else PATIENCE * 1000):
                    self._is_broken = len(rest) < len(data)
                    return False
                rest = rest[os.write(self._descriptor, rest[:_AT_ONCE]) :]
        except (OSError, ValueError):
            self._is_broken = len(rest) < len(data)
            return False
        return True

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal


def log_stream_of(stderr: TextIO | None) -> TextIO:
    """Writes to where this one does; to nowhere if the process was started without one."""
    if stderr is None:  # whatever has its number now is no log
        return cast("TextIO", LogStream(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)))
    return cast("TextIO", LogStream(stderr.fileno(), is_terminal=stderr.isatty()))
