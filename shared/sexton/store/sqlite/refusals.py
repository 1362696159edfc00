"""Refused results as events, on SQLite: `sexton.store.postgres.refusals` in one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sexton.store.protocol.grants import RunResult
from sexton.store.refusals import REFUSED, TOLD_AT_ONCE, refusal_detail
from sexton.store.tables import to_micros

if TYPE_CHECKING:
    from sexton.store.sqlite.connection import SqliteConnection

_NOTE = """INSERT INTO events (at, actor, action, job_id, detail)
SELECT ?1, coalesce((SELECT name FROM workers WHERE worker_id = ?2), 'worker ' || ?2), ?3, ?4, ?5
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE token = ?6 AND finished_at = ?7)"""


def note_refused(store: SqliteConnection, worker_id: int, results: Sequence[RunResult]) -> int:
    """``OperationStore.note_refused``."""
    with store.transaction() as connection:
        now = store.now_micros()
        return sum(
            connection.execute(
                _NOTE,
                (
                    *(now, worker_id, REFUSED, result.job_id, refusal_detail(result)),
                    *(result.token, to_micros(result.finished_at)),
                ),
            ).rowcount
            for result in results[:TOLD_AT_ONCE]
        )
