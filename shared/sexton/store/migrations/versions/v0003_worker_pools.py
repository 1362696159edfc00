"""What worker pools need: slot groups of concurrency keys, rules of queues, drained workers, output that is followed.

Every column is empty or has a default, so that processes of the version before go on writing.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column(
        "workers", sa.Column("drain_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    for table in ("cluster", "workers", "nodes"):
        op.add_column(table, sa.Column("job_format", sa.SmallInteger(), server_default="1", nullable=False))
    op.add_column("nodes", sa.Column("job_format_at", _INSTANT))
    _admit_only_who_knows_the_jobs()
    op.add_column("jobs", sa.Column("slot", sa.BigInteger()))
    op.add_column("cursors", sa.Column("slot", sa.BigInteger()))
    op.add_column("runs", sa.Column("output_at", sa.Text()))
    op.create_table(
        "queues",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("slots", sa.Integer()),
        sa.Column("rate", sa.Float()),
        sa.Column("next_at", _INSTANT),
    )
    op.create_table(
        "slot_groups",
        sa.Column("group_id", _KEY, sa.Identity(), primary_key=True),
        sa.Column("key", sa.Text(), nullable=False, unique=True),
        sa.Column("size", sa.Integer(), nullable=False),
    )
    op.create_table(
        "watches",
        sa.Column("token", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("until", _INSTANT, nullable=False),
    )
    op.create_table(
        "live_outputs",
        sa.Column("token", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("stdout", sa.LargeBinary(), nullable=False),
        sa.Column("stderr", sa.LargeBinary(), nullable=False),
        sa.Column("stdout_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stderr_bytes", sa.BigInteger(), nullable=False),
        sa.Column("written_at", _INSTANT, nullable=False),
    )
    op.create_index("events_job", "events", ["job_id", "event_id"])
    _index("jobs_grouped", "jobs", ["slot", "job_id"], "slot IS NOT NULL")
    waiting = "state = 2 AND origin = 0 AND attempt = 0 AND NOT blocked"
    _index("claims_waiting", "claims", ["slot", "overlap", "scheduled_at", "job_id"], waiting)


def _index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, postgresql_where=where, sqlite_where=where)


def _admit_only_who_knows_the_jobs() -> None:
    """A worker whose release does not know the format of jobs here gets no row, and without one it pulls nothing. The
    database sees to it, as a release before this version would not."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("""CREATE TRIGGER workers_admitted BEFORE INSERT ON workers
            WHEN NEW.job_format < (SELECT job_format FROM cluster WHERE id = 1)
            BEGIN SELECT RAISE(ABORT, 'jobs of this cluster need a younger Sexton: upgrade this worker'); END""")
        return
    op.execute("""CREATE FUNCTION sexton_admit_worker() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE needed smallint;
        BEGIN
          SELECT job_format INTO needed FROM cluster WHERE id = 1 FOR SHARE;
          IF NEW.job_format < needed THEN
            RAISE EXCEPTION 'jobs of this cluster need a younger Sexton (format %) than % of worker %: upgrade it',
              needed, NEW.version, NEW.name;
          END IF;
          RETURN NEW;
        END $$""")
    op.execute("""CREATE TRIGGER workers_admitted BEFORE INSERT ON workers
        FOR EACH ROW EXECUTE FUNCTION sexton_admit_worker()""")


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken back to an older schema: restore a backup")
