"""The catch-up budget as operators draw on it: without a term, for claims that a person asked for.

Drawn before the transaction that uses it, so that no leader waits for the budget's row while claims are written; what
was drawn in vain is given back, if nobody has drawn since.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_DRAW = """
UPDATE budget SET next_at = greatest(next_at, clock_timestamp()) + %(span)s::interval WHERE id = 1
RETURNING next_at - %(span)s::interval
"""
_GIVE_BACK = """
UPDATE budget SET next_at = %(first)s WHERE id = 1 AND next_at = %(first)s::timestamptz + %(span)s::interval
"""


def draw(store: PostgresConnection, count: int, rate: float) -> datetime:
    """The first of ``count`` starts, ``1 / rate`` seconds apart; the budget goes on after the last."""
    with store.autocommit() as connection:
        row = connection.execute(_DRAW, {"span": _span(count, rate)}).fetchone()
    assert row is not None  # noqa: S101 - the migration makes the row and nothing deletes it
    first: datetime = row[0]
    return first


def give_back(store: PostgresConnection, first: datetime, count: int, rate: float) -> None:
    """These starts were certainly not used."""
    with store.autocommit() as connection:
        connection.execute(_GIVE_BACK, {"first": first, "span": _span(count, rate)})


def _span(count: int, rate: float) -> timedelta:
    return timedelta(seconds=count / rate)
