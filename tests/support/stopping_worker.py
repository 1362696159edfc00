"""Worker processes that stop themselves (SIGSTOP) after so many messages to PostgreSQL of one step, for tests.

    python -m tests.support.stopping_worker URL

For each number of STATEMENTS that comes in on a line it forks a worker and prints `started STATEMENTS PID`. That worker
pulls once from the queue `queue-STATEMENTS`, then takes a second step with the results of the first, in which it
stops behind its STATEMENTS-th statement (counted from 1). When it is continued it prints one line: `ended STATEMENTS
accepted N of M` or `ended STATEMENTS unreachable`. All are forked from one program, so that ten cost no more than one.
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


def tell(line: str) -> None:
    """In one write: several processes share the pipe."""
    os.write(1, f"{line}\n".encode())


def main(url: str) -> None:
    for line in sys.stdin:
        statements = int(line)
        pid = os.fork()
        if pid == 0:
            tell(f"ended {statements} {work(url, statements)}")
            os._exit(0)
        tell(f"started {statements} {pid}")


def work(url: str, statements: int) -> str:
    """Step, stop, and say in the end what became of the step."""
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
        return "unreachable"
    return f"accepted {len(step.accepted)} of {len(results)}"


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
    main(sys.argv[1])
