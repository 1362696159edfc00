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

from sexton_worker.zygote.spool_file import SpoolFile, spool_files

_LOCK = "lock"


class SpoolRoom:
    """Making it makes the folder. ``limit``: bytes of each output. Raises OSError."""

    def __init__(self, limit: int, below: Path | None = None) -> None:
        self.limit = limit
        root = (below or Path(tempfile.gettempdir())) / f"sexton-output-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
        if root.lstat().st_uid != os.getuid() or root.is_symlink():
            raise PermissionError(f"{root} is another user's")
        for left in root.iterdir():
            _remove_stale(left)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)

    def path(self) -> bytes:
        """A new name for the files of one run, without their endings."""
        return os.fsencode(self.folder / str(next(self._numbers)))

    def files(self) -> tuple[SpoolFile, ...]:
        """Both files of one run, which are made with their first bytes."""
        return spool_files(self.path(), self.limit)

    def close(self) -> None:
        """Delete the folder with all that is left in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _remove_stale(folder: Path) -> None:
    """Delete the folder of a worker that is gone: nobody holds its lock."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
