"""The moments of a leader's batch at which a trial strikes.

A batch is one statement, so between its moments the process has no say; but the statement takes its fence, then locks
cursors, then writes rows, and whoever is killed or frozen meanwhile leaves a backend behind that goes on by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeVar

import psycopg

from tests.support.trial import LONG, Takeover, Trial, wait_until
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
T = TypeVar("T")


# What a rightful winner's takeover writes (store/postgres/terms.py), by a node that is paused right after it.
_TAKE_OVER = """
WITH taken AS (
  UPDATE cluster SET term = term + 1, leader = 'stand-in', leader_since = clock_timestamp(), predecessor = NULL,
    left_at = NULL WHERE id = 1 RETURNING term, leader_since),
 beating AS (
  UPDATE heartbeat h SET term = t.term, counter = h.counter + 1, at = t.leader_since FROM taken t WHERE h.id = 1)
INSERT INTO takeovers (term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from)
SELECT term, 'stand-in', 'zookeeper', leader_since, %s, 'vanished', leader_since FROM taken
"""


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

        def roll_back() -> None:
            with contextlib.suppress(psycopg.OperationalError):  # a successor has ended this connection
                connection.rollback()

        def let_go() -> None:
            if moment is not Moment.HELD_AMONG_THE_ROWS:
                roll_back()

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
        roll_back()


def take_over_while_it_waits(trial: Trial, leader: str, before_commit: Callable[[], T]) -> T:
    """Another takes over while a statement of the leader waits before its fence, and decides nothing after that.

    The cursors stand where the statement expects them: its fence alone keeps it from writing (invariant 3).
    Returns what `before_commit` said. Raises psycopg.OperationalError where a real successor ended the stand-in first.
    """
    conninfo = trial.url.replace("+psycopg", "")
    with psycopg.connect(conninfo, application_name="trial's stand-in") as connection:
        connection.execute("SELECT FROM cluster WHERE id = 1 FOR UPDATE")
        _await_waiting(trial, conninfo, leader)
        connection.execute(_TAKE_OVER, (leader,))
        return before_commit()


@contextlib.contextmanager
def successor_waits(trial: Trial) -> Iterator[Callable[[], Takeover]]:
    """While entered, no node's statement gets as far as its fence: each waits for a table, and has locked no row.

    So nothing is decided, and edits are made all the same. Call what is given after the leader's end: the takeover that
    follows, once its node's first statement waits.
    """
    conninfo, term = trial.url.replace("+psycopg", ""), trial.term()
    with psycopg.connect(conninfo, application_name="trial's moment") as connection:
        connection.execute("LOCK TABLE decisions IN SHARE MODE")

        def taken_over() -> Takeover:
            taken = trial.takeover_after(term)
            _await_waiting(trial, conninfo, taken.node)
            return taken

        yield taken_over
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
