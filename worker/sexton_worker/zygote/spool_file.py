"""A file that takes an output whole, for who will carry it to where it is kept.

It is on this machine's own disk, so that writing to it does not hang; a full disk costs what does not fit. Nothing is
there before the first byte. Its folder may be gone by then, for who cleans up folders for temporary files takes what is
old; it is made again. What runs and what watches over runs write to it the same way.
"""

from __future__ import annotations

import contextlib
import os
import stat

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
                self._descriptor = self._opened()
            rest = memoryview(data)[:room]
            while rest:
                count = os.write(self._descriptor, rest)
                self.written += count
                rest = rest[count:]
        except OSError:
            self._limit = self.written

    def _opened(self) -> int:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(self.path, how, 0o600)
        except FileNotFoundError:
            folder = os.path.dirname(self.path)
            make_private(os.path.dirname(folder))
            make_private(folder)
            return os.open(self.path, how, 0o600)

    def close(self) -> int:
        """How many bytes it took."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._limit = self.written
            if not self.written:  # the disk was full
                with contextlib.suppress(OSError):
                    os.unlink(self.path)
        return self.written


def make_private(folder: str | bytes) -> None:
    """Have this folder, for this user alone. Raises OSError, also if it is another's."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{os.fsdecode(folder)} is another user's")


def spool_files(path: bytes | None, limit: int) -> tuple[SpoolFile, ...]:
    """Both files of a run, or none where its output is not wanted whole."""
    return () if path is None else (SpoolFile(path + STDOUT, limit), SpoolFile(path + STDERR, limit))
