"""Every table of the ledger, once, for both databases.

Instants are timezone-aware UTC in Python; PostgreSQL keeps them as
``timestamptz``, SQLite as whole microseconds since the epoch, so that neither
can take a wall-clock reading for an instant. Enumerations are small integers
(``sexton.claims``) where they are hot, words elsewhere. Indexes are in
``sexton.store.indexes``: no statement is built from them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
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

from sexton.store.alert_tables import alert_watch as alert_watch
from sexton.store.alert_tables import alerts as alerts
from sexton.store.instants import Instant as Instant
from sexton.store.instants import from_micros as from_micros
from sexton.store.instants import to_micros as to_micros
from sexton.store.pause_tables import pause_of_all as pause_of_all
from sexton.store.pool_tables import live_outputs as live_outputs
from sexton.store.pool_tables import queues as queues
from sexton.store.pool_tables import slot_groups as slot_groups
from sexton.store.pool_tables import slots as slots
from sexton.store.pool_tables import watches as watches
from sexton.store.pool_tables import workers as workers
from sexton.store.proposal_tables import proposals as proposals
from sexton.store.race_tables import race_pass as race_pass
from sexton.store.restore_tables import zone_data as zone_data
from sexton.store.table_metadata import Key
from sexton.store.table_metadata import metadata as metadata

cluster = Table(
    "cluster",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("cluster_id", Text, nullable=False),
    Column("term", BigInteger, nullable=False, server_default="0"),
    Column("leader", Text),
    Column("leader_since", Instant),
    Column("elected_by", Text),
    Column("predecessor", Text),  # who led last, after a clean hand-over
    Column("left_at", Instant),  # when it handed over
    Column("strategy", Text, nullable=False, server_default="leader"),
    Column("coordinator", Text, nullable=False, server_default=""),  # "" until the first node starts
    Column("halted", Boolean, nullable=False, server_default=text("false")),
    Column("inputs_id", Text, nullable=False, server_default=""),
    Column("resign_requested", Boolean, nullable=False, server_default=text("false")),
    Column("pruned_before", Instant),  # the ledger holds nothing older: the audit does not judge it
    Column("halted_at", Instant),
    Column("halted_by", Text),
    Column("halt_reason", Text),
    Column("forced_to", Text),  # the node forced to lead; null once it is confirmed, or another led
    Column("clock_accepts", BigInteger, nullable=False, server_default="0"),  # grows with every `clock accept`
    Column("job_format", SmallInteger, nullable=False, server_default="1"),  # the youngest that a job ever needed
    Column("place", Text, nullable=False, server_default=""),  # where the ledger is (`postgres.places`)
    Column("may_have_run_upto", Instant),  # undecided ticks up to here of jobs that run at most once are to be held
    CheckConstraint("id = 1", name="one_cluster"),
)

heartbeat = Table(
    "heartbeat",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("term", BigInteger, nullable=False, server_default="0"),
    Column("counter", BigInteger, nullable=False, server_default="0"),
    Column("at", Instant, nullable=False),
    Column("confirmation", Text, nullable=False, server_default="confirmed"),
    Column("timeline", Text, nullable=False, server_default=""),
    CheckConstraint("id = 1", name="one_heartbeat"),
)

budget = Table(
    "budget",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("next_at", Instant, nullable=False),  # the next instant at which a caught-up tick may start
    CheckConstraint("id = 1", name="one_budget"),
)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Text, nullable=False),
)

inputs = Table(
    "inputs",
    metadata,
    Column("inputs_id", Text, primary_key=True),  # sexton.inputs: e.g. "2026b/1/0.109"
    Column("zone_data", Text, nullable=False),
    Column("engine", Integer, nullable=False),
    Column("accepted_at", Instant, nullable=False),
    Column("accepted_by", Text, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),  # swallowed, stale_results, stale_commits, lost_races, ...
    Column("value", BigInteger, nullable=False),
)

nodes = Table(
    "nodes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("confirmation", Text),
    Column("coordinator_status", Text, nullable=False),
    Column("jobs_warm", Integer, nullable=False),
    Column("behind_ms", Integer, nullable=False),
    Column("clock_offset_ms", BigInteger, nullable=False),
    Column("claims_upto", Instant),
    Column("inputs_id", Text, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("coordinator_servers", Text, nullable=False, server_default="[]"),  # JSON: terms.servers_text
    Column("clock_jump_ms", BigInteger),  # by how much the database's clock jumped while this node doubts it; else null
    Column("job_format", SmallInteger, nullable=False, server_default="1"),  # the youngest it knows
    Column("race_attempts", BigInteger, nullable=False, server_default="0"),  # sexton.races: since its process began
    Column("race_conflicts", BigInteger, nullable=False, server_default="0"),
    Column("race_ticks", BigInteger, nullable=False, server_default="0"),
    Column("job_format_at", Instant),  # the `seen_at` with which it said so: other releases leave the format as it was
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Key, Identity(), primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),  # lower case; unique among jobs not retired
    Column("hash_seed", Text, nullable=False),
    Column("revision", Integer, nullable=False),  # the newest
    Column("created_at", Instant, nullable=False),
    Column("retired_at", Instant),
    Column("paused_at", Instant),
    Column("paused_by", Text),
    Column("pause_reason", Text),
    Column("paused_with_all", Boolean, nullable=False, server_default=text("false")),  # by `pause_of_all`
    Column("quarantined_at", Instant),
    Column("quarantine_reason", Text),
    Column("changed", BigInteger, nullable=False),  # grows with every edit: followers read what is newer
    Column("slot", BigInteger),  # the slot group its new claims name; null: its own, numbered like the job
)

revisions = Table(
    "revisions",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("definition", Text, nullable=False),  # JobDefinition.to_text()
    Column("schedule", Text, nullable=False),  # JobDefinition.schedule_text()
    Column("firing", Text, nullable=False),  # JobDefinition.firing_text()
    Column("inputs_id", Text, nullable=False),
    Column("in_force_since", Instant, nullable=False),  # its ticks lie in (since, until]
    Column("in_force_until", Instant),
    Column("applied_at", Instant, nullable=False),
    Column("applied_by", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "revision"),
)

pauses = Table(
    "pauses",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    Column("since", Instant, nullable=False),  # ticks in (since, until] are paused
    Column("until", Instant),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "since"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("job_id", BigInteger, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("slot", BigInteger),  # as in `jobs`: a commit reads it off the row that it moves
)

claims = Table(
    "claims",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    Column("scheduled_at", Instant, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("origin", SmallInteger, nullable=False),
    Column("state", SmallInteger, nullable=False, server_default="0"),
    Column("queue", Text, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("overlap", SmallInteger, nullable=False),
    Column("slot", BigInteger, nullable=False),  # slot group: the job's own, or that of its concurrency key
    Column("available_at", Instant, nullable=False),
    Column("start_by", Instant),
    Column("blocked", Boolean, nullable=False, server_default=text("false")),  # paused: not to be granted
    Column("at_most_once", Boolean, nullable=False),  # on_worker_lost: fail
    Column("jitter_ms", Integer, nullable=False, server_default="0"),
    Column("attempt", Integer, nullable=False, server_default="0"),  # grants so far
    Column("retries", Integer, nullable=False, server_default="0"),  # retries used up
    Column("losses", Integer, nullable=False, server_default="0"),  # leases lost
    Column("token", BigInteger),
    Column("worker_id", BigInteger),
    Column("granted_at", Instant),
    Column("lease_expires_at", Instant),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("cancel_requested", Boolean, nullable=False, server_default=text("false")),
    Column("reason", Text),
    Column("request_id", Text),
    Column("term", BigInteger, nullable=False),
    Column("written_at", Instant, nullable=False),
    PrimaryKeyConstraint("job_id", "scheduled_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", BigInteger, nullable=False),
    Column("scheduled_at", Instant, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("worker_id", BigInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),  # State; READY: ended to be retried, given back or lost
    Column("exit_code", Integer),
    Column("error", Text),
    Column("started_at", Instant),
    Column("finished_at", Instant, nullable=False),
    Column("lateness_ms", BigInteger),
    Column("stdout_bytes", BigInteger, nullable=False, server_default="0"),
    Column("stderr_bytes", BigInteger, nullable=False, server_default="0"),
    Column("output_at", Text),  # where the whole output is, if the worker keeps it
)

outputs = Table(
    "outputs",
    metadata,
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("stdout", LargeBinary, nullable=False),
    Column("stderr", LargeBinary, nullable=False),
)

skips = Table(
    "skips",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    Column("after", Instant, nullable=False),  # ticks in (after, upto]
    Column("upto", Instant, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("decided_at", Instant, nullable=False),
    Column("resolved_at", Instant),
    Column("resolved_by", Text),
    Column("named_by", Text),  # who asked for this one tick not to run (skip-next); it may lie ahead of now
    PrimaryKeyConstraint("job_id", "after"),
)

takeovers = Table(
    "takeovers",
    metadata,
    Column("term", BigInteger, primary_key=True, autoincrement=False),
    Column("node", Text, nullable=False),
    Column("elected_by", Text, nullable=False),
    Column("taken_at", Instant, nullable=False),
    Column("predecessor", Text),
    Column("predecessor_ended", Text, nullable=False),
    Column("gap_from", Instant),  # the predecessor's last sign of life
    Column("gap_until", Instant),  # this term's first commit: set when the pass over missed ticks is done
    Column("planning_ms", Float),
    Column("jobs", Integer),
    Column("blockers_terminated", Integer, nullable=False, server_default="0"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("term", BigInteger, nullable=False),
    Column("job_id", BigInteger, nullable=False),
    Column("after", Instant, nullable=False),
    Column("upto", Instant, nullable=False),
    Column("cause", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("policy", Text, nullable=False),
    Column("missed", BigInteger, nullable=False),
    Column("fired", BigInteger, nullable=False),
    Column("merged", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("decided_at", Instant, nullable=False),
    PrimaryKeyConstraint("job_id", "after", "term", "cause"),
)

events = Table(
    "events",
    metadata,
    Column("event_id", Key, Identity(), primary_key=True),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),  # e.g. job.applied, job.paused, leader.resigned, term.taken
    Column("job_id", BigInteger),
    Column("detail", Text, nullable=False),  # JSON object
)

# `tokens` numbers grants cluster-wide, `changes` numbers edits: sequences on PostgreSQL, rows of `counters` on SQLite.
