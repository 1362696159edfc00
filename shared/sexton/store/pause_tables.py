"""The pause of all jobs: a row while it lasts."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, SmallInteger, Table, Text

from sexton.store.instants import Instant
from sexton.store.table_metadata import metadata

pause_of_all = Table(
    "pause_of_all",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("since", Instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    CheckConstraint("id = 1", name="one_pause_of_all"),
)
