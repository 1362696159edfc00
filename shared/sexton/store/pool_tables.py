"""The tables of worker pools: workers, queues, slots, output that is followed."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

from sexton.store.instants import Instant
from sexton.store.table_metadata import Key, metadata

workers = Table(
    "workers",
    metadata,
    Column("worker_id", Key, Identity(), primary_key=True),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("queues", Text, nullable=False),  # JSON list
    Column("slots", Integer, nullable=False),
    Column("busy", Integer, nullable=False, server_default="0"),
    Column("draining", Boolean, nullable=False, server_default=text("false")),
    Column("started_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("stopped_at", Instant),
    Column("drain_requested", Boolean, nullable=False, server_default=text("false")),  # `workers drain`
    Column("job_format", SmallInteger, nullable=False, server_default="1"),  # the youngest it knows
)

queues = Table(  # only those that an operator gave a rule
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("slots", Integer),  # how many of its claims run at once in the cluster
    Column("rate", Float),  # how many are granted a second
    Column("next_at", Instant),  # when the rate admits the next grant
)

slot_groups = Table(  # of concurrency keys; a job's own group has no row
    "slot_groups",
    metadata,
    Column("group_id", Key, Identity(), primary_key=True),  # its slots are numbered -group_id
    Column("key", Text, nullable=False, unique=True),
    Column("size", Integer, nullable=False),  # how many may run at once
)

slots = Table(
    "slots",
    metadata,
    Column("slot", BigInteger, nullable=False),
    Column("number", SmallInteger, nullable=False),  # 1 .. the group's limit
    Column("token", BigInteger),  # the grant that holds it
    PrimaryKeyConstraint("slot", "number"),
)

watches = Table(  # runs whose output somebody follows: their workers write it down while they run
    "watches",
    metadata,
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("until", Instant, nullable=False),  # followers say again that they are there
)

live_outputs = Table(
    "live_outputs",
    metadata,
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("stdout", LargeBinary, nullable=False),
    Column("stderr", LargeBinary, nullable=False),
    Column("stdout_bytes", BigInteger, nullable=False),
    Column("stderr_bytes", BigInteger, nullable=False),
    Column("written_at", Instant, nullable=False),
)
