"""The indexes of all tables, and how full PostgreSQL packs the pages of those whose rows change all the time.

Apart from the tables, because statements need the tables alone: these load both databases' dialects of SQLAlchemy, and
only who makes the tables or compares them with the migrations has a use for them. ``metadata`` is the tables' own.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Index, text

from sexton.store.pool_tables import slots
from sexton.store.proposal_tables import proposals
from sexton.store.table_metadata import metadata as metadata
from sexton.store.tables import claims, cursors, decisions, events, jobs, runs, skips


def _where(condition: ColumnElement[bool] | str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    clause = text(condition) if isinstance(condition, str) else condition
    return {"postgresql_where": clause, "sqlite_where": clause}


for _table, _percent in ((cursors, 50), (claims, 70), (slots, 50)):
    _table.dialect_options["postgresql"]["with"] = {"fillfactor": _percent}

Index("jobs_name", jobs.c.name_key, unique=True, **_where(jobs.c.retired_at.is_(None)))
Index("jobs_changed", jobs.c.changed)
Index("jobs_grouped", jobs.c.slot, jobs.c.job_id, **_where(jobs.c.slot.is_not(None)))

_paced = "origin IN (1, 2, 3)"
Index(
    "claims_ready",
    claims.c.queue,
    claims.c.priority,
    claims.c.available_at,
    **_where(f"state = 0 AND NOT blocked AND NOT ({_paced})"),
)
Index(
    "claims_ready_paced",
    claims.c.queue,
    claims.c.priority,
    claims.c.available_at,
    **_where(f"state = 0 AND NOT blocked AND {_paced}"),
)
Index("claims_parked", claims.c.slot, claims.c.scheduled_at, **_where("state = 2"))
# Ticks that wait under `overlap: queue` and `replace`: what a queue limit counts, and what may replace a run.
_waiting = "state = 2 AND origin = 0 AND attempt = 0 AND NOT blocked"
Index("claims_waiting", claims.c.slot, claims.c.overlap, claims.c.scheduled_at, claims.c.job_id, **_where(_waiting))
Index("claims_lease", claims.c.lease_expires_at, **_where("state = 1"))
Index("claims_start_by", claims.c.start_by, **_where("state = 0 AND start_by IS NOT NULL"))
Index("claims_held", claims.c.job_id, claims.c.scheduled_at, **_where("state = 11"))
Index("claims_request", claims.c.request_id, unique=True, **_where("request_id IS NOT NULL"))

Index("runs_claim", runs.c.job_id, runs.c.scheduled_at)
Index("runs_finished", runs.c.finished_at, runs.c.token)
# What screens count and list first: failed, timed out, lost.
Index("runs_failed", runs.c.finished_at, runs.c.token, **_where("outcome IN (4, 5, 6)"))

Index("skips_named", skips.c.job_id, skips.c.upto, **_where("named_by IS NOT NULL"))

Index("decisions_term", decisions.c.term)
Index("decisions_decided", decisions.c.decided_at)

Index("events_at", events.c.at)
Index("events_job", events.c.job_id, events.c.event_id)

Index("proposals_open", proposals.c.lapses_at, **_where("state = 'open'"))
