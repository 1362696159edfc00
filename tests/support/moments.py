"""The moments of a leader's batch at which a trial strikes.

A batch is one statement, so between its moments the process has no say; but the statement takes its fence, then locks
cursors, then writes rows, and whoever is killed or frozen meanwhile leaves a backend behind that goes on by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum

import psycopg

from tests.support.trial import LONG, Trial, wait_until
from tests.support.waiting import eventually

_IS_WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND application_name = %s AND query LIKE '%%fence AS%%' AND wait_event_type = 'Lock' AND state = 'active'
"""

# A claim for the next tick but one of a job due every second: the leader's own insert waits to see what becomes of it.
_OCCUPY = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, at_most_once,
  term, written_at)
SELECT j.job_id, c.at + interval '2 s', j.revision, 0, 'default', 0, 0, j.job_id, c.at + interval '2 s', false, 0,
  clock_timestamp()
FROM jobs j JOIN cursors c USING (job_id) WHERE j.name = 'every-stroke'
ON CONFLICT DO NOTHING RETURNING 1
"""


class Moment(StrEnum):
    """When to strike."""

    ANY_TIME = "any time"
    BEFORE_THE_FENCE = "its statement waits before the fence"
    AMONG_THE_ROWS = "its statement has locked and written some rows"
    HELD_AMONG_THE_ROWS = "so, and its backend cannot go on until the successor ends what holds it"
    JUST_COMMITTED = "a batch has just been written"


MOMENTS = tuple(Moment)


class MovedError(Exception):
    """The leader has changed before it was struck."""


@contextlib.contextmanager
def leader_at(trial: Trial, leader: str, moment: Moment) -> Iterator[Callable[[], None]]:
    """Entered, the leader is at this moment. Call what is given after the blow: what was held for it is let go.

    (Not under HELD_AMONG_THE_ROWS: there the successor has to do it.)
    Raises MovedError where another has come to lead meanwhile, as on a machine so loaded that a session ran out.
    """
    conninfo = trial.url.replace("+psycopg", "")
    with psycopg.connect(conninfo, application_name="trial's moment") as connection:

        def let_go() -> None:
            if moment is not Moment.HELD_AMONG_THE_ROWS:
                connection.rollback()

        if moment is Moment.BEFORE_THE_FENCE:
            connection.execute("SELECT FROM cluster WHERE id = 1 FOR UPDATE")
        elif moment in (Moment.AMONG_THE_ROWS, Moment.HELD_AMONG_THE_ROWS):
            wait_until(lambda: _occupies(connection), "a tick ahead of the leader is occupied")
        elif moment is Moment.JUST_COMMITTED:
            _await_batch(connection)
        if moment not in (Moment.ANY_TIME, Moment.JUST_COMMITTED):
            _await_waiting(trial, conninfo, leader)
        if trial.leader() != leader:
            raise MovedError
        yield let_go
        with contextlib.suppress(psycopg.OperationalError):  # the successor has ended this connection
            connection.rollback()


def _occupies(connection: psycopg.Connection) -> bool:
    found = connection.execute(_OCCUPY).fetchone() is not None
    if not found:
        connection.rollback()
    return found


def _await_waiting(trial: Trial, conninfo: str, leader: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as looker:

        def waits_or_moved() -> bool:
            waits = looker.execute(_IS_WAITING, (f"sexton scheduler {leader}",)).fetchone() == (1,)
            return waits or trial.leader() != leader

        wait_until(waits_or_moved, f"a statement of {leader} waits")


def _await_batch(connection: psycopg.Connection) -> None:
    connection.autocommit = True

    def newest() -> object:
        return connection.execute("SELECT max(at) FROM cursors").fetchone()

    before = newest()
    eventually(lambda: newest() != before, within=LONG, what="a batch is written")  # asked often: to be there at once
