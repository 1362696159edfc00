"""Pauses of all, resumes with what was missed, ticks named ahead, on SQLite: each one edit, in its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

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
from sexton.store.protocol.edits import ChangeDone, ChangeKind, EditConditions, JobChange, PauseSeen
from sexton.store.protocol.pauses import AllChanged
from sexton.store.sqlite.backfills import draw_starts, write_resolution
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.edits import SqliteEdits
from sexton.store.sqlite.terms import record_event
from sexton.store.tables import from_micros, to_micros

_STANDING = "SELECT since, who, why FROM pause_of_all WHERE id = 1"
_RUNNING = "SELECT job_id FROM jobs WHERE paused_at IS NULL AND retired_at IS NULL ORDER BY job_id LIMIT ?"
_WITH_ALL = "SELECT job_id FROM jobs WHERE paused_with_all AND retired_at IS NULL ORDER BY job_id LIMIT ?"
_PAUSE = "INSERT INTO pause_of_all (id, since, who, why) VALUES (1, ?, ?, ?) ON CONFLICT DO NOTHING"
_RESUME = "DELETE FROM pause_of_all WHERE id = 1 AND since = coalesce(?, since)"
_IS_PAUSED = "SELECT paused_at IS NOT NULL FROM jobs WHERE job_id = ?"
# The routine has raised `seq` by one.
_AS_PLANNED = "SELECT at FROM cursors WHERE job_id = ? AND seq = ? + 1"
_END_PAUSE = """
UPDATE pauses SET until = :end WHERE job_id = :job AND until = :effective AND since <= :end
  AND since = (SELECT max(since) FROM pauses WHERE job_id = :job)
"""
_PROPOSE = """
INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, made_at, term, reason)
SELECT :job, :revision, :after, :upto, :count, :within, :lapses, :now, term, :reason FROM cluster WHERE id = 1
"""
_DECIDE = """
INSERT INTO decisions (job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held,
  reason, term, decided_at)
SELECT :job, :revision, :cause, :after, :upto, :policy, :missed, :fired, :merged, :skipped, :expired, :held, :reason,
  term, :now FROM cluster WHERE id = 1
ON CONFLICT DO NOTHING
"""
_AHEAD_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, start_by,
  at_most_once, jitter_ms, term, written_at)
SELECT j.job_id, :tick, :revision, 0, :queue, :priority, :overlap, coalesce(j.slot, j.job_id), :available, :start_by,
  :once, :jitter, c.term, :now
FROM jobs j, cluster c WHERE j.job_id = :job AND j.paused_at IS NULL AND c.id = 1
"""
_AHEAD_SKIP = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at, named_by)
SELECT j.job_id, :after, :tick, 1, 'skipped', :detail, j.revision, c.term, :now, :who
FROM jobs j, cluster c WHERE j.job_id = :job AND c.id = 1
"""
_MOVE = "UPDATE cursors SET at = ? WHERE job_id = ?"


class SqlitePauses:
    """Implements ``PauseStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self._edits = SqliteEdits(connection)

    # --- of all -------------------------------------------------------------------------------------

    def pause_of_all(self) -> PauseOfAll | None:
        with self._connection.snapshot() as connection:
            return _standing(connection)

    def paused_with_all(self) -> tuple[int, ...]:
        return self._job_ids(_WITH_ALL, -1)

    def pause_all(self, actor: str, why: str) -> AllChanged:
        def also(connection: sqlite3.Connection, _: Mapping[int, int]) -> None:
            now = self._connection.now_micros()
            if connection.execute(_PAUSE, [now, actor, why]).rowcount:
                record_event(connection, now, actor, "cluster.paused", all_detail(why))

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

        def also(connection: sqlite3.Connection, _: Mapping[int, int]) -> None:
            if connection.execute(_RESUME, [None if expected is None else to_micros(expected.since)]).rowcount:
                now = self._connection.now_micros()
                record_event(connection, now, actor, "cluster.resumed", all_detail(""))
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

    def _job_ids(self, statement: str, limit: int) -> tuple[int, ...]:
        with self._connection.snapshot() as connection:
            return tuple(row[0] for row in connection.execute(statement, [limit]))

    # --- of one -------------------------------------------------------------------------------------

    def resume_missed(
        self,
        resolution: Resolution,
        actor: str,
        *,
        with_all: bool = False,
        expected: PauseSeen | PauseOfAll | None = None,
    ) -> ChangeDone | None:
        job_id = resolution.job_id

        def also(connection: sqlite3.Connection, effective_at: Mapping[int, int]) -> None:
            now = self._connection.now_micros()
            if isinstance(expected, PauseOfAll) and (standing := _standing(connection)) != expected:
                raise another_of_all(standing)
            if with_all and connection.execute(_IS_PAUSED, [job_id]).fetchone() != (False,):
                raise kept_on_its_own(resolution.name)
            if _cursor_as_planned(connection, job_id, resolution.seq) != resolution.at:
                raise LedgerMoved
            starts = draw_starts(connection, len(resolution.order), now)
            values = {"said": said_of_pause(actor), "blocked": False, "actor": actor, "now": now}
            write_resolution(connection, resolution, starts, values)
            end = {"job": job_id, "effective": effective_at[job_id], "end": to_micros(pause_end(resolution))}
            connection.execute(_END_PAUSE, end)
            for one in resolution.proposals:
                connection.execute(_PROPOSE, {"now": now, **_in_micros(proposal_values(one))})
            if resolution.decision is not None:
                connection.execute(_DECIDE, {"now": now, **_in_micros(decision_values(resolution.decision))})

        why = "" if resolution.decision is None else resolution.decision.reason
        seen = expected if isinstance(expected, PauseSeen) else None
        change = JobChange(ChangeKind.RESUME, job_id, why=why, with_all=with_all, expected_pause=seen)
        try:
            (done,) = self._edits.edit_also([change], actor, None, also)
        except LedgerMoved:
            return None
        return done

    def skip_ahead(self, plan: AheadPlan, actor: str, why: str) -> ChangeDone | None:
        def also(connection: sqlite3.Connection, effective_at: Mapping[int, int]) -> None:
            effective = from_micros(effective_at[plan.job_id])
            cursor = _cursor_as_planned(connection, plan.job_id, plan.seq)
            if plan.changed <= effective:
                raise not_ahead(plan, effective)
            rows = None if cursor is None else rows_after(plan, effective, cursor)
            if rows is None:
                raise LedgerMoved
            _write_ahead(connection, plan, rows, self._connection.now_micros())

        change = JobChange(ChangeKind.SKIP, plan.job_id, why=why)
        try:
            (done,) = self._edits.edit_also([change], actor, EditConditions(inputs_id=own_inputs().inputs_id), also)
        except LedgerMoved:
            return None
        return done


def _standing(connection: sqlite3.Connection) -> PauseOfAll | None:
    row = connection.execute(_STANDING).fetchone()
    return None if row is None else PauseOfAll(from_micros(row[0]), row[1], row[2])


def _cursor_as_planned(connection: sqlite3.Connection, job_id: int, seq: int) -> datetime | None:
    """The cursor, stepped back by this edit; None where another edit was before it."""
    row = connection.execute(_AS_PLANNED, [job_id, seq]).fetchone()
    return None if row is None else from_micros(row[0])


def _write_ahead(connection: sqlite3.Connection, plan: AheadPlan, rows: AheadRows, now: int) -> None:
    common = {"job": plan.job_id, "now": now}
    for claim in rows.claims:
        instants = {"tick": claim.scheduled_at, "available": claim.available_at, "start_by": start_by_of(claim)}
        values = {"revision": claim.revision, "jitter": jitter_ms(claim.jitter), **ahead_rules(claim.firing)}
        connection.execute(_AHEAD_CLAIM, {**common, **values, **_in_micros(instants)})
    for after, named in rows.skips:
        values = {"after": after, "tick": named.tick, "detail": named.detail, "who": named.who}
        connection.execute(_AHEAD_SKIP, {**common, **_in_micros(values)})
    if rows.at is not None:
        connection.execute(_MOVE, [to_micros(rows.at), plan.job_id])


def _in_micros(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: to_micros(value) if isinstance(value, datetime) else value for key, value in values.items()}
