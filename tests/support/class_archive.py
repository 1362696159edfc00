"""What Java has made of ZooKeeper's classes, kept beside pytest's cache: a server then starts at half the price.

Made once for a checkout, a Java and its jars, by an ensemble that is started for it. Where it cannot be made, or Java
finds that it does not fit, servers load their classes as ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".pytest_cache"


@cache
def sharing(java: str, class_path: str, make: Callable[[Path], None]) -> tuple[str, ...]:
    """The options with which `java` takes its classes from the archive. `make` has Java write it to that path."""
    archive = FOLDER / f"zookeeper-{_key(java, class_path)}.jsa"
    with contextlib.suppress(OSError):  # a checkout that may not be written to
        FOLDER.mkdir(exist_ok=True)
        with archive.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not archive.exists():
                made = archive.with_suffix(f".{os.getpid()}")
                make(made)
                made.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto") if archive.exists() else ()


def _key(java: str, class_path: str) -> str:
    files = [Path(java).resolve(), *(Path(jar).resolve() for jar in class_path.split(":"))]
    return hashlib.sha256(repr([(str(file), file.stat().st_mtime_ns) for file in files]).encode()).hexdigest()[:16]
