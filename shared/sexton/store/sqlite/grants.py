"""The worker's statements on SQLite: `SqliteGrants` implements `protocol.GrantStore`.

Each method is one BEGIN IMMEDIATE transaction: the same decisions as on PostgreSQL, with nobody else writing
meanwhile. A process frozen inside one blocks the others until it goes on or ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import timedelta

from sexton.claims import State
from sexton.job_formats import FORMAT
from sexton.store.protocol import Channel, Grant, Renewal, Requeued, RunResult, StepRequest, StepResult, StopRequests
from sexton.store.protocol.grants import nothing
from sexton.store.pull_turns import turn
from sexton.store.sqlite import leases
from sexton.store.sqlite.completion import Claim, complete, promote
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.parking import settle
from sexton.store.sqlite.pull import Puller
from sexton.store.sqlite.ruled_queues import RuledQueues, StepPulls, freed_for_others, pull_in_turn, standings
from sexton.store.sqlite.slot_groups import trim
from sexton.store.tables import from_micros, to_micros

_REGISTER = """INSERT INTO workers
 (worker_id, name, address, version, pid, queues, slots, job_format, started_at, seen_at)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (worker_id) DO UPDATE SET seen_at = excluded.seen_at, stopped_at = NULL RETURNING worker_id"""
_COUNT_STALE = """INSERT INTO counters (name, value) VALUES ('stale_results', ?)
 ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value"""


class SqliteGrants:
    """`GrantStore` over one connection, for one thread."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self._turn = 0
        self._ruled = RuledQueues()

    # --- the worker's row ---------------------------------------------------------------------------

    def register(
        self,
        name: str,
        address: str,
        version: str,
        pid: int,
        queues: Sequence[str],
        slots: int,
        again: int | None = None,
    ) -> int:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            values = (again, name, address, version, pid, json.dumps(list(queues)), slots, FORMAT, now, now)
            (worker_id,) = connection.execute(_REGISTER, values).fetchone()
        return int(worker_id)

    def seen(self, worker_id: int, busy: int, draining: bool) -> None:
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE workers SET seen_at = ?, busy = ?, draining = ? WHERE worker_id = ?",
                (self._connection.now_micros(), busy, int(draining), worker_id),
            )

    def unregister(self, worker_id: int) -> None:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            connection.execute(
                "UPDATE workers SET stopped_at = ?, seen_at = ?, busy = 0 WHERE worker_id = ?", (now, now, worker_id)
            )

    # --- the step -----------------------------------------------------------------------------------

    def prepare(self, results: tuple[RunResult, ...]) -> None:
        """Nothing that takes time can be done before."""

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        meanwhile()  # before: the database is in this process, and nobody is to wait for its lock longer than needed
        order = turn(self._turn, request.queues)
        self._turn += request.room > 0  # a step that pulls nothing uses up no turn
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            outcomes, freed = complete(connection, request.worker_id, request.results)
            promoted = promote(connection, now, freed)
            puller = Puller(request.worker_id, now, request.lease, order.first)
            ruled = standings(connection, now, order.queues)
            named = {one.name for one in ruled}
            plain = tuple(queue for queue in order.queues if queue not in named)
            pulls = StepPulls(connection, puller, request, plain, ruled)
            pull_in_turn(pulls, self._ruled, order)
            settle(self._connection, connection, now, pulls.parked)
            refused = len(request.results) - len(outcomes)
            if refused:
                connection.execute(_COUNT_STALE, (refused,))
            given_back = {
                (result.job_id, to_micros(result.scheduled_at))
                for result in request.results
                if result.retry_at is None and outcomes.get(result.token) == State.READY
            }
            self._tell_of(connection, promoted | given_back, pulls.grants)
            if State.CANCELLED in outcomes.values():  # somebody may wait for it
                notify(self._connection, connection, Channel.STOPS)
            if freed_for_others(pulls, request.results):
                notify(self._connection, connection, Channel.WORK)
            ahead = pulls.look_at(self._ruled)
        return StepResult(
            granted=len(pulls.grants),
            priority=pulls.grants[0].priority if pulls.grants else 0,
            has_paced=any(grant.origin.is_paced for grant in pulls.grants),
            refused=refused,
            picked=pulls.picked,
            next_available_at=ahead,
            now=from_micros(now),
            read=lambda: (frozenset(outcomes), tuple(pulls.grants)),
        )

    def _tell_of(self, connection: sqlite3.Connection, made_ready: set[Claim], grants: Sequence[Grant]) -> None:
        """Wake other workers for what this step made ready and did not take itself."""
        if made_ready - {(grant.job_id, to_micros(grant.scheduled_at)) for grant in grants}:
            notify(self._connection, connection, Channel.WORK)

    # --- a run --------------------------------------------------------------------------------------

    def definitions(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        found: dict[tuple[int, int], str] = {}
        with self._connection.snapshot() as connection:
            for key in keys:
                row = connection.execute(
                    "SELECT definition FROM revisions WHERE job_id = ? AND revision = ?", key
                ).fetchone()
                if row is not None:
                    found[key] = row[0]
        return found

    def mark_started(self, grants: Sequence[Grant]) -> frozenset[int]:
        statement = (
            "UPDATE claims SET started_at = coalesce(started_at, ?)"
            " WHERE job_id = ? AND scheduled_at = ? AND token = ? AND state = 1"
        )
        marked: set[int] = set()
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            for grant in grants:
                key = (grant.job_id, to_micros(grant.scheduled_at), grant.token)
                if connection.execute(statement, (now, *key)).rowcount == 1:
                    marked.add(grant.token)
        return frozenset(marked)

    def renew(self, worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
        with self._connection.transaction() as connection:
            now = self._connection.now()
            held, cancel = leases.renew(connection, worker_id, tokens, to_micros(now + lease))
        return Renewal(held, cancel, now, now + lease)

    def orphans(self, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
        with self._connection.snapshot() as connection:
            return leases.orphans(connection, worker_id, known)

    def stop_requests(self, worker_id: int) -> StopRequests:
        with self._connection.snapshot() as connection:
            return leases.stop_requests(connection, worker_id)

    # --- housekeeping -------------------------------------------------------------------------------

    def requeue_expired(self, limit: int = 500, poison_after: int = 3) -> tuple[Requeued, ...]:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            requeued, ended = leases.requeue(connection, now, limit, poison_after)
            promote(connection, now, ended)  # a claim that is ready again takes its slot itself
            if requeued:
                notify(self._connection, connection, Channel.WORK)
        return requeued

    def sweep(self) -> int:
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            trim(connection)
            parked = [slot for (slot,) in connection.execute("SELECT DISTINCT slot FROM claims WHERE state = 2")]
            promoted = promote(connection, now, parked, all_free=True)
            if promoted:
                notify(self._connection, connection, Channel.WORK)
            settle(self._connection, connection, now)
        return len(promoted)
