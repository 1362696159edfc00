"""A file written whole or not at all, over nothing that it does not replace."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from sexton.errors import Refused

_PRIVATE, _SHARED = 0o600, 0o666


def write_file(path: Path, text: str, *, is_private: bool, replaces: Callable[[str], bool], what: str) -> None:
    """Write ``text`` to ``path``, through a new file beside it that takes its place.

    ``is_private``: only its owner may read it; else whoever the umask lets. ``replaces`` says by the start of a file
    that stands there whether it may go. Raises Refused where it may not, OSError where the folder is not writable.
    """
    path = Path(os.path.realpath(path))  # through a link, the file it names: the link stays
    if path.exists():
        if not path.is_file():
            raise Refused(f"{path} is not a regular file, so {what} is not written there", hint="name another file")
        if not replaces(_start_of(path)):
            raise Refused(
                f"{path} exists and is not {what} that Sexton wrote", hint="name another file, or remove this one first"
            )
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE if is_private else _SHARED)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _start_of(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(4096).decode("utf-8", errors="replace")
