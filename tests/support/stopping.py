"""Processes that stop themselves (SIGSTOP) right after they have sent their n-th statement to the database.

    python -m tests.support.stopping ACTION URL...

The first url's process stops after its first statement, the second's after its second, and so on. Each tells on
standard output, in JSON lines, that it stops and, when it was made to go on, how it ended. All are forked from one
program, so that a dozen of them cost no more than one; they are its children and end with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from psycopg.abc import RV, PQGen

from sexton.errors import SextonError
from sexton.store import open_store
from sexton.store.postgres.connection import GuardedConnection
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.terms import Confirmation, ElectedBy
from tests.support.leader_scene import SECOND, batch, definition


def edit_as_apply(store: Store) -> str:
    """Pause the first job, revise the second."""
    first, second, *_ = store.edits.current_jobs()
    changes = [
        JobChange(ChangeKind.PAUSE, first.job_id, why="stopped"),
        JobChange(ChangeKind.REVISE, second.job_id, definition(second.name, timedelta(minutes=1))),
    ]
    store.edits.edit(changes, "stopped")
    return "edited"


def lead_as_leader(store: Store) -> str:
    """Take the next term, then all that a leader writes in its loop; whether its last commit counted."""
    term = store.terms.cluster().term
    taken = store.terms.take(term, "stopped", ElectedBy.DATABASE)
    if taken is None:
        return "lost the term"
    store.terms.beat(taken.term, Confirmation.CONFIRMED)
    jobs = store.ticks.load_jobs().jobs
    store.ticks.commit(batch(store, taken.term, [(job, [job.at + SECOND]) for job in jobs]))
    store.ticks.reserve_budget(taken.term, 1, 50.0)
    store.ticks.finish_pass(taken.term, timedelta(0), len(jobs))
    jobs = store.ticks.read_jobs([job.job_id for job in jobs])
    last = store.ticks.commit(batch(store, taken.term, [(job, [job.at + SECOND]) for job in jobs]))
    return "is current" if last.is_current else "is stale"


ACTIONS: dict[str, Callable[[Store], str]] = {"apply": edit_as_apply, "leader": lead_as_leader}


def tell(**values: Any) -> None:
    """One line, in one write: several processes share the pipe."""
    os.write(1, (json.dumps(values) + "\n").encode())


def stop_after(statement: int) -> None:
    """From now on: stop once the n-th statement is with the server, its answer unread."""
    plain_wait = GuardedConnection.wait
    sent = 0

    def wait(self: GuardedConnection, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        nonlocal sent
        sent += 1
        return plain_wait(self, stopping(gen) if sent == statement else gen, interval, timeout)

    def stopping(gen: PQGen[RV]) -> PQGen[RV]:
        state = next(gen)  # the statement is sent before the first wait for its answer
        tell(event="stops", statement=statement, pid=os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            ready = yield state
            try:
                state = gen.send(ready)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # the generator's own answer

    GuardedConnection.wait = wait  # type: ignore[method-assign]  # the point of this program


def run(action: str, url: str, statement: int) -> None:
    store = open_store(StoreOptions(url, application="sexton stopped", answer_within=60.0))
    stop_after(statement)
    try:
        outcome = ACTIONS[action](store)
    except SextonError as error:
        outcome = type(error).__name__
    tell(event="ended", statement=statement, pid=os.getpid(), outcome=outcome)


def main() -> None:
    action, *urls = sys.argv[1:]
    children = []
    for number, url in enumerate(urls, start=1):
        pid = os.fork()
        if pid == 0:
            run(action, url, number)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
