"""Folders for the data of test servers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.support import reaper

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, gone with the machine
NEEDED_BYTES = 4 << 30


def make_folder(name: str, *, durable: bool = False) -> Path:
    """Return a new folder, in memory where there is room, on disk if `durable`; removed when the session ends."""
    parent: Path | None = None
    if not durable and MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED_BYTES:
        parent = MEMORY
    folder = Path(tempfile.mkdtemp(prefix=f"sexton-{name}-", dir=parent))
    reaper.watch("folder", folder)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder made by `make_folder` now."""
    reaper.remove_folder(folder)
    reaper.forget("folder", folder)
