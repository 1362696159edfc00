"""A ledger for commands and processes: on SQLite, then on PostgreSQL; and a moment that is not at a minute's end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from tests.support.ledgers import make_ledger
from tests.support.waiting import eventually


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


@pytest.fixture
def early_in_a_minute() -> None:
    """What is ahead at the whole minute stays ahead for a while; ask for it before the cluster."""
    eventually(lambda: datetime.now(UTC).second < 40, within=60, what="a minute begins")
