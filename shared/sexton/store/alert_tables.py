"""What was found to be wrong, who was told, and whose turn it is to look."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, PrimaryKeyConstraint, SmallInteger, Table, Text

from sexton.store.instants import Instant
from sexton.store.table_metadata import metadata

alerts = Table(  # one row per kind and job: the newest time that it was so
    "alerts",
    metadata,
    Column("kind", Text, nullable=False),  # sexton.alerts.AlertKind
    Column("job_id", BigInteger, nullable=False),  # 0: the cluster, or many jobs at once
    Column("episode", BigInteger, nullable=False, server_default="1"),  # grows whenever it is raised anew
    Column("since", Instant, nullable=False),
    Column("tick", Instant),
    Column("sentence", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),  # the look that raised it, or found it recovered
    Column("recovered_at", Instant),
    Column("told_at", Instant),
    Column("recovery_told_at", Instant),
    Column("attempts", Integer, nullable=False, server_default="0"),  # to tell of this episode; numbers the deliveries
    Column("next_try_at", Instant),  # null: nothing is to be told; while somebody tells, the end of their lease
    Column("error", Text, nullable=False, server_default=""),  # of the last attempt
    PrimaryKeyConstraint("kind", "job_id"),
)

alert_watch = Table(
    "alert_watch",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("looked_at", Instant),  # when a node last took the turn
    CheckConstraint("id = 1", name="one_alert_watch"),
)
