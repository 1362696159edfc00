"""Pauses of all, resumes with what was missed, ticks named ahead, on PostgreSQL: implements `protocol.PauseStore`.

Each is an edit (`edits`), and writes what is its own in the edit's transaction, under the same locks. Who is paused
with all is known per job; that all are paused is a row, which edits of definitions read once they hold the lock under
which edits commit one after the other: a job is seen by the pause of all, or sees it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from sexton.cluster_views import PauseOfAll
from sexton.errors import NotFound
from sexton.inputs import own_inputs
from sexton.pause_missed import pause_end
from sexton.resolutions import Resolution
from sexton.skip_ahead import AheadPlan, AheadRows, rows_after
from sexton.store.backfill_values import LedgerMoved, jitter_ms
from sexton.store.pause_rules import (
    AT_ONCE,
    ahead_rules,
    all_detail,
    another_of_all,
    decision_values,
    kept_on_its_own,
    not_ahead,
    proposal_values,
    said_of_pause,
    start_by_of,
)
from sexton.store.postgres import arrays, budget
from sexton.store.postgres.backfills import claim_values, write_resolution
from sexton.store.postgres.edits import PostgresEdits
from sexton.store.protocol.edits import ChangeDone, ChangeKind, EditConditions, JobChange, PauseSeen
from sexton.store.protocol.pauses import AllChanged

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_STANDING = "SELECT since, who, why FROM pause_of_all WHERE id = 1"
_RUNNING = "SELECT job_id FROM jobs WHERE paused_at IS NULL AND retired_at IS NULL ORDER BY job_id LIMIT %s"
_WITH_ALL = "SELECT job_id FROM jobs WHERE paused_with_all AND retired_at IS NULL ORDER BY job_id LIMIT %s"
_PAUSE = """
INSERT INTO pause_of_all (id, since, who, why) VALUES (1, clock_timestamp(), %s, %s) ON CONFLICT DO NOTHING
"""
_RESUME = "DELETE FROM pause_of_all WHERE id = 1 AND since = coalesce(%s, since)"
_IS_PAUSED = "SELECT paused_at IS NOT NULL FROM jobs WHERE job_id = %s"
_EVENT = "INSERT INTO events (at, actor, action, job_id, detail) VALUES (clock_timestamp(), %s, %s, %s, %s)"
# The routine has locked the cursor, and raised its `seq` by one.
_AS_PLANNED = "SELECT at FROM cursors WHERE job_id = %s AND seq = %s + 1"
_END_PAUSE = """
UPDATE pauses SET until = %(end)s WHERE job_id = %(job)s AND until = %(effective)s AND since <= %(end)s
  AND since = (SELECT max(since) FROM pauses WHERE job_id = %(job)s)
"""
_PROPOSE = """
INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, made_at, term, reason)
SELECT %(job)s, %(revision)s, %(after)s, %(upto)s, %(count)s, %(within)s, %(lapses)s, clock_timestamp(), c.term,
  %(reason)s
FROM cluster c WHERE c.id = 1
"""
_DECIDE = """
INSERT INTO decisions (job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held,
  reason, term, decided_at)
SELECT %(job)s, %(revision)s, %(cause)s, %(after)s, %(upto)s, %(policy)s, %(missed)s, %(fired)s, %(merged)s,
  %(skipped)s, %(expired)s, %(held)s, %(reason)s, c.term, clock_timestamp() FROM cluster c WHERE c.id = 1
ON CONFLICT DO NOTHING
"""
_AHEAD_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, start_by,
  at_most_once, jitter_ms, term, written_at)
SELECT j.job_id, t.scheduled_at, %(revision)s, 0, %(queue)s, %(priority)s, %(overlap)s, coalesce(j.slot, j.job_id),
  t.available_at, t.start_by, %(once)s, t.jitter_ms, c.term, clock_timestamp()
FROM unnest(%(ticks)s::timestamptz[], %(available)s::timestamptz[], %(start_by)s::timestamptz[], %(jitter)s::integer[])
    t(scheduled_at, available_at, start_by, jitter_ms), jobs j, cluster c
WHERE j.job_id = %(job)s AND j.paused_at IS NULL AND c.id = 1
"""
_AHEAD_SKIP = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, named_by)
SELECT j.job_id, %(after)s, %(tick)s, 1, 'skipped', %(detail)s, j.revision, c.term, clock_timestamp(), %(who)s
FROM jobs j, cluster c WHERE j.job_id = %(job)s AND c.id = 1
"""
_MOVE = "UPDATE cursors SET at = %s WHERE job_id = %s"


class PostgresPauses:
    """Implements ``PauseStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._edits = PostgresEdits(connection)

    # --- of all -------------------------------------------------------------------------------------

    def pause_of_all(self) -> PauseOfAll | None:
        with self._connection.autocommit() as connection:
            return _standing(connection)

    def paused_with_all(self) -> tuple[int, ...]:
        return self._job_ids(_WITH_ALL, None)

    def pause_all(self, actor: str, why: str) -> AllChanged:
        def also(connection: psycopg.Connection[Any], _: Mapping[int, datetime]) -> None:
            if connection.execute(_PAUSE, [actor, why]).rowcount:
                connection.execute(_EVENT, [actor, "cluster.paused", None, json.dumps(all_detail(why))])

        done: list[ChangeDone] = []
        while (job_ids := self._job_ids(_RUNNING, AT_ONCE)) or self.pause_of_all() is None:
            changes = [JobChange(ChangeKind.PAUSE, job_id, why=why, with_all=True) for job_id in job_ids]
            try:
                done += self._edits.edit_also(changes, actor, None, also)
            except NotFound:  # one was retired meanwhile
                continue
        return AllChanged(self.pause_of_all(), tuple(done))

    def resume_all(self, actor: str, expected: PauseOfAll | None = None) -> AllChanged:
        is_ended = False  # by an earlier part of this call

        def also(connection: psycopg.Connection[Any], _: Mapping[int, datetime]) -> None:
            if connection.execute(_RESUME, [None if expected is None else expected.since]).rowcount:
                connection.execute(_EVENT, [actor, "cluster.resumed", None, json.dumps(all_detail(""))])
            elif expected is not None and ((standing := _standing(connection)) is not None or not is_ended):
                raise another_of_all(standing)

        pause = self.pause_of_all()
        done: list[ChangeDone] = []
        while (
            (job_ids := self._job_ids(_WITH_ALL, AT_ONCE))
            or (expected is not None and not is_ended)
            or self.pause_of_all() is not None
        ):
            changes = [JobChange(ChangeKind.RESUME, job_id, with_all=True) for job_id in job_ids]
            try:
                done += self._edits.edit_also(changes, actor, None, also)
            except NotFound:
                continue
            is_ended = True
        return AllChanged(pause, tuple(done))

    def _job_ids(self, statement: str, limit: int | None) -> tuple[int, ...]:
        with self._connection.autocommit() as connection:
            return tuple(row[0] for row in connection.execute(statement.encode(), [limit]))

    # --- of one -------------------------------------------------------------------------------------

    def resume_missed(
        self,
        resolution: Resolution,
        actor: str,
        *,
        with_all: bool = False,
        expected: PauseSeen | PauseOfAll | None = None,
    ) -> ChangeDone | None:
        planned = budget.planned(self._connection, len(resolution.order))
        values = claim_values(resolution, planned, said_of_pause(actor))
        job_id = resolution.job_id

        def also(connection: psycopg.Connection[Any], effective_at: Mapping[int, datetime]) -> None:
            if isinstance(expected, PauseOfAll) and (standing := _standing(connection)) != expected:
                raise another_of_all(standing)
            if with_all and connection.execute(_IS_PAUSED, [job_id]).fetchone() != (False,):
                raise kept_on_its_own(resolution.name)
            if _cursor_as_planned(connection, job_id, resolution.seq) != resolution.at:
                raise LedgerMoved
            write_resolution(connection, resolution, {**values, "blocked": False, "actor": actor})
            end = {"job": job_id, "effective": effective_at[job_id], "end": pause_end(resolution)}
            connection.execute(_END_PAUSE, end)
            _write_decision(connection, resolution)

        why = "" if resolution.decision is None else resolution.decision.reason
        seen = expected if isinstance(expected, PauseSeen) else None
        change = JobChange(ChangeKind.RESUME, job_id, why=why, with_all=with_all, expected_pause=seen)
        try:
            (done,) = self._edits.edit_also([change], actor, None, also)
        except LedgerMoved:
            return None
        return done

    def skip_ahead(self, plan: AheadPlan, actor: str, why: str) -> ChangeDone | None:
        def also(connection: psycopg.Connection[Any], effective_at: Mapping[int, datetime]) -> None:
            effective = effective_at[plan.job_id]
            cursor = _cursor_as_planned(connection, plan.job_id, plan.seq)
            if plan.changed <= effective:
                raise not_ahead(plan, effective)
            rows = None if cursor is None else rows_after(plan, effective, cursor)
            if rows is None:
                raise LedgerMoved
            _write_ahead(connection, plan, rows)

        change = JobChange(ChangeKind.SKIP, plan.job_id, why=why)
        try:
            (done,) = self._edits.edit_also([change], actor, EditConditions(inputs_id=own_inputs().inputs_id), also)
        except LedgerMoved:
            return None
        return done


def _standing(connection: psycopg.Connection[Any]) -> PauseOfAll | None:
    row = connection.execute(_STANDING).fetchone()
    return None if row is None else PauseOfAll(*row)


def _cursor_as_planned(connection: psycopg.Connection[Any], job_id: int, seq: int) -> datetime | None:
    """The cursor, stepped back by this edit; None where another edit was before it."""
    row = connection.execute(_AS_PLANNED, [job_id, seq]).fetchone()
    return None if row is None else row[0]


def _write_decision(connection: psycopg.Connection[Any], resolution: Resolution) -> None:
    for one in resolution.proposals:
        connection.execute(_PROPOSE, proposal_values(one))
    if resolution.decision is not None:
        connection.execute(_DECIDE, decision_values(resolution.decision))


def _write_ahead(connection: psycopg.Connection[Any], plan: AheadPlan, rows: AheadRows) -> None:
    arrays.register(connection)
    if rows.claims:
        values = {
            "job": plan.job_id,
            "revision": rows.claims[0].revision,
            **ahead_rules(rows.claims[0].firing),
            "ticks": arrays.instants([claim.scheduled_at for claim in rows.claims]),
            "available": arrays.instants([claim.available_at for claim in rows.claims]),
            "start_by": arrays.instants([start_by_of(claim) for claim in rows.claims]),
            "jitter": arrays.ints([jitter_ms(claim.jitter) for claim in rows.claims]),
        }
        if connection.execute(_AHEAD_CLAIM, values).rowcount != len(rows.claims):
            raise LedgerMoved
    for after, named in rows.skips:
        values = {"job": plan.job_id, "after": after, "tick": named.tick, "detail": named.detail, "who": named.who}
        connection.execute(_AHEAD_SKIP, values)
    if rows.at is not None:
        connection.execute(_MOVE, [rows.at, plan.job_id])
