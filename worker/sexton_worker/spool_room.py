"""Where outputs lie whole until they are carried away: a folder of this worker's, on its own disk.

It is below the machine's folder for temporary files (``TMPDIR``), readable by this user alone, and locked while the
worker lives. What a worker left behind that was killed is deleted by the next one that starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
from pathlib import Path

from sexton_worker.zygote.spool_file import SpoolFile, make_private, spool_files

_LOCK = "lock"


class SpoolRoom:
    """Making it makes the folder. ``limit``: bytes of each output. Raises OSError."""

    def __init__(self, limit: int, below: Path | None = None) -> None:
        self.limit = limit
        root = (below or Path(tempfile.gettempdir())) / f"sexton-output-{os.getuid()}"
        make_private(str(root))
        for left in root.iterdir():
            _remove_stale(left)
        lock = None
        while lock is None:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
            lock = _locked(self.folder)
        self._lock = lock
        self._lock_file = os.fsencode(self.folder / _LOCK)
        self._numbers = itertools.count(1)

    def path(self) -> bytes:
        """A new name for the files of one run, without their endings."""
        if not os.path.exists(self._lock_file):  # who cleans up took it, or the folder with it
            self._lock_again()
        return os.fsencode(self.folder / str(next(self._numbers)))

    def files(self) -> tuple[SpoolFile, ...]:
        """Both files of one run, which are made with their first bytes."""
        return spool_files(self.path(), self.limit)

    def _lock_again(self) -> None:
        with contextlib.suppress(OSError):  # what cannot be written then is told run by run
            make_private(str(self.folder.parent))
            make_private(str(self.folder))
            if (lock := _locked(self.folder)) is not None:
                os.close(self._lock)
                self._lock = lock

    def close(self) -> None:
        """Delete the folder with all that is left in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _locked(folder: Path) -> int | None:
    """The folder's lock, held; None if another worker took it first, as one that starts does to delete the folder."""
    file = folder / _LOCK
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _is_at(file, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _is_at(file: Path, descriptor: int) -> bool:
    """Whether this is still the file that lies there."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    return False


def _remove_stale(folder: Path) -> None:
    """Delete the folder of a worker that is gone: nobody holds its lock."""
    with contextlib.suppress(OSError):
        file = folder / _LOCK
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(file, descriptor):
                return
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
