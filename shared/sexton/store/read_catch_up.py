"""The catch-up read: what waits under its budget, at a cost that stops at ``MOST`` claims whatever the tables hold."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, Text, bindparam, select, text

from sexton.catch_up import CatchUp, CatchUpRead, Load, Room, catch_up_at, paced_slots
from sexton.claims import Origin, Overlap, State
from sexton.settings import settings_from_rows
from sexton.store import tables
from sexton.store.known_members import member_of
from sexton.store.read_cluster import read_workers
from sexton.store.read_standing import read_durations

MOST = 100_000
_JOBS_ASKED = 100  # those with the most claims; the others are taken to run as long in the mean
_RUNS = 20

# The conditions of the indexes claims_ready_paced and claims_parked, word for word: else neither database uses them.
_WAITING = (
    text("""
    SELECT job_id, slot, overlap, origin, queue, state, count(*) AS number, max(available_at) AS upto FROM (
      SELECT * FROM (
        SELECT job_id, slot, overlap, origin, queue, state, available_at FROM claims
        WHERE state = 0 AND NOT blocked AND origin IN (1, 2, 3)
        ORDER BY queue, priority, available_at LIMIT :most) ready
      UNION ALL
      SELECT job_id, slot, overlap, origin, queue, state, available_at FROM (
        SELECT * FROM claims WHERE state = 2 ORDER BY slot, scheduled_at LIMIT :most) parked
      WHERE origin IN (1, 2, 3) AND NOT blocked) waiting
    GROUP BY job_id, slot, overlap, origin, queue, state""")
    .bindparams(bindparam("most", value=MOST + 1))
    .columns(queue=Text(), number=BigInteger(), upto=tables.Instant())
)
_RUNNING = text("SELECT count(*) FROM (SELECT 1 FROM claims WHERE state = 1 AND origin IN (1, 2, 3) LIMIT :most) r")


def read_catch_up(connection: Connection, now: datetime) -> CatchUp:
    """The budget and what it paces."""
    settings = settings_from_rows({row.key: row.value for row in connection.execute(select(tables.settings))})
    running = connection.execute(_RUNNING, {"most": MOST}).scalar_one()
    rows = connection.execute(_WAITING).all()
    rooms, slots = _rooms(connection, now, settings.lease)
    usual = _usual_runs(connection, now, rows)
    read = CatchUpRead(
        loads=tuple(_load(row, usual) for row in rows),
        running=running,
        parked=sum(row.number for row in rows if row.state == State.PARKED),
        is_whole=sum(row.number for row in rows) <= MOST,
        sizes=_sizes(connection) if any(row.slot < 0 for row in rows) else {},
        rooms=rooms,
        slots=slots,
    )
    return catch_up_at(now, settings.catch_up_rate, settings.catch_up_concurrency, read)


def _load(row: Row[Any], usual: dict[int, timedelta]) -> Load:
    slot = None if row.overlap == Overlap.ALLOW else row.slot
    return Load(member_of(Origin, row.origin), row.queue, row.number, row.upto, slot, usual.get(row.job_id))


def _usual_runs(connection: Connection, now: datetime, rows: Any) -> dict[int, timedelta]:
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row.job_id] += row.number
    jobs = sorted(job_id for job_id, _ in counts.most_common(_JOBS_ASKED))
    found = read_durations(connection, now, jobs, _RUNS)
    return {job_id: sum(lasted, timedelta(0)) / len(lasted) for job_id, lasted in found.items() if lasted}


def _rooms(connection: Connection, now: datetime, silent_after: timedelta) -> tuple[dict[str, Room], int]:
    """By queue how many paced claims its workers take at once, under its rule; and how many all workers take."""
    workers = [one for one in read_workers(connection, now) if not one.is_draining and one.age <= silent_after]
    slots: Counter[str] = Counter()
    for worker in workers:
        slots.update(dict.fromkeys(worker.queues, paced_slots(worker.slots)))
    rules = {row.name: row for row in connection.execute(select(tables.queues))}
    rooms = {}
    for queue, number in slots.items():
        rule = rules.get(queue)
        at_once = number if rule is None or rule.slots is None else min(number, rule.slots)
        rooms[queue] = Room(at_once, None if rule is None else rule.rate)
    return rooms, sum(paced_slots(worker.slots) for worker in workers)


def _sizes(connection: Connection) -> dict[int, int]:
    groups = connection.execute(select(tables.slot_groups.c.group_id, tables.slot_groups.c.size))
    return {-row.group_id: row.size for row in groups}
