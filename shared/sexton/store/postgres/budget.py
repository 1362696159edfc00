"""The catch-up budget as operators draw on it: without a term, for claims that a person asked for.

Drawn in the transaction that writes the claims, right before they are written: what is interrupted, refused or killed
draws nothing. Whoever else draws waits for that moment. The starts are planned before any lock is held, as if the
budget were free at ``BASE``, and the claims are written later by what ``draw`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sexton.holds import start_at
from sexton.settings import settings_from_rows

if TYPE_CHECKING:
    import psycopg

    from sexton.store.postgres.connection import PostgresConnection

BASE = datetime(2000, 1, 1, tzinfo=UTC)
_DRAW = """
UPDATE budget SET next_at = greatest(next_at, clock_timestamp()) + %(span)s::interval WHERE id = 1
RETURNING next_at - %(span)s::interval
"""


@dataclass(frozen=True, slots=True)
class PlannedStarts:
    """Starts ``1 / rate`` seconds apart, the first at ``BASE``."""

    starts: tuple[datetime, ...]
    rate: float

    def draw(self, connection: psycopg.Connection[Any]) -> timedelta:
        """By how much later they are: drawn in this transaction, which is to end soon."""
        if not self.starts:
            return timedelta(0)
        span = timedelta(seconds=len(self.starts) / self.rate)
        row = connection.execute(_DRAW, {"span": span}).fetchone()
        assert row is not None  # noqa: S101 - the migration makes the row and nothing deletes it
        first: datetime = row[0]
        return first - BASE

    def ends(self, later: timedelta) -> tuple[datetime, ...]:
        """The first and the last start, by so much later, if there is one."""
        return (self.starts[0] + later, self.starts[-1] + later) if self.starts else ()


def planned(store: PostgresConnection, count: int) -> PlannedStarts:
    """So many starts at the cluster's rate."""
    with store.autocommit() as connection:
        rows = connection.execute("SELECT key, value FROM settings").fetchall()
    rate = settings_from_rows(dict(rows)).catch_up_rate
    return PlannedStarts(tuple(start_at(BASE, number, rate) for number in range(count)), rate)
