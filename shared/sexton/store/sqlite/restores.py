"""Cursors set by hand, on SQLite: the conditions of the PostgreSQL statements, in one BEGIN IMMEDIATE transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from sexton.cursor_moves import CursorStep
from sexton.inputs import Inputs
from sexton.store.protocol import Channel
from sexton.store.protocol.restores import CursorStands, InputsStand, LedgerMoved
from sexton.store.read_cursors import read_stands
from sexton.store.read_inputs import read_inputs, read_zone_data
from sexton.store.sqlite import accepted_inputs
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.edits import SqliteEdits
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import record_event
from sexton.store.sqlite.ticks import NEXT_CHANGE
from sexton.store.tables import to_micros

_MOVE_FORWARD = """
UPDATE cursors SET at = :to, seq = seq + 1
WHERE job_id = :job AND seq = :seq AND at = :was AND :to > :was AND :to <= :now AND NOT EXISTS (
  SELECT 1 FROM claims WHERE job_id = :job AND scheduled_at > :was AND scheduled_at <= :to AND origin <> 4)
"""
_SKIP = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at)
VALUES (:job, :was, :to, :skipped, 'skipped', :why, :revision, (SELECT term FROM cluster WHERE id = 1), :now)
"""
_MOVE_BACK = """
UPDATE cursors SET at = :to, seq = seq + 1
WHERE job_id = :job AND seq = :seq AND at = :was AND :to < :was
  AND NOT EXISTS (SELECT 1 FROM claims WHERE job_id = :job AND scheduled_at > :to AND origin <> 4
    AND (attempt > 0 OR state IN (1, 11) OR origin NOT IN (0, 1)))
  AND NOT EXISTS (SELECT 1 FROM skips WHERE job_id = :job AND upto > :to AND resolved_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM proposals WHERE job_id = :job AND upto > :to AND state = 'open')
  AND NOT EXISTS (SELECT 1 FROM skips WHERE job_id = :job AND after < :to AND upto > :to AND after IS NOT :cut_after)
"""
_WITHDRAW = "DELETE FROM claims WHERE job_id = :job AND scheduled_at > :to AND origin IN (0, 1) AND attempt = 0"
_REMOVE = "DELETE FROM skips WHERE job_id = :job AND after >= :to"
_CUT = "UPDATE skips SET upto = :to, count = :cut_count WHERE job_id = :job AND after = :cut_after AND upto > :to"
_CLOSE = "DELETE FROM proposals WHERE job_id = :job AND after >= :to"


class SqliteRestores:
    """Implements ``RestoreStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def settle(self, node: str) -> LedgerMoved | None:
        """None: a SQLite file has no place, and is restored while nothing runs."""
        return None

    def cursor_stands(self, to: datetime | None = None, job_ids: Sequence[int] | None = None) -> CursorStands:
        with self._connection.reading() as reading:
            return read_stands(reading, self._connection.now(), to, job_ids)

    def inputs(self) -> InputsStand:
        with self._connection.reading() as reading:
            return read_inputs(reading, self._connection.now())

    def zone_data(self, version: str) -> bytes | None:
        with self._connection.reading() as reading:
            return read_zone_data(reading, version)

    def keep_zone_data(self, version: str, packed: bytes) -> None:
        with self._connection.transaction() as connection:
            connection.execute("INSERT INTO zone_data VALUES (?, ?) ON CONFLICT DO NOTHING", [version, packed])

    def accept_inputs(self, stand: InputsStand, accepted: Inputs, changed: Collection[int], actor: str) -> None:
        edits, now = SqliteEdits(self._connection), self._connection.now()
        accepted_inputs.accept_inputs(edits, now, stand, accepted, changed, actor)

    def step_cursors(self, steps: Sequence[CursorStep], actor: str, why: str) -> frozenset[int]:
        moved = []
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            for step in steps:
                if _step(connection, step, now, actor, why):
                    moved.append(step.job_id)
            notify(self._connection, connection, Channel.JOBS)
        return frozenset(moved)


def _step(connection: sqlite3.Connection, step: CursorStep, now: int, actor: str, why: str) -> bool:
    values = {
        "job": step.job_id,
        "seq": step.seq,
        "was": to_micros(step.was),
        "to": to_micros(step.to),
        "skipped": step.skipped,
        "revision": step.revision,
        "cut_after": None if step.cut is None else to_micros(step.cut.after),
        "cut_count": None if step.cut is None else step.cut.count,
        "why": why,
        "now": now,
    }
    if connection.execute(_MOVE_FORWARD if step.is_forward else _MOVE_BACK, values).rowcount != 1:
        return False
    detail: dict[str, object] = {"job": step.name, "from": _iso(step.was), "to": _iso(step.to), "why": why}
    if step.is_forward:
        connection.execute(_SKIP, values)
        detail["skipped"] = step.skipped
    else:
        detail["withdrawn"] = connection.execute(_WITHDRAW, values).rowcount
        for statement in (_REMOVE, _CUT, _CLOSE):
            connection.execute(statement, values)
    ((changed,),) = connection.execute(NEXT_CHANGE).fetchall()
    connection.execute("UPDATE jobs SET changed = ? WHERE job_id = ?", [changed, step.job_id])
    record_event(connection, now, actor, "cursor.set", detail, step.job_id)
    return True


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
