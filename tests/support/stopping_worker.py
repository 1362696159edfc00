"""A worker process that stops itself (SIGSTOP) after so many messages to PostgreSQL of one step, for tests.

    python -m tests.support.stopping_worker URL STATEMENTS

It pulls once from the queue `queue-STATEMENTS`, then takes a second step with the results of the first, in which it
stops behind its STATEMENTS-th statement (counted from 1). When it is continued it prints one line: `accepted N of M`
or `unreachable`.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from sexton.claims import State
from sexton.errors import DatabaseUnreachable
from sexton.store import open_store
from sexton.store.protocol import RunResult, StepRequest, StoreOptions

LEASE = timedelta(seconds=3)
ROOM = 7


def main(url: str, statements: int) -> None:
    store = open_store(StoreOptions(url))
    worker_id, queues = 100 + statements, (f"queue-{statements}",)
    pulled = store.grants.step(StepRequest(worker_id, queues, ROOM, LEASE, 100))
    results = tuple(
        RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, datetime.now(UTC))
        for grant in pulled.grants
    )
    stop_behind(statements)
    try:
        step = store.grants.step(StepRequest(worker_id, queues, ROOM, LEASE, 100, results))
    except DatabaseUnreachable:
        print("unreachable")  # noqa: T201 - what the test reads
        return
    print(f"accepted {len(step.accepted)} of {len(results)}")  # noqa: T201 - what the test reads


def stop_behind(statements: int) -> None:
    """Stop this process once so many more statements were sent."""
    left = statements
    execute = psycopg.Cursor.execute

    def stopping(cursor: Any, *arguments: Any, **keywords: Any) -> Any:
        nonlocal left
        answer = execute(cursor, *arguments, **keywords)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        return answer

    psycopg.Cursor.execute = stopping  # type: ignore[method-assign, assignment]  # every statement goes through here


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
