"""A gap in a term that goes on, on SQLite: an event, told in the transaction that opens the pass which ends it."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from sexton.store.sqlite.terms import record_event
from sexton.terms import GAP_EVENT, gap_told


def tell_gap(connection: sqlite3.Connection, now: int, actor: str, term: int, gap_from: datetime) -> None:
    """Record a gap, as ``read_gaps`` reads it."""
    record_event(connection, now, actor, GAP_EVENT, {"term": term, "gap_from": gap_told(gap_from)})
