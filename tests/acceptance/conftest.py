"""A ledger for commands and processes: on SQLite, then on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from tests.support.ledgers import make_ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh ledger."""
    if request.param == "sqlite":
        make_ledger(made := f"sqlite:///{tmp_path}/ledger.db")
        return made
    return str(request.getfixturevalue("postgres_ledger"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(StoreOptions(url))
    yield opened
    opened.close()
