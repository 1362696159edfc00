"""Refused results as events, on PostgreSQL: one statement, outside of the step that refused them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sexton.store.protocol.grants import RunResult
from sexton.store.refusals import REFUSED, TOLD_AT_ONCE, refusal_detail

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

# A result that was sent again because the answer was lost is refused too, and has counted: its run is there.
_NOTE = b"""INSERT INTO events (at, actor, action, job_id, detail)
SELECT clock_timestamp(),
  coalesce((SELECT name FROM workers WHERE worker_id = %(worker)s), 'worker ' || %(worker)s::text),
  %(action)s, d.job_id, d.detail
FROM unnest(%(jobs)s::bigint[], %(tokens)s::bigint[], %(finished)s::timestamptz[], %(details)s::text[])
  d(job_id, token, finished_at, detail)
WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.token = d.token AND r.finished_at = d.finished_at)"""


def note_refused(store: PostgresConnection, worker_id: int, results: Sequence[RunResult]) -> int:
    """``OperationStore.note_refused``."""
    told = results[:TOLD_AT_ONCE]
    values = {
        "worker": worker_id,
        "action": REFUSED,
        "jobs": [result.job_id for result in told],
        "tokens": [result.token for result in told],
        "finished": [result.finished_at for result in told],
        "details": [refusal_detail(result) for result in told],
    }
    with store.autocommit() as connection:
        return connection.execute(_NOTE, values, prepare=False).rowcount
