"""The overview's queries: the cluster, its nodes, workers, queues and lateness, at a cost that no table's size moves.

Counts stop at ``COUNT_LIMIT`` and go by the partial indexes; ready claims are found by one seek per queue and priority;
lateness looks at no more than ``LATENESS_ROWS`` of the newest runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, Text, bindparam, func, or_, select, text

from sexton.claims import State
from sexton.cluster_views import (
    COUNT_LIMIT,
    FAILURES_SEEN,
    NO_RULE,
    SEXTON,
    FailingJob,
    Halt,
    Lateness,
    LatenessMinute,
    LostRun,
    NodeView,
    ProposalView,
    QuarantinedJob,
    QueueView,
    WorkerView,
)
from sexton.queue_rules import QueueRule
from sexton.races import RaceCounts
from sexton.store import tables
from sexton.store.read_runs import newest_runs
from sexton.terms import servers_of

LATENESS_ROWS = 5_000
LATENESS_NOW = timedelta(minutes=5)
_FAILURES_LOOKED_AT = 1_000  # a job that fails each second hides no other one for a quarter of an hour
_LISTED = 20
_SILENT_SHOWN = timedelta(minutes=10)  # a process that vanished stays on the screen for this long
_MINUTE = timedelta(minutes=1)
_MILLISECOND = timedelta(milliseconds=1)

# The conditions of the indexes claims_ready and claims_ready_paced, word for word: else neither database uses them.
_LIVE = "state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3))"
_PACED = "state = 0 AND NOT blocked AND origin IN (1, 2, 3)"


def _queues_statement(ready: str) -> str:
    return f"""
    WITH RECURSIVE q(queue) AS (
        SELECT (SELECT min(queue) FROM claims WHERE {ready})
        UNION ALL
        SELECT (SELECT min(c.queue) FROM claims c WHERE {ready} AND c.queue > q.queue) FROM q WHERE q.queue IS NOT NULL
    ), p(queue, priority) AS (
        SELECT q.queue, (SELECT min(c.priority) FROM claims c WHERE {ready} AND c.queue = q.queue)
        FROM q WHERE q.queue IS NOT NULL
        UNION ALL
        SELECT p.queue, (SELECT min(c.priority) FROM claims c
                         WHERE {ready} AND c.queue = p.queue AND c.priority > p.priority)
        FROM p WHERE p.priority IS NOT NULL
    )
    SELECT p.queue,
        (SELECT min(c.available_at) FROM claims c
         WHERE {ready} AND c.queue = p.queue AND c.priority = p.priority) AS oldest,
        (SELECT count(*) FROM (SELECT 1 FROM claims c WHERE {ready} AND c.queue = p.queue AND c.priority = p.priority
         AND c.available_at <= :now ORDER BY c.available_at LIMIT {COUNT_LIMIT + 1}) due) AS due,
        (SELECT count(*) FROM (SELECT 1 FROM claims c WHERE {ready} AND c.queue = p.queue AND c.priority = p.priority
         AND c.available_at > :now ORDER BY c.available_at LIMIT {COUNT_LIMIT + 1}) ahead) AS ahead
    FROM p WHERE p.priority IS NOT NULL"""  # noqa: S608 - built from the constants above


def _queues_query(ready: str) -> Any:
    return (
        text(_queues_statement(ready))
        .bindparams(bindparam("now", type_=tables.Instant()))
        .columns(queue=Text(), oldest=tables.Instant(), due=BigInteger(), ahead=BigInteger())
    )


_LIVE_QUEUES = _queues_query(_LIVE)
_PACED_QUEUES = _queues_query(_PACED)
_COUNTS = text("""
    SELECT (SELECT count(*) FROM (SELECT 1 FROM claims WHERE state = 1 LIMIT :most) r) AS running,
        (SELECT count(*) FROM (SELECT 1 FROM claims WHERE state = 2 LIMIT :most) p) AS parked,
        (SELECT count(*) FROM (SELECT 1 FROM runs WHERE outcome IN (4, 5, 6) AND finished_at > :since
                               LIMIT :most) f) AS failed""").bindparams(bindparam("since", type_=tables.Instant()))

_RUNNING_BY_QUEUE = text("""
    SELECT queue, count(*) AS running FROM (SELECT queue FROM claims WHERE state = 1 LIMIT :most) r GROUP BY queue""")

_RUNNING_BY_WORKER = text("""
    SELECT worker_id, count(*) AS running FROM (SELECT worker_id FROM claims WHERE state = 1 LIMIT :most) r
    GROUP BY worker_id""")


def read_nodes(connection: Connection, now: datetime) -> tuple[NodeView, ...]:
    """Nodes heard of lately, by name."""
    table = tables.nodes
    rows = connection.execute(select(table).where(table.c.seen_at > now - _SILENT_SHOWN).order_by(table.c.name))
    return tuple(_node(row, now) for row in rows)


def _node(row: Row[Any], now: datetime) -> NodeView:
    return NodeView(
        name=row.name,
        address=row.address,
        version=row.version,
        pid=row.pid,
        role=row.role,
        confirmation=row.confirmation,
        coordinator_status=row.coordinator_status,
        jobs_warm=row.jobs_warm,
        behind=row.behind_ms * _MILLISECOND,
        clock_offset=row.clock_offset_ms * _MILLISECOND,
        claims_upto=row.claims_upto,
        inputs_id=row.inputs_id,
        started_at=row.started_at,
        seen_at=row.seen_at,
        age=max(now - row.seen_at, timedelta(0)),
        coordinator_servers=servers_of(row.coordinator_servers),
        clock_jump=None if row.clock_jump_ms is None else row.clock_jump_ms * _MILLISECOND,
        raced=RaceCounts(row.race_attempts, row.race_conflicts, row.race_ticks),
    )


def claims_upto(nodes: Sequence[NodeView], leader: str | None) -> datetime | None:
    """How far claims are written, as the leader says, or in a race whoever has come furthest."""
    deciding = [node for node in nodes if node.name == leader or (leader is None and node.role == "racer")]
    return max((node.claims_upto for node in deciding if node.claims_upto is not None), default=None)


def read_halt(cluster: Row[Any]) -> Halt | None:
    """Who halted the cluster, if it is halted and that is known."""
    if not cluster.halted or cluster.halted_at is None:
        return None
    return Halt(cluster.halted_at, cluster.halted_by or "", cluster.halt_reason or "")


def read_workers(connection: Connection, now: datetime, *, stopped: bool = False) -> tuple[WorkerView, ...]:
    """Workers heard of lately, by name; `stopped` also lists those that stopped cleanly.

    Busy slots are counted, as what runs is: a worker itself says how many only with each heartbeat.
    """
    table = tables.workers
    query = select(table).where(table.c.seen_at > now - _SILENT_SHOWN)
    if not stopped:
        query = query.where(table.c.stopped_at.is_(None))
    rows = connection.execute(query.order_by(table.c.name, table.c.worker_id)).all()
    counted = connection.execute(_RUNNING_BY_WORKER, {"most": COUNT_LIMIT})
    running = {row.worker_id: row.running for row in counted}
    return tuple(
        WorkerView(
            worker_id=row.worker_id,
            name=row.name,
            address=row.address,
            version=row.version,
            pid=row.pid,
            queues=tuple(json.loads(row.queues)),
            slots=row.slots,
            busy=min(running.get(row.worker_id, 0), row.slots),
            is_draining=row.draining or row.drain_requested,
            started_at=row.started_at,
            seen_at=row.seen_at,
            stopped_at=row.stopped_at,
            age=max(now - row.seen_at, timedelta(0)),
            is_drain_requested=row.drain_requested,
        )
        for row in rows
    )


def read_queues(
    connection: Connection, now: datetime, workers: Sequence[WorkerView], silent_after: timedelta
) -> tuple[QueueView, ...]:
    """Every queue with claims to grant, a worker or a rule, by name. A worker silent for longer serves none."""
    found: dict[str, dict[str, Any]] = {}
    for query, is_paced in ((_LIVE_QUEUES, False), (_PACED_QUEUES, True)):
        for row in connection.execute(query, {"now": now}):
            queue = found.setdefault(row.queue, {"due": 0, "ahead": 0, "catch_up": 0, "oldest": None})
            if is_paced:
                queue["catch_up"] += row.due + row.ahead
                continue
            queue["due"] += row.due
            queue["ahead"] += row.ahead
            if row.oldest <= now:
                queue["oldest"] = row.oldest if queue["oldest"] is None else min(queue["oldest"], row.oldest)
    serving = [w for w in workers if w.stopped_at is None and not w.is_draining and w.age <= silent_after]
    running = {row.queue: row.running for row in connection.execute(_RUNNING_BY_QUEUE, {"most": COUNT_LIMIT})}
    rules = {row.name: QueueRule(row.slots, row.rate) for row in connection.execute(select(tables.queues))}
    names = sorted({*found, *rules, *running, *(queue for worker in serving for queue in worker.queues)})
    return tuple(
        QueueView(
            name=name,
            **found.get(name, {"due": 0, "ahead": 0, "catch_up": 0, "oldest": None}),
            workers=sum(name in worker.queues for worker in serving),
            slots=sum(worker.slots for worker in serving if name in worker.queues),
            busy=sum(worker.busy for worker in serving if name in worker.queues),
            running=running.get(name, 0),
            rule=rules.get(name, NO_RULE),
        )
        for name in names
    )


def read_counts(connection: Connection, now: datetime) -> tuple[int, int, int]:
    """Claims running, claims parked, runs failed in the last hour."""
    row = connection.execute(_COUNTS, {"since": now - timedelta(hours=1), "most": COUNT_LIMIT + 1}).one()
    return row.running, row.parked, row.failed


def read_lateness(
    connection: Connection, now: datetime, since: datetime
) -> tuple[Lateness, tuple[LatenessMinute, ...]]:
    """Lateness of the last 5 minutes, and by minute from `since` on; of the newest ``LATENESS_ROWS`` first tries.

    A retry is late by its delay, on purpose: it would hide whether ticks start in time.
    """
    table = tables.runs
    rows = connection.execute(
        select(table.c.started_at, table.c.lateness_ms)
        .where(table.c.finished_at > min(since, now - LATENESS_NOW), table.c.attempt == 1)
        .order_by(table.c.finished_at.desc(), table.c.token.desc())
        .limit(LATENESS_ROWS)
    )
    pairs = [(row.started_at, row.lateness_ms) for row in rows if row.started_at and row.lateness_ms is not None]
    by_minute: dict[datetime, list[int]] = {}
    for started_at, lateness_ms in pairs:
        if started_at >= since:
            by_minute.setdefault(started_at.replace(second=0, microsecond=0), []).append(lateness_ms)
    minutes = tuple(LatenessMinute(at, summarise(by_minute[at])) for at in sorted(by_minute))
    return summarise([late for started_at, late in pairs if started_at > now - LATENESS_NOW]), minutes


def summarise(lateness_ms: Sequence[int]) -> Lateness:
    """Count, percentiles (nearest rank) and maximum."""
    if not lateness_ms:
        return Lateness()
    ordered = sorted(lateness_ms)

    def rank(share: float) -> timedelta:
        return ordered[max(ceil(share * len(ordered)), 1) - 1] * _MILLISECOND

    return Lateness(count=len(ordered), p50=rank(0.50), p99=rank(0.99), max=rank(1.0))


def read_job_counts(connection: Connection) -> tuple[int, int, tuple[QuarantinedJob, ...]]:
    """Jobs, paused jobs, and by name those in quarantine or paused by Sexton itself."""
    table = tables.jobs
    live = table.c.retired_at.is_(None)
    stopped = or_(table.c.quarantined_at.is_not(None), table.c.paused_by == SEXTON)
    total, paused, found = connection.execute(
        select(func.count(), func.count(table.c.paused_at), func.count().filter(stopped)).select_from(table).where(live)
    ).one()
    if not found:
        return total, paused, ()
    rows = connection.execute(
        select(
            *(table.c.name, table.c.quarantined_at, table.c.quarantine_reason),
            *(table.c.paused_at, table.c.pause_reason),
        )
        .where(live, stopped)
        .order_by(table.c.name)
        .limit(_LISTED)
    )
    jobs = (
        QuarantinedJob(r.name, r.quarantined_at, r.quarantine_reason or "")
        if r.quarantined_at is not None
        else QuarantinedJob(r.name, r.paused_at, r.pause_reason or "", is_paused=True)
        for r in rows
    )
    return total, paused, tuple(jobs)


def read_failing(connection: Connection, now: datetime) -> tuple[FailingJob, ...]:
    """Jobs of the newest failures of a day whose newest run failed; not those that were retired."""
    table, jobs = tables.runs, tables.jobs
    newest = (
        select(table.c.job_id, table.c.finished_at)
        .where(text("outcome IN (4, 5, 6)"), table.c.finished_at > now - timedelta(days=1))
        .order_by(table.c.finished_at.desc(), table.c.token.desc())
        .limit(_FAILURES_LOOKED_AT)
        .subquery("newest")
    )
    job_ids = connection.execute(
        select(newest.c.job_id)
        .join(jobs, jobs.c.job_id == newest.c.job_id)
        .where(jobs.c.retired_at.is_(None))
        .group_by(newest.c.job_id)
        .order_by(func.max(newest.c.finished_at).desc(), newest.c.job_id)
        .limit(_LISTED)
    ).scalars()
    found = []
    for runs in newest_runs(connection, list(job_ids), FAILURES_SEEN).values():
        ended = [run for run in runs if run.outcome is not State.READY]  # which another try follows
        failed = next((place for place, run in enumerate(ended) if run.outcome not in (4, 5, 6)), len(ended))
        if failed:
            found.append(FailingJob(ended[0].job, failed, ended[0].finished_at, ended[0].error))
    return tuple(sorted(found, key=lambda job: job.name))


def read_lost(connection: Connection, now: datetime) -> tuple[LostRun, ...]:
    """Runs of the last hour that ended as lost, newest first; among the newest ``COUNT_LIMIT`` failures."""
    runs, jobs, workers = tables.runs, tables.jobs, tables.workers
    newest = (
        select(runs.c.job_id, runs.c.scheduled_at, runs.c.worker_id, runs.c.outcome, runs.c.finished_at, runs.c.token)
        .where(text("outcome IN (4, 5, 6)"), runs.c.finished_at > now - timedelta(hours=1))
        .order_by(runs.c.finished_at.desc(), runs.c.token.desc())
        .limit(COUNT_LIMIT)
        .subquery("newest")
    )
    rows = connection.execute(
        select(newest, jobs.c.name.label("job"), workers.c.name.label("worker"))
        .select_from(newest)
        .join(jobs, jobs.c.job_id == newest.c.job_id)
        .outerjoin(workers, workers.c.worker_id == newest.c.worker_id)
        .where(newest.c.outcome == State.LOST)
        .order_by(newest.c.finished_at.desc(), newest.c.token.desc())
        .limit(_LISTED)
    )
    return tuple(
        LostRun(row.job, row.scheduled_at, row.worker or f"worker {row.worker_id}", row.finished_at) for row in rows
    )


def read_proposals(connection: Connection) -> tuple[ProposalView, ...]:
    """Open proposals, oldest first."""
    table, jobs = tables.proposals, tables.jobs
    rows = connection.execute(
        select(table, jobs.c.name)
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(table.c.state == "open")
        .order_by(table.c.made_at, table.c.proposal_id)
        .limit(100)
    )
    return tuple(
        ProposalView(r.proposal_id, r.name, r.after, r.upto, r._mapping["count"], r.made_at, r.lapses_at, r.term)
        for r in rows
    )
