"""What alerts are made of, read from both databases: bounded in rows, whatever the ledger holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, and_, bindparam, case, exists, func, not_, or_, select, text

from sexton.alerts import (
    CLUSTER,
    AlertKind,
    AlertView,
    Failures,
    HeldTicks,
    MissedTicks,
    OpenAlert,
    Quarantine,
    Signs,
    WaitingTicks,
)
from sexton.claims import Origin
from sexton.decisions import Cause
from sexton.job_rules import NO_ALERT_RULES, AlertRules, alert_from_json
from sexton.store import tables
from sexton.store.tables import Instant

_ROWS = 5_000  # looked at of each kind, the oldest or the newest
_JOBS = 1_000
_ALIVE = timedelta(seconds=15)  # a node that reported within this lives
_LONGEST_LOOK_BACK = timedelta(hours=1)
_MARGIN = timedelta(minutes=1)  # what was committed while the look before was at work
_LEAST = timedelta(seconds=1)  # no allowance is shorter

# The conditions are those of the indexes `claims_ready`, `claims_ready_paced` and `claims_waiting`.
_DUE = """
SELECT job_id, scheduled_at, jitter_ms, start_by, origin FROM (
  SELECT * FROM (SELECT job_id, scheduled_at, jitter_ms, start_by, origin, attempt FROM claims
    WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND available_at <= :due
    ORDER BY available_at LIMIT :rows) live
  UNION ALL
  SELECT * FROM (SELECT job_id, scheduled_at, jitter_ms, start_by, origin, attempt FROM claims
    WHERE state = 0 AND NOT blocked AND origin IN (1, 2, 3) AND scheduled_at <= :due
    ORDER BY available_at LIMIT :rows) paced
  UNION ALL
  SELECT * FROM (SELECT job_id, scheduled_at, jitter_ms, nullif(start_by, start_by), origin, attempt FROM claims
    WHERE state = 2 AND origin = 0 AND attempt = 0 AND NOT blocked AND scheduled_at <= :due
    ORDER BY scheduled_at LIMIT :rows) parked
) due WHERE attempt = 0 AND origin IN (0, 1) ORDER BY scheduled_at
"""


def read_signs(connection: Connection, now: datetime, before: datetime | None) -> Signs:
    """One look. ``before``: when the last one was."""
    cluster = connection.execute(select(tables.cluster)).one()
    since = max(now - _LONGEST_LOOK_BACK, (before or now - _LONGEST_LOOK_BACK) - _MARGIN)
    open_rows = connection.execute(select(tables.alerts).where(tables.alerts.c.recovered_at.is_(None))).all()
    nodes = tables.nodes
    columns = (nodes.c.name, nodes.c.inputs_id, nodes.c.role, nodes.c.claims_upto)
    living = connection.execute(select(*columns).where(nodes.c.seen_at >= now - _ALIVE)).all()
    deciding = (row.claims_upto for row in living if row.role in ("leader", "racer") and row.claims_upto is not None)
    return Signs(
        now=now,
        heartbeat_at=connection.execute(select(tables.heartbeat.c.at)).scalar_one(),
        who=cluster.leader or cluster.predecessor,
        is_race=cluster.strategy == "race",
        is_halted=cluster.halted,
        inputs_id=cluster.inputs_id,
        node_inputs={row.name: row.inputs_id for row in living},
        claims_upto=max(deciding, default=None),
        waiting=_waiting(connection, now),
        missed=_missed(connection, now - _LONGEST_LOOK_BACK),
        failures=_failures(connection, since, {row.job_id for row in open_rows if row.kind == AlertKind.FAILING}),
        held=_held(connection),
        quarantined=_quarantined(connection),
        open_alerts=_open(connection, [row for row in open_rows if row.kind in tuple(AlertKind)]),
    )


def read_listed(connection: Connection, limit: int, *, only_open: bool) -> tuple[AlertView, ...]:
    """Open ones, oldest first; then recovered ones, newest first."""
    table, jobs = tables.alerts, tables.jobs
    columns = [table.c[field] for field in AlertView.__dataclass_fields__ if field != "job"]
    query = select(*columns, jobs.c.name.label("job")).outerjoin(jobs, jobs.c.job_id == table.c.job_id)
    is_open = table.c.recovered_at.is_(None)
    if only_open:
        query = query.where(is_open)
    order = (case((is_open, 0), else_=1), case((is_open, table.c.since)), table.c.recovered_at.desc(), table.c.kind)
    rows = connection.execute(query.order_by(*order, table.c.job_id).limit(limit))
    return tuple(AlertView(**row._mapping) for row in rows)


def _waiting(connection: Connection, now: datetime) -> tuple[WaitingTicks, ...]:
    statement = (
        text(_DUE)
        .bindparams(bindparam("due", type_=Instant()))
        .columns(job_id=BigInteger(), scheduled_at=Instant(), start_by=Instant())
    )
    found: dict[int, list[Any]] = {}
    for row in connection.execute(statement, {"due": now - _LEAST, "rows": _ROWS}):
        found.setdefault(row.job_id, []).append(row)
    about = _about(connection, list(found)[:_JOBS])
    waiting = []
    for job_id, (name, rules) in about.items():
        first = found[job_id][0]
        starts = [row.start_by for row in found[job_id] if row.start_by is not None]
        waiting.append(
            WaitingTicks(
                job_id,
                name,
                first.scheduled_at,
                first.scheduled_at + timedelta(milliseconds=first.jitter_ms),
                len(found[job_id]),
                min(starts, default=None),
                first.origin == Origin.CATCH_UP,
                rules,
            )
        )
    return tuple(waiting)


def _missed(connection: Connection, since: datetime) -> tuple[MissedTicks, ...]:
    """Of each job that was granted no run since: the newest such decision, and the oldest tick that one ends with.

    Ticks that were merged run, in the tick that they were merged into."""
    table, claims, jobs = tables.decisions, tables.claims, tables.jobs
    unrun = (table.c.skipped + table.c.expired).label("unrun")
    has_run = exists().where(
        claims.c.job_id == table.c.job_id,
        claims.c.scheduled_at > table.c.after,
        claims.c.granted_at > table.c.decided_at,
    )
    rows = connection.execute(
        select(table.c.job_id, table.c.upto, unrun, table.c.reason, table.c.decided_at)
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(table.c.decided_at > since, table.c.cause != Cause.RESUMED.value, unrun > 0)
        .where(jobs.c.retired_at.is_(None), jobs.c.paused_at.is_(None), not_(has_run))
        .order_by(table.c.decided_at.desc())
        .limit(_ROWS)
    )
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.job_id, []).append(row)
    missed = []
    for job_id, (name, rules) in _about(connection, list(found)[:_JOBS]).items():
        newest, due_at = found[job_id][0], min(row.upto for row in found[job_id])
        missed.append(
            MissedTicks(job_id, name, newest.upto, due_at, newest.unrun, newest.reason, newest.decided_at, rules)
        )
    return tuple(missed)


def _failures(connection: Connection, since: datetime, open_jobs: Iterable[int]) -> tuple[Failures, ...]:
    """Of jobs that failed since the last look, or whose alert is open. Runs that were tried again do not count."""
    runs = tables.runs
    newest = (
        select(runs.c.job_id)
        .where(text("outcome IN (4, 5, 6)"), runs.c.finished_at > since)
        .order_by(runs.c.finished_at.desc(), runs.c.token.desc())
        .limit(_ROWS)
        .subquery("newest")
    )
    recent = connection.execute(select(newest.c.job_id).distinct()).scalars()
    found = []
    for job_id, (name, rules) in _about(connection, sorted({*recent, *open_jobs})).items():
        if rules.failures is None:
            continue
        ended = connection.execute(
            select(runs.c.outcome, runs.c.scheduled_at, runs.c.finished_at)
            .where(runs.c.job_id == job_id, runs.c.outcome.in_((3, 4, 5, 6)))
            .order_by(runs.c.scheduled_at.desc(), runs.c.token.desc())
            .limit(rules.failures)
        ).all()
        failed = next((place for place, run in enumerate(ended) if run.outcome == 3), len(ended))
        if failed:
            first = ended[failed - 1].finished_at
            found.append(Failures(job_id, name, failed, ended[0].scheduled_at, first, rules))
    return tuple(found)


def _held(connection: Connection) -> tuple[HeldTicks, ...]:
    table, jobs = tables.proposals, tables.jobs
    rows = connection.execute(
        select(table.c.job_id, jobs.c.name, func.sum(table.c.count).label("ticks"), func.min(table.c.made_at))
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(text("state = 'open'"))
        .group_by(table.c.job_id, jobs.c.name)
        .order_by(table.c.job_id)
        .limit(_ROWS)
    )
    return tuple(HeldTicks(job_id, name, int(ticks), since) for job_id, name, ticks, since in rows)


def _quarantined(connection: Connection) -> tuple[Quarantine, ...]:
    jobs = tables.jobs
    rows = connection.execute(
        select(jobs.c.job_id, jobs.c.name, jobs.c.quarantined_at, jobs.c.quarantine_reason)
        .where(jobs.c.quarantined_at.is_not(None), jobs.c.retired_at.is_(None))
        .order_by(jobs.c.job_id)
        .limit(_ROWS)
    )
    return tuple(Quarantine(job_id, name, since, reason or "") for job_id, name, since, reason in rows)


def _open(connection: Connection, rows: Sequence[Any]) -> tuple[OpenAlert, ...]:
    claims, jobs, alerts = tables.claims, tables.jobs, tables.alerts
    has_run = exists().where(
        claims.c.job_id == alerts.c.job_id,
        or_(alerts.c.tick.is_(None), claims.c.scheduled_at >= alerts.c.tick),
        claims.c.granted_at > alerts.c.changed_at,
    )
    is_at_work = exists().where(
        jobs.c.job_id == alerts.c.job_id, jobs.c.retired_at.is_(None), jobs.c.paused_at.is_(None)
    )
    late = and_(alerts.c.recovered_at.is_(None), alerts.c.kind == AlertKind.LATE.value, alerts.c.job_id != CLUSTER)
    facts = {
        job_id: (bool(ran), not works)
        for job_id, ran, works in connection.execute(select(alerts.c.job_id, has_run, is_at_work).where(late))
    }
    return tuple(
        OpenAlert(
            kind,
            row.job_id,
            *(facts.get(row.job_id, (False, False)) if kind is AlertKind.LATE else (False, False)),
            sentence=row.sentence,
        )
        for row in rows
        if (kind := AlertKind(row.kind))
    )


def _about(connection: Connection, job_ids: Sequence[int]) -> dict[int, tuple[str, AlertRules]]:
    """Names and alert rules of those that are not retired, in this order."""
    if not job_ids:
        return {}
    jobs, revisions = tables.jobs, tables.revisions
    # `alert` is the first of a definition's keys, in the order of the alphabet: what has none is not read.
    told = case((func.substr(revisions.c.definition, 1, 9) == '{"alert":', revisions.c.definition))
    ids = bindparam("ids", list(job_ids), expanding=True, type_=BigInteger())
    rows = connection.execute(
        select(jobs.c.job_id, jobs.c.name, told.label("definition"))
        .join(revisions, and_(revisions.c.job_id == jobs.c.job_id, revisions.c.revision == jobs.c.revision))
        .where(jobs.c.job_id.in_(ids), jobs.c.retired_at.is_(None))
    )
    found = {row.job_id: (row.name, _rules(row.definition)) for row in rows}
    return {job_id: found[job_id] for job_id in job_ids if job_id in found}


def _rules(definition: str | None) -> AlertRules:
    return NO_ALERT_RULES if definition is None else alert_from_json(json.loads(definition)["alert"])


def owner_of(definition: str | None) -> str:
    """Who is responsible, as the definition says; empty where there is none."""
    return "" if definition is None else str(json.loads(definition).get("owner", ""))
