"""A file that takes an output whole, for who will carry it to where it is kept.

It is on this machine's own disk, so that writing to it does not hang; a full disk costs what does not fit. Nothing is
there before the first byte. What runs and what watches over runs write to it the same way.
"""

from __future__ import annotations

import os

STDOUT, STDERR = b".stdout", b".stderr"


class SpoolFile:
    """Takes up to ``limit`` bytes; the rest is for others to count."""

    __slots__ = ("_descriptor", "_limit", "path", "written")

    def __init__(self, path: bytes, limit: int) -> None:
        self.path = path
        self.written = 0
        self._limit = limit
        self._descriptor = -1  # none yet

    def write(self, data: bytes) -> None:
        """Never raises: after a failure nothing more is taken."""
        room = self._limit - self.written
        if room <= 0 or not data:
            return
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            rest = memoryview(data)[:room]
            while rest:
                count = os.write(self._descriptor, rest)
                self.written += count
                rest = rest[count:]
        except OSError:
            self._limit = self.written

    def close(self) -> int:
        """How many bytes it took."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._limit = self.written
        return self.written


def spool_files(path: bytes | None, limit: int) -> tuple[SpoolFile, ...]:
    """Both files of a run, or none where its output is not wanted whole."""
    return () if path is None else (SpoolFile(path + STDOUT, limit), SpoolFile(path + STDERR, limit))
