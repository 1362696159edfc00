"""What operators' decisions need: holds, pauses of all, races, restores, alerts.

Every column is empty or has a default, so that processes of the version before go on writing.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    _holds()
    _pauses()
    _races()
    _restores()
    _alerts()


def _holds() -> None:
    op.add_column("proposals", sa.Column("reason", sa.Text(), server_default="", nullable=False))
    op.add_column("proposals", sa.Column("approved", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("proposals", sa.Column("approved_from", _INSTANT))
    op.add_column("proposals", sa.Column("approved_upto", _INSTANT))
    _index("proposals_open", "proposals", ["lapses_at"], "state = 'open'")
    _index("claims_held", "claims", ["job_id", "scheduled_at"], "state = 11")


def _index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, postgresql_where=where, sqlite_where=where)


def _pauses() -> None:
    op.add_column("jobs", sa.Column("paused_with_all", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("skips", sa.Column("named_by", sa.Text()))
    where = sa.text("named_by IS NOT NULL")
    op.create_index("skips_named", "skips", ["job_id", "upto"], postgresql_where=where, sqlite_where=where)
    op.create_table(
        "pause_of_all",
        sa.Column("id", sa.SmallInteger(), primary_key=True),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1", name="one_pause_of_all"),
    )


def _races() -> None:
    for name in ("race_attempts", "race_conflicts", "race_ticks"):
        op.add_column("nodes", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
    op.create_table(
        "race_pass",
        sa.Column("id", sa.SmallInteger(), primary_key=True),
        sa.Column("number", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("is_open", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("fired", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("holds", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("term", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("opened_at", _INSTANT),
        sa.CheckConstraint("id = 1", name="one_race_pass"),
    )
    op.execute("INSERT INTO race_pass (id) VALUES (1)")


def _restores() -> None:
    op.add_column("cluster", sa.Column("place", sa.Text(), server_default="", nullable=False))
    op.add_column("cluster", sa.Column("may_have_run_upto", _INSTANT))
    op.create_table(
        "zone_data",
        sa.Column("version", sa.Text(), primary_key=True),
        sa.Column("files", sa.LargeBinary(), nullable=False),
    )


def _alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("episode", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("tick", _INSTANT),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("changed_at", _INSTANT, nullable=False),
        sa.Column("recovered_at", _INSTANT),
        sa.Column("told_at", _INSTANT),
        sa.Column("recovery_told_at", _INSTANT),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", _INSTANT),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("kind", "job_id"),
    )
    op.create_table(
        "alert_watch",
        sa.Column("id", sa.SmallInteger(), primary_key=True),
        sa.Column("looked_at", _INSTANT),
        sa.CheckConstraint("id = 1", name="one_alert_watch"),
    )
    op.execute("INSERT INTO alert_watch (id) VALUES (1)")
    op.create_index("decisions_decided", "decisions", ["decided_at"])


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken back to an older schema: restore a backup")
