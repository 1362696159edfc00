"""What both stores write down of a refused result: who came too late, with what, under which token (invariant 4)."""

from __future__ import annotations

import json

from sexton.store.operation_rules import instant_text
from sexton.store.protocol.grants import RunResult

REFUSED = "run.refused"
TOLD_AT_ONCE = 100  # of a worker that was away for long; the counter `stale_results` has all


def refusal_detail(result: RunResult) -> str:
    """The detail of its event, as JSON."""
    return json.dumps(
        {
            "scheduled_at": instant_text(result.scheduled_at),
            "token": result.token,
            "attempt": result.attempt,
            "outcome": result.outcome.word,
            "started_at": None if result.started_at is None else instant_text(result.started_at),
            "finished_at": instant_text(result.finished_at),
        }
    )
