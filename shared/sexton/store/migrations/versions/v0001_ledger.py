"""The ledger: every table of the first version.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# Finished claims are updated rows, and `state` stands in the indexes: no update of it is HOT. The dead rows go soon,
# and by a vacuum that does not pause, or pulls wade through them.
_VACUUM = """
ALTER TABLE claims SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 1000);
ALTER TABLE cursors SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
ALTER TABLE slots SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
"""


def upgrade() -> None:
    _create_cluster_tables()
    _create_process_tables()
    _create_job_tables()
    _create_claim_tables()
    _create_run_tables()
    _create_missed_tick_tables()
    _create_audit_tables()
    if op.get_bind().dialect.name == "postgresql":
        for name in ("tokens", "changes"):
            op.execute(f"CREATE SEQUENCE {name}")
        op.execute(_VACUUM)
    else:
        for name in ("tokens", "changes"):
            op.execute(sa.text("INSERT INTO counters (name, value) VALUES (:name, 0)").bindparams(name=name))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken back to an older schema: restore a backup")


def _index(name: str, table: str, columns: list[str], *, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, postgresql_where=condition, sqlite_where=condition)


def _create_cluster_tables() -> None:
    op.create_table(
        "cluster",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=False),
        sa.Column("term", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("leader", sa.Text(), nullable=True),
        sa.Column("leader_since", _INSTANT, nullable=True),
        sa.Column("elected_by", sa.Text(), nullable=True),
        sa.Column("predecessor", sa.Text(), nullable=True),
        sa.Column("left_at", _INSTANT, nullable=True),
        sa.Column("strategy", sa.Text(), server_default="leader", nullable=False),
        sa.Column("coordinator", sa.Text(), server_default="", nullable=False),
        sa.Column("halted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("inputs_id", sa.Text(), server_default="", nullable=False),
        sa.Column("resign_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("pruned_before", _INSTANT, nullable=True),
        sa.CheckConstraint("id = 1", name="one_cluster"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "heartbeat",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("term", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("counter", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("confirmation", sa.Text(), server_default="confirmed", nullable=False),
        sa.Column("timeline", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint("id = 1", name="one_heartbeat"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "budget",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("next_at", _INSTANT, nullable=False),
        sa.CheckConstraint("id = 1", name="one_budget"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("changed_at", _INSTANT, nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "inputs",
        sa.Column("inputs_id", sa.Text(), nullable=False),
        sa.Column("zone_data", sa.Text(), nullable=False),
        sa.Column("engine", sa.Integer(), nullable=False),
        sa.Column("accepted_at", _INSTANT, nullable=False),
        sa.Column("accepted_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("inputs_id"),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _create_process_tables() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("confirmation", sa.Text(), nullable=True),
        sa.Column("coordinator_status", sa.Text(), nullable=False),
        sa.Column("jobs_warm", sa.Integer(), nullable=False),
        sa.Column("behind_ms", sa.Integer(), nullable=False),
        sa.Column("clock_offset_ms", sa.BigInteger(), nullable=False),
        sa.Column("claims_upto", _INSTANT, nullable=True),
        sa.Column("inputs_id", sa.Text(), nullable=False),
        sa.Column("started_at", _INSTANT, nullable=False),
        sa.Column("seen_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "workers",
        sa.Column("worker_id", _KEY, sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("busy", sa.Integer(), server_default="0", nullable=False),
        sa.Column("draining", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("started_at", _INSTANT, nullable=False),
        sa.Column("seen_at", _INSTANT, nullable=False),
        sa.Column("stopped_at", _INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("worker_id"),
    )


def _create_job_tables() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", _KEY, sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("hash_seed", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("retired_at", _INSTANT, nullable=True),
        sa.Column("paused_at", _INSTANT, nullable=True),
        sa.Column("paused_by", sa.Text(), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("quarantined_at", _INSTANT, nullable=True),
        sa.Column("quarantine_reason", sa.Text(), nullable=True),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    _index("jobs_changed", "jobs", ["changed"])
    _index("jobs_name", "jobs", ["name_key"], where="retired_at IS NULL", unique=True)
    op.create_table(
        "revisions",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("firing", sa.Text(), nullable=False),
        sa.Column("inputs_id", sa.Text(), nullable=False),
        sa.Column("in_force_since", _INSTANT, nullable=False),
        sa.Column("in_force_until", _INSTANT, nullable=True),
        sa.Column("applied_at", _INSTANT, nullable=False),
        sa.Column("applied_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "revision"),
    )
    op.create_table(
        "pauses",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("until", _INSTANT, nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "since"),
    )
    op.create_table(
        "cursors",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        postgresql_with={"fillfactor": 50},
    )


def _create_claim_tables() -> None:
    op.create_table(
        "claims",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("scheduled_at", _INSTANT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("origin", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("overlap", sa.SmallInteger(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("available_at", _INSTANT, nullable=False),
        sa.Column("start_by", _INSTANT, nullable=True),
        sa.Column("blocked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("at_most_once", sa.Boolean(), nullable=False),
        sa.Column("jitter_ms", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=True),
        sa.Column("worker_id", sa.BigInteger(), nullable=True),
        sa.Column("granted_at", _INSTANT, nullable=True),
        sa.Column("lease_expires_at", _INSTANT, nullable=True),
        sa.Column("started_at", _INSTANT, nullable=True),
        sa.Column("finished_at", _INSTANT, nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("written_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "scheduled_at"),
        postgresql_with={"fillfactor": 70},
    )
    _index("claims_lease", "claims", ["lease_expires_at"], where="state = 1")
    _index("claims_parked", "claims", ["slot", "scheduled_at"], where="state = 2")
    _index(
        "claims_ready",
        "claims",
        ["queue", "priority", "available_at"],
        where="state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3))",
    )
    _index(
        "claims_ready_paced",
        "claims",
        ["queue", "priority", "available_at"],
        where="state = 0 AND NOT blocked AND origin IN (1, 2, 3)",
    )
    _index("claims_request", "claims", ["request_id"], where="request_id IS NOT NULL", unique=True)
    _index("claims_start_by", "claims", ["start_by"], where="state = 0 AND start_by IS NOT NULL")


def _create_run_tables() -> None:
    op.create_table(
        "slots",
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("slot", "number"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "runs",
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("scheduled_at", _INSTANT, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", _INSTANT, nullable=True),
        sa.Column("finished_at", _INSTANT, nullable=False),
        sa.Column("lateness_ms", sa.BigInteger(), nullable=True),
        sa.Column("stdout_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("stderr_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("token"),
    )
    _index("runs_claim", "runs", ["job_id", "scheduled_at"])
    _index("runs_failed", "runs", ["finished_at", "token"], where="outcome IN (4, 5, 6)")
    _index("runs_finished", "runs", ["finished_at", "token"])
    op.create_table(
        "outputs",
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stdout", sa.LargeBinary(), nullable=False),
        sa.Column("stderr", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("token"),
    )


def _create_missed_tick_tables() -> None:
    op.create_table(
        "skips",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("after", _INSTANT, nullable=False),
        sa.Column("upto", _INSTANT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", _INSTANT, nullable=False),
        sa.Column("resolved_at", _INSTANT, nullable=True),
        sa.Column("resolved_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "after"),
    )
    op.create_table(
        "proposals",
        sa.Column("proposal_id", _KEY, sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("after", _INSTANT, nullable=False),
        sa.Column("upto", _INSTANT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("within_from", _INSTANT, nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("made_at", _INSTANT, nullable=False),
        sa.Column("lapses_at", _INSTANT, nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("answered_at", _INSTANT, nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("proposal_id"),
        sa.UniqueConstraint("job_id", "after"),
    )
    op.create_table(
        "takeovers",
        sa.Column("term", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("elected_by", sa.Text(), nullable=False),
        sa.Column("taken_at", _INSTANT, nullable=False),
        sa.Column("predecessor", sa.Text(), nullable=True),
        sa.Column("predecessor_ended", sa.Text(), nullable=False),
        sa.Column("gap_from", _INSTANT, nullable=True),
        sa.Column("gap_until", _INSTANT, nullable=True),
        sa.Column("planning_ms", sa.Float(), nullable=True),
        sa.Column("jobs", sa.Integer(), nullable=True),
        sa.Column("blockers_terminated", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("term"),
    )


def _create_audit_tables() -> None:
    op.create_table(
        "decisions",
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("after", _INSTANT, nullable=False),
        sa.Column("upto", _INSTANT, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("missed", sa.BigInteger(), nullable=False),
        sa.Column("fired", sa.BigInteger(), nullable=False),
        sa.Column("merged", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("expired", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("decided_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "after", "term", "cause"),
    )
    _index("decisions_term", "decisions", ["term"])
    op.create_table(
        "events",
        sa.Column("event_id", _KEY, sa.Identity(always=False), nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("event_id"),
    )
    _index("events_at", "events", ["at"])
