"""Where whole outputs are kept: a folder, or whatever `fsspec` has a library for.

A plain path and ``file://`` need no library. Logins do not belong into the address, which is recorded with each run and
shown: libraries find them in the environment and in their own files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sexton.errors import InvalidSetting, NotFound

_PIECE = 1 << 20
# Stores of objects have no folders to be made; some would make a bucket that was misspelt.
_WITHOUT_FOLDERS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "r2"}


class FolderPlace:
    """A folder of this machine, or one that all machines share."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/") or "/"

    def put(self, file: bytes, place: str, note: bytes = b"") -> None:
        """Copy ``file``, and ``note`` after it, to ``place`` below the base: whole, or not at all. Raises OSError."""
        target = Path(self.base, place)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        shutil.copyfile(os.fsdecode(file), part)
        if note:
            with part.open("ab") as opened:
                opened.write(note)
        os.replace(part, target)

    def read(self, place: str) -> Iterator[bytes]:
        """What lies there, in pieces. Raises OSError."""
        with Path(self.base, place).open("rb") as opened:
            while piece := opened.read(_PIECE):
                yield piece


class FsspecPlace:
    """An address that `fsspec` knows. Raises what ``place_at`` says."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/")
        self._files, self._root = _file_system(base)

    def put(self, file: bytes, place: str, note: bytes = b"") -> None:
        """Copy ``file``, and ``note`` after it, to ``place`` below the base. Raises whatever its library does."""
        target = f"{self._root.rstrip('/')}/{place}"
        if self._has_folders():
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        if not note:
            self._files.put_file(os.fsdecode(file), target)
            return
        with open(file, "rb") as spooled, self._files.open(target, "wb") as opened:
            shutil.copyfileobj(spooled, opened, _PIECE)
            opened.write(note)

    def read(self, place: str) -> Iterator[bytes]:
        """What lies there, in pieces. Raises whatever its library does."""
        with self._files.open(f"{self._root.rstrip('/')}/{place}", "rb") as opened:
            while piece := opened.read(_PIECE):
                yield piece

    def _has_folders(self) -> bool:
        names = self._files.protocol
        return _WITHOUT_FOLDERS.isdisjoint((names,) if isinstance(names, str) else names)


Place = FolderPlace | FsspecPlace


def place_at(base: str) -> Place:
    """The place with this address; nothing is read or written there. Raises ``InvalidSetting`` if the address is none
    or its library is not installed."""
    scheme, separator, rest = base.partition("://")
    if not separator:
        return FolderPlace(os.path.abspath(base))
    if scheme == "file":
        return FolderPlace(rest)
    if urlsplit(base).password is not None:
        raise InvalidSetting(
            f"output {scheme}://...: an address with a password would be recorded with each run and shown",
            hint="leave it out, and give the login in the way that the library of this store reads it",
        )
    return FsspecPlace(base)


def read_whole(address: str) -> Iterator[bytes]:
    """What lies at this address, in pieces. Raises ``NotFound`` if it cannot be read from here, ``InvalidSetting``."""
    base, _, name = address.rpartition("/")
    try:
        yield from place_at(base).read(name)
    except (InvalidSetting, BrokenPipeError):
        raise
    except Exception as error:  # whatever the store's library raises
        raise NotFound(
            f"{address} cannot be read from here ({error or type(error).__name__})",
            hint="read it where the workers' store can be reached",
        ) from None


def _file_system(base: str) -> tuple[Any, str]:
    scheme = base.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InvalidSetting(
            f"output {base}: the library fsspec is not installed here", hint="install sexton[output]"
        ) from None
    try:
        files, root = url_to_fs(base)
    except ImportError as error:
        raise InvalidSetting(
            f"output {base}: the library for {scheme}:// is not installed here ({error})",
            hint="install it beside sexton[output]",
        ) from None
    except Exception as error:  # of fsspec, or of the library
        raise InvalidSetting(
            f"output {base}: {error}", hint="name a folder, or an address such as s3://BUCKET/FOLDER"
        ) from None
    return files, str(root)
