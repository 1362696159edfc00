"""Rules of queues in a test's ledger, beside the store under test."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from sexton.store.tables import queues
from tests.support.claim_rows import ClaimRows


def limit(rows: ClaimRows, name: str = "default", **columns: Any) -> None:
    """Give a queue this rule (``slots``, ``rate``, ``next_at``) in place of the one it has."""
    with rows.engine.begin() as connection:
        connection.execute(delete(queues).where(queues.c.name == name))
        connection.execute(insert(queues).values(name=name, **columns))


def open_at(rows: ClaimRows, next_at: datetime, name: str = "default") -> None:
    """Have the rate of a queue admit the next grant at this instant."""
    with rows.engine.begin() as connection:
        connection.execute(update(queues).where(queues.c.name == name).values(next_at=next_at))


def opens_at(rows: ClaimRows, name: str = "default") -> datetime | None:
    """When the rate of a queue admits the next grant."""
    with rows.engine.begin() as connection:
        next_at: datetime | None = connection.execute(
            select(queues.c.next_at).where(queues.c.name == name)
        ).scalar_one()
    return next_at
