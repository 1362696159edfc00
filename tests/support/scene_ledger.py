"""The scene in a database of its own, to be read and written into."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, create_engine

from sexton.store import tables
from sexton.store.reads import LedgerReader
from tests.support import scene
from tests.support.scene import NOW


class Ledger:
    """A database with the scene, a reader at the scene's now, and a way to write into it."""

    def __init__(self, url: str) -> None:
        self.engine = create_engine(url)
        tables.metadata.create_all(self.engine)
        with self.write() as connection:
            scene.seed(connection)
        self.reader = LedgerReader(self.engine.connect, now=lambda: NOW)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            yield connection
