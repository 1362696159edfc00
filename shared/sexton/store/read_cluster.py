"""The overview's queries: the cluster, its nodes, workers, queues and lateness, at a cost that no table's size moves.

Counts stop at ``COUNT_LIMIT`` and go by the partial indexes; ready claims are found by one seek per queue and priority;
lateness looks at no more than ``LATENESS_ROWS`` of the newest runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, Text, bindparam, func, select, text

from sexton.claims import State
from sexton.cluster_views import (
    COUNT_LIMIT,
    FAILURES_SEEN,
    NO_RULE,
    FailingJob,
    Halt,
    Lateness,
    LatenessMinute,
    NodeView,
    QueueView,
    WorkerView,
)
from sexton.queue_rules import QueueRule
from sexton.races import RaceCounts
from sexton.store import tables
from sexton.store.read_runs import newest_runs
from sexton.store.read_together import Query, read_together
from sexton.terms import servers_of

LATENESS_ROWS = 5_000
LATENESS_NOW = timedelta(minutes=5)
_FAILURES_LOOKED_AT = 1_000  # a job that fails each second hides no other one for a quarter of an hour
_LISTED = 20
_MOST_NODES = 500
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
_COUNTS = (
    text("""
    SELECT (SELECT count(*) FROM (SELECT 1 FROM claims WHERE state = 1 LIMIT :limit) r) AS running,
        (SELECT count(*) FROM (SELECT 1 FROM claims WHERE state = 2 LIMIT :limit) p) AS parked,
        (SELECT count(*) FROM (SELECT 1 FROM runs WHERE outcome IN (4, 5, 6) AND finished_at > :since
                               LIMIT :limit) f) AS failed""")
    .bindparams(bindparam("since", type_=tables.Instant()), limit=COUNT_LIMIT + 1)
    .columns(running=BigInteger(), parked=BigInteger(), failed=BigInteger())
)

RUNNING = (
    text("""
    SELECT queue, worker_id, count(*) AS running FROM (
        SELECT queue, worker_id FROM claims WHERE state = 1 LIMIT :most) busy GROUP BY queue, worker_id""")
    .bindparams(most=COUNT_LIMIT)
    .columns(queue=Text(), worker_id=BigInteger(), running=BigInteger())
)


def read_nodes(connection: Connection, now: datetime) -> tuple[NodeView, ...]:
    """Nodes heard of lately, by name."""
    return nodes_of(connection.execute(nodes_query()), now)


def nodes_query() -> Select[Any]:
    """Those that were heard of last."""
    return select(tables.nodes).order_by(tables.nodes.c.seen_at.desc()).limit(_MOST_NODES)


def nodes_of(rows: Iterable[Any], now: datetime) -> tuple[NodeView, ...]:
    """By name, without those that have been silent for long."""
    heard = (row for row in rows if row.seen_at > now - _SILENT_SHOWN)
    return tuple(_node(row, now) for row in sorted(heard, key=lambda row: str(row.name)))


def _node(row: Any, now: datetime) -> NodeView:
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


def read_halt(cluster: Any) -> Halt | None:
    """Who halted the cluster, if it is halted and that is known."""
    if not cluster.halted or cluster.halted_at is None:
        return None
    return Halt(cluster.halted_at, cluster.halted_by or "", cluster.halt_reason or "")


def read_workers(connection: Connection, now: datetime, *, stopped: bool = False) -> tuple[WorkerView, ...]:
    """Workers heard of lately, by name; `stopped` also lists those that stopped cleanly.

    Busy slots are counted, as what runs is: a worker itself says how many only with each heartbeat.
    """
    rows = connection.execute(workers_query(now, stopped=stopped)).all()
    return workers_of(rows, connection.execute(RUNNING).all(), now)


def workers_query(now: datetime, *, stopped: bool = False) -> Select[Any]:
    """Those heard of lately."""
    table = tables.workers
    query = select(table).where(table.c.seen_at > now - _SILENT_SHOWN)
    if not stopped:
        query = query.where(table.c.stopped_at.is_(None))
    return query.order_by(table.c.name, table.c.worker_id)


def workers_of(rows: Iterable[Any], counted: Iterable[Any], now: datetime) -> tuple[WorkerView, ...]:
    """By name; ``counted``: the rows of ``RUNNING``."""
    running: Counter[int] = Counter()
    for row in counted:
        running[row.worker_id] += row.running
    return tuple(
        WorkerView(
            worker_id=row.worker_id,
            name=row.name,
            address=row.address,
            version=row.version,
            pid=row.pid,
            queues=tuple(json.loads(row.queues)),
            slots=row.slots,
            busy=min(running[row.worker_id], row.slots),
            is_draining=row.draining or row.drain_requested,
            started_at=row.started_at,
            seen_at=row.seen_at,
            stopped_at=row.stopped_at,
            age=max(now - row.seen_at, timedelta(0)),
            is_drain_requested=row.drain_requested,
        )
        for row in sorted(rows, key=lambda row: (row.name, row.worker_id))
    )


@dataclass(frozen=True, slots=True)
class QueueRows:
    """What queues are made of: the rows of four queries."""

    live: Sequence[Any]
    paced: Sequence[Any]
    running: Sequence[Any]
    rules: Sequence[Any]


def read_queues(
    connection: Connection, now: datetime, workers: Sequence[WorkerView], silent_after: timedelta
) -> tuple[QueueView, ...]:
    """Every queue with claims to grant, a worker or a rule, by name. A worker silent for longer serves none."""
    queries = {**queue_queries(now), "rules": select(tables.queues)}
    return queues_of(QueueRows(**read_together(connection, queries)), now, workers, silent_after)


def queue_queries(now: datetime) -> dict[str, Any]:
    """Those of ``QueueRows`` but for the rules."""
    return {"live": _LIVE_QUEUES.bindparams(now=now), "paced": _PACED_QUEUES.bindparams(now=now), "running": RUNNING}


def queues_of(
    read: QueueRows, now: datetime, workers: Sequence[WorkerView], silent_after: timedelta
) -> tuple[QueueView, ...]:
    """As ``read_queues`` says."""
    found: dict[str, dict[str, Any]] = {}
    for rows, is_paced in ((read.live, False), (read.paced, True)):
        for row in rows:
            queue = found.setdefault(row.queue, {"due": 0, "ahead": 0, "catch_up": 0, "oldest": None})
            if is_paced:
                queue["catch_up"] += row.due + row.ahead
                continue
            queue["due"] += row.due
            queue["ahead"] += row.ahead
            if row.oldest <= now:
                queue["oldest"] = row.oldest if queue["oldest"] is None else min(queue["oldest"], row.oldest)
    serving = [w for w in workers if w.stopped_at is None and not w.is_draining and w.age <= silent_after]
    running: Counter[str] = Counter()
    for row in read.running:
        running[row.queue] += row.running
    rules = {row.name: QueueRule(row.slots, row.rate) for row in read.rules}
    names = sorted({*found, *rules, *running, *(queue for worker in serving for queue in worker.queues)})
    return tuple(
        QueueView(
            name=name,
            **found.get(name, {"due": 0, "ahead": 0, "catch_up": 0, "oldest": None}),
            workers=sum(name in worker.queues for worker in serving),
            slots=sum(worker.slots for worker in serving if name in worker.queues),
            busy=sum(worker.busy for worker in serving if name in worker.queues),
            running=running[name],
            rule=rules.get(name, NO_RULE),
        )
        for name in names
    )


def counts_query(now: datetime) -> Query:
    """Claims running, claims parked, runs failed in the last hour."""
    return _COUNTS.bindparams(since=now - timedelta(hours=1))


def lateness_query(now: datetime, since: datetime) -> Query:
    """The newest ``LATENESS_ROWS`` first tries of the last 5 minutes, and from ``since`` on.

    A retry is late by its delay, on purpose: it would hide whether ticks start in time.
    """
    table = tables.runs
    return (
        select(table.c.started_at, table.c.lateness_ms)
        .where(table.c.finished_at > min(since, now - LATENESS_NOW), table.c.attempt == 1)
        .order_by(table.c.finished_at.desc(), table.c.token.desc())
        .limit(LATENESS_ROWS)
    )


def lateness_of(rows: Iterable[Any], now: datetime, since: datetime) -> tuple[Lateness, tuple[LatenessMinute, ...]]:
    """Lateness of the last 5 minutes, and by minute from ``since`` on."""
    looked_at = list(rows)
    pairs = [(row.started_at, row.lateness_ms) for row in looked_at if row.started_at and row.lateness_ms is not None]
    by_minute: dict[datetime, list[int]] = {}
    for started_at, lateness_ms in pairs:
        if started_at >= since:
            by_minute.setdefault(started_at.replace(second=0, microsecond=0), []).append(lateness_ms)
    minutes = tuple(LatenessMinute(at, summarise(by_minute[at])) for at in sorted(by_minute))
    recent = [(started_at, late) for started_at, late in pairs if started_at > now - LATENESS_NOW]
    is_cut = len(looked_at) == LATENESS_ROWS and len(recent) == len(pairs)
    within = now - min(started_at for started_at, _ in recent) if is_cut and recent else LATENESS_NOW
    return replace(summarise([late for _, late in recent]), within=within), minutes


def summarise(lateness_ms: Sequence[int]) -> Lateness:
    """Count, percentiles (nearest rank) and maximum."""
    if not lateness_ms:
        return Lateness()
    ordered = sorted(lateness_ms)

    def rank(share: float) -> timedelta:
        return ordered[max(ceil(share * len(ordered)), 1) - 1] * _MILLISECOND

    return Lateness(count=len(ordered), p50=rank(0.50), p99=rank(0.99), max=rank(1.0))


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
