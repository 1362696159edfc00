"""The scene in a database of its own, to be read and written into. It is the same each time, so it is written once."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, create_engine

from sexton.store import indexes
from sexton.store.reads import LedgerReader
from tests.support import scene
from tests.support.scene import NOW


class Ledger:
    """A database with the scene, a reader at the scene's now, and a way to write into it."""

    def __init__(self, url: str) -> None:
        self.engine = create_engine(url)
        self.reader = LedgerReader(self.engine.connect, now=lambda: NOW)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            yield connection


def write_scene(url: str) -> None:
    """Write tables and scene into an empty database."""
    engine = create_engine(url)
    indexes.metadata.create_all(engine)
    with engine.begin() as connection:
        scene.seed(connection)
    engine.dispose()


@cache
def scene_file() -> bytes:
    """A SQLite file with the scene."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.db"
        write_scene(f"sqlite:///{path}")
        return path.read_bytes()
