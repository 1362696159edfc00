"""The table of proposals: stretches of missed ticks held for an operator, and their answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, Table, Text, UniqueConstraint

from sexton.store.instants import Instant
from sexton.store.table_metadata import Key, metadata

proposals = Table(
    "proposals",
    metadata,
    Column("proposal_id", Key, Identity(), primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("after", Instant, nullable=False),  # with a held skip record of the same: a gap; else claims that are held
    Column("upto", Instant, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("within_from", Instant, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),  # open | approved | rejected | lapsed
    Column("made_at", Instant, nullable=False),
    Column("lapses_at", Instant, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("answered_at", Instant),
    Column("answered_by", Text),
    Column("note", Text),
    Column("reason", Text, nullable=False, server_default=""),  # why they were held; empty: the skip record says
    Column("approved", BigInteger, nullable=False, server_default="0"),  # how many of its ticks
    Column("approved_from", Instant),  # the oldest of those
    Column("approved_upto", Instant),  # the newest
    UniqueConstraint("job_id", "after"),
)
