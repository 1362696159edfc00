"""The pass over missed ticks that the racers of a race share, and a leader leaves to its successor. One row, made by
the migration."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, SmallInteger, Table, text

from sexton.store.instants import Instant
from sexton.store.table_metadata import metadata

race_pass = Table(  # the newest pass over missed ticks
    "race_pass",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("number", BigInteger, nullable=False, server_default="0"),  # grows with every pass
    Column("is_open", Boolean, nullable=False, server_default=text("false")),
    Column(
        "fired", BigInteger, nullable=False, server_default="0"
    ),  # by all racers together; a leader's are its decisions
    Column("holds", Boolean, nullable=False, server_default=text("false")),  # catch_up.hold_above would be exceeded
    Column("term", BigInteger, nullable=False, server_default="0"),
    Column("opened_at", Instant),
    CheckConstraint("id = 1", name="one_race_pass"),
)
