"""The whole ledger, job by job, out of one snapshot: what the audit reads.

Read in one transaction (REPEATABLE READ on PostgreSQL), so that revisions, cursors, claims
and skip records belong to one moment. Claims are streamed: a million
of them never lie in memory at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Row, select

from sexton.audit import (
    AuditedClaim,
    AuditedRevision,
    AuditedSkip,
    AuditReport,
    JobLedger,
    Window,
    audit_job,
)
from sexton.claims import Origin
from sexton.inputs import own_inputs
from sexton.job_rules import firing_rules
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.store.protocol import Store
from sexton.store.tables import claims, cluster, cursors, jobs, pauses, revisions, skips

_BATCH = 10_000


def audit_ledger(store: Store, after: datetime, upto: datetime | None = None) -> AuditReport:
    """Judge every job in ``(after, upto]``, ``upto`` at most (and by default) the database's now.

    With this process's zone data and tick engine; revisions computed with others are said to be, not judged.
    Raises ``DatabaseUnreachable``.
    """
    now = store.now()
    with store.reads.snapshot() as connection:
        window = Window(
            after=after,
            upto=now if upto is None else min(upto, now),
            now=now,
            pruned_before=connection.execute(select(cluster.c.pruned_before)).scalar(),
            inputs_id=own_inputs().inputs_id,
        )
        report = AuditReport(window)
        for ledger in job_ledgers(connection, after, lambda text: schedule_from_spec(json.loads(text))):
            report.add(audit_job(ledger, window))
        return report


def job_ledgers(
    connection: Connection, after: datetime, parse_schedule: Callable[[str], Schedule]
) -> Iterator[JobLedger]:
    """Every job that ever was, with its claims and skip records after ``after``, by job id."""
    parsed: dict[str, Schedule] = {}

    def schedule(text: str) -> Schedule:
        if text not in parsed:
            parsed[text] = parse_schedule(text)
        return parsed[text]

    by_job = attrgetter("job_id")
    revisions_of = _grouped(connection, select(revisions).order_by(revisions.c.job_id, revisions.c.revision))
    skips_of = _grouped(connection, select(skips).where(skips.c.upto > after).order_by(skips.c.job_id, skips.c.after))
    paused_since = {
        row.job_id: row.since
        for row in connection.execute(select(pauses.c.job_id, pauses.c.since).where(pauses.c.until.is_(None)))
    }
    every_job = connection.execute(
        select(jobs.c.job_id, jobs.c.name, cursors.c.at)
        .join(cursors, cursors.c.job_id == jobs.c.job_id)
        .order_by(jobs.c.job_id)
    ).all()
    claim_rows = connection.execution_options(yield_per=_BATCH).execute(
        select(claims.c.job_id, claims.c.scheduled_at, claims.c.origin, claims.c.revision)
        .where(claims.c.scheduled_at > after)
        .order_by(claims.c.job_id, claims.c.scheduled_at)
    )
    claim_groups = groupby(claim_rows, key=by_job)
    claimed_job, claim_group = next(claim_groups, (None, iter(())))
    for row in every_job:
        while claimed_job is not None and claimed_job < row.job_id:
            claimed_job, claim_group = next(claim_groups, (None, iter(())))
        yield JobLedger(
            job_id=row.job_id,
            name=row.name,
            cursor=row.at,
            revisions=tuple(_revision(r, schedule) for r in revisions_of.get(row.job_id, ())),
            open_pause_since=paused_since.get(row.job_id),
            claims=[_claim(c) for c in claim_group] if claimed_job == row.job_id else (),
            skips=[_skip(s) for s in skips_of.get(row.job_id, ())],
        )


def _grouped(connection: Connection, query: Any) -> dict[int, list[Row[Any]]]:
    return {job_id: list(rows) for job_id, rows in groupby(connection.execute(query), key=attrgetter("job_id"))}


def _skip(row: Row[Any]) -> AuditedSkip:
    # `row.count` would be the tuple's method.
    return AuditedSkip(row.after, row.upto, row._mapping["count"], row.reason)


def _claim(row: Any) -> AuditedClaim:
    return AuditedClaim(row.scheduled_at, Origin(row.origin), row.revision)


def _revision(row: Row[Any], schedule: Callable[[str], Schedule]) -> AuditedRevision:
    return AuditedRevision(
        revision=row.revision,
        schedule=schedule(row.schedule),
        since=row.in_force_since,
        until=row.in_force_until,
        grace=firing_rules(row.firing).missed.grace,
        inputs_id=row.inputs_id or own_inputs().inputs_id,  # empty until a first node starts: nothing is computed yet
    )
