"""A worker and a queue as a screen polls them, opened: two statements each, whatever the sizes of the tables."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, select, text

from sexton.cluster_views import COUNT_LIMIT, QueueView
from sexton.errors import NotFound
from sexton.member_views import OpenedQueue, OpenedWorker, PriorityDepth
from sexton.settings import settings_from_rows
from sexton.store import tables
from sexton.store.read_cluster import (
    RUNNING,
    QueueRows,
    queues_of,
    workers_of,
    workers_query,
)
from sexton.store.read_runs import claim_view, select_claims
from sexton.store.read_together import Query, read_together
from sexton.views import ClaimView

_LISTED = 200
# The conditions of the indexes claims_ready and claims_ready_paced, word for word: else neither database uses them.
_LIVE = "state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3))"
_PACED = "state = 0 AND NOT blocked AND origin IN (1, 2, 3)"


def _depths_query(ready: str, name: str, now: datetime) -> Query:
    """How much of a queue is due and ahead, priority by priority: a seek for each."""
    of_priority = f"FROM claims c WHERE {ready} AND c.queue = :queue AND c.priority = p.priority"
    counted = f"SELECT 1 {of_priority} AND c.available_at"
    statement = f"""
    WITH RECURSIVE p(priority) AS (
        SELECT min(c.priority) FROM claims c WHERE {ready} AND c.queue = :queue
        UNION ALL
        SELECT (SELECT min(c.priority) FROM claims c WHERE {ready} AND c.queue = :queue AND c.priority > p.priority)
        FROM p WHERE p.priority IS NOT NULL
    )
    SELECT :queue AS queue, p.priority, (SELECT min(c.available_at) {of_priority}) AS oldest,
        (SELECT count(*) FROM ({counted} <= :now ORDER BY c.available_at LIMIT {COUNT_LIMIT + 1}) due) AS due,
        (SELECT count(*) FROM ({counted} > :now ORDER BY c.available_at LIMIT {COUNT_LIMIT + 1}) ahead) AS ahead
    FROM p WHERE p.priority IS NOT NULL"""  # noqa: S608 - built from the constants above
    return (
        text(statement)
        .bindparams(bindparam("now", now, type_=tables.Instant()), bindparam("queue", name, type_=Text()))
        .columns(queue=Text(), priority=BigInteger(), oldest=tables.Instant(), due=BigInteger(), ahead=BigInteger())
    )


def read_opened_worker(connection: Connection, now: datetime, name: str) -> OpenedWorker:
    """Raises ``NotFound`` where no worker of that name was heard of lately."""
    rows = connection.execute(workers_query(now, stopped=True).where(tables.workers.c.name == name)).all()
    if not rows:
        hint = "`sexton workers` lists those that were"
        raise NotFound(f"worker {name!r} was not heard of in the last 10 minutes", hint=hint)
    claims, ids = tables.claims, [row.worker_id for row in rows]
    held = select_claims().where(text("state = 1"), claims.c.worker_id.in_(ids)).order_by(claims.c.granted_at)
    found = connection.execute(held.limit(_LISTED)).all()
    running = Counter(row.worker_id for row in found)
    counted = [SimpleNamespace(worker_id=worker_id, running=number) for worker_id, number in running.items()]
    workers = workers_of(rows, counted, now)
    return OpenedWorker(
        tuple(sorted(workers, key=lambda worker: worker.worker_id, reverse=True)), tuple(map(claim_view, found))
    )


def read_opened_queue(connection: Connection, now: datetime, name: str) -> OpenedQueue:
    """Raises ``NotFound`` where nothing speaks of a queue of that name."""
    queries: dict[str, Any] = {
        "live": _depths_query(_LIVE, name, now),
        "paced": _depths_query(_PACED, name, now),
        "running": RUNNING,
        "rules": select(tables.queues),
        "workers": workers_query(now),
        "settings": select(tables.settings.c.key, tables.settings.c.value),
    }
    found = read_together(connection, queries)
    workers = workers_of(found["workers"], found["running"], now)
    rows = QueueRows(found["live"], found["paced"], found["running"], found["rules"])
    lease = settings_from_rows({row.key: row.value for row in found["settings"]}).lease
    queue = next((one for one in queues_of(rows, now, workers, lease) if one.name == name), None)
    if queue is None:
        hint = "`sexton queues` lists those that have"
        raise NotFound(f"queue {name!r} has neither claims nor workers nor a rule now", hint=hint)
    depths = tuple(
        PriorityDepth(row.priority, is_paced, row.due, row.ahead, row.oldest)
        for is_paced, of_kind in ((False, found["live"]), (True, found["paced"]))
        for row in sorted(of_kind, key=lambda row: int(row.priority))
    )
    return OpenedQueue(
        queue, depths, tuple(one for one in workers if name in one.queues), _waiting(connection, now, queue, depths)
    )


def _waiting(
    connection: Connection, now: datetime, queue: QueueView, depths: tuple[PriorityDepth, ...]
) -> tuple[ClaimView, ...]:
    """The claims that are due, of the priorities that have some, in the order of granting."""
    claims, found = tables.claims, list[ClaimView]()
    for depth in depths:
        if depth.due and len(found) < _LISTED:
            ready = text(_PACED if depth.is_paced else _LIVE)
            of_depth = (claims.c.queue == queue.name, claims.c.priority == depth.priority, claims.c.available_at <= now)
            due = select_claims().where(ready, *of_depth).order_by(claims.c.available_at)
            found += map(claim_view, connection.execute(due.limit(_LISTED - len(found))))
    return tuple(found)
