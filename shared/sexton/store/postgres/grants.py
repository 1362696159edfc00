"""The worker's statements on PostgreSQL: `PostgresGrants` implements `protocol.GrantStore`.

A step is one pipelined transaction: complete (invariant 4), promote, pull, look ahead, with one commit and one round
trip. It takes its locks in one order: own claims, own slot rows (waiting for a puller that looks at them), then other
claims and slot rows SKIP LOCKED. So no two steps wait for each other, and a step waits for another process only in
the moment between that one's pull and its commit; a process stopped just there is terminated by any node's
housekeeping (`TermStore.terminate_stuck`).

Paced claims (catch-up, held, backfill) are pulled by a second transaction, only where they are due and there is room
left: live claims always go first, and the gate of the class is not held by those who need it not.

Counting refused results and waking others happen after the commit, each in a statement of its own that holds no lock
when its process stops; what is lost if it dies there is a count, or a wake-up that polling replaces.

Contention (lock timeout, deadlock) in the first transaction means that it is tried again. After its commit nothing of
it is: contention in what follows costs that statement alone, and paced claims are there at the next step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg

from sexton.claims import State
from sexton.job_formats import FORMAT
from sexton.store.postgres import arrays, completion, leases, parking, slot_groups
from sexton.store.postgres.pull import Pulled, grants_of, look_ahead, plan_by_index, pull, pull_paced, together
from sexton.store.postgres.ruled_queues import RuledQueues
from sexton.store.protocol import Channel, Grant, Renewal, Requeued, RunResult, StepRequest, StepResult, StopRequests
from sexton.store.protocol.grants import nothing
from sexton.store.pull_turns import Turn, turn

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

# An id is drawn from 2^52 to 2^53, and nobody's in this ledger nor in what a backup of it lacks: were it counted, a
# worker that goes on after a restore and one that starts would have the same, and give each other's claims back.
_REGISTER = b"""INSERT INTO workers
 (worker_id, name, address, version, pid, queues, slots, job_format, started_at, seen_at)
 VALUES (coalesce(%s::bigint, ((1 + random()) * 2 ^ 52)::bigint), %s, %s, %s, %s, %s, %s, %s, statement_timestamp(),
  statement_timestamp())"""
_REGISTER_NEW = _REGISTER + b" RETURNING worker_id"
_REGISTER_AGAIN = (
    _REGISTER
    + b""" ON CONFLICT (worker_id) DO UPDATE SET seen_at = excluded.seen_at, stopped_at = NULL RETURNING worker_id"""
)
_SEEN = b"""UPDATE workers SET seen_at = statement_timestamp(), busy = %s, draining = %s WHERE worker_id = %s"""
_UNREGISTER = b"""UPDATE workers SET stopped_at = statement_timestamp(), seen_at = statement_timestamp(), busy = 0
 WHERE worker_id = %s"""
_DEFINITIONS = b"""SELECT job_id, revision, definition FROM revisions
 JOIN unnest(%s::bigint[], %s::int[]) wanted(job_id, revision) USING (job_id, revision)"""
_MARK_STARTED = b"""UPDATE claims c SET started_at = coalesce(c.started_at, statement_timestamp())
 FROM unnest(%s::bigint[], %s::timestamptz[], %s::bigint[]) d(job_id, scheduled_at, token)
 WHERE c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at AND c.token = d.token AND c.finished_at IS NULL
 RETURNING c.token"""
_COUNT_STALE = b"""INSERT INTO counters (name, value) VALUES ('stale_results', %s)
 ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value"""
_NOTIFY_STOPS = f"SELECT pg_notify('{Channel.STOPS.value}', '')".encode()
_NOTIFY_WORK = f"SELECT pg_notify('{Channel.WORK.value}', '')".encode()


_NONE: frozenset[tuple[int, datetime]] = frozenset()


@dataclass(frozen=True)
class _Committed:
    """What the step's own transaction did and saw, read when it is asked for; the fields after ``pulled`` are those of
    the look ahead."""

    written: psycopg.Cursor[Any] | None
    promoted: psycopg.Cursor[Any] | None
    pulled: Pulled
    now: datetime
    next_available_at: datetime | None
    is_paced_due: bool
    has_rules: bool
    place: str

    @property
    def accepts(self) -> int:
        """How many results counted."""
        return 0 if self.written is None else self.written.rowcount

    @cached_property
    def outcomes(self) -> dict[int, int]:
        """Of the results that counted, by token."""
        return {} if self.written is None else dict(self.written.fetchall())

    @cached_property
    def woken(self) -> frozenset[tuple[int, datetime]]:
        """The claims that were promoted."""
        return frozenset(self.promoted.fetchall()) if self.promoted is not None and self.promoted.rowcount else _NONE


class PostgresGrants:
    """`GrantStore` over one connection, for one thread."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._prepared: psycopg.Connection[Any] | None = None
        self._packed: completion.Packed | None = None
        self._turn = 0
        self._sweeps = 0
        self._ruled = RuledQueues(connection)

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
        statement = _REGISTER_NEW if again is None else _REGISTER_AGAIN
        with self._connection.autocommit() as connection:
            row = connection.execute(
                statement, (again, name, address, version, pid, json.dumps(list(queues)), slots, FORMAT)
            ).fetchone()
        assert row is not None  # noqa: S101 - INSERT .. RETURNING of one row
        return int(row[0])

    def seen(self, worker_id: int, busy: int, draining: bool) -> None:
        with self._connection.autocommit() as connection:
            connection.execute(_SEEN, (busy, draining, worker_id))

    def unregister(self, worker_id: int) -> None:
        with self._connection.autocommit() as connection:
            connection.execute(_UNREGISTER, (worker_id,))

    # --- the step -----------------------------------------------------------------------------------

    def prepare(self, results: tuple[RunResult, ...]) -> None:
        if results:
            self._packed = completion.pack(results)

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        order = self._next_turn(request)
        reserved = self._ruled.reserve(order, request.room)
        packed = self._packed_of(request.results)
        first = self._connection.retrying(
            lambda: self._complete_and_pull(request, packed, order, request.room - reserved, meanwhile),
            "writing results and pulling claims",
        )
        # That much is committed: tried again as a whole, its results would be refused and its grants lost.
        pulled, next_available_at = self._pull_more(request, order, first)
        if reserved and first.pulled.picked >= request.room - reserved:
            pulled = pulled._replace(picked=pulled.picked + reserved)  # the queues without a rule may hold more
        if pulled.parked:
            self._connection.unless_contended(lambda: self._settle(pulled), None)
        refused = len(request.results) - first.accepts
        if refused:
            self._connection.unless_contended(lambda: self._execute(_COUNT_STALE, (refused,)), None)
        may_go_back = packed is not None and packed.may_go_back
        if (may_go_back or first.woken) and _leaves_work(request.results, first.outcomes, first.woken, pulled.grants):
            self._connection.unless_contended(lambda: self._execute(_NOTIFY_WORK), None)
        if may_go_back and State.CANCELLED in first.outcomes.values():  # somebody may wait for it
            self._connection.unless_contended(lambda: self._execute(_NOTIFY_STOPS), None)
        return StepResult(
            granted=len(pulled.grants),
            priority=pulled.grants[0].priority if pulled.grants else 0,
            has_paced=len(pulled.grants) > len(first.pulled.grants),
            refused=refused,
            picked=pulled.picked,
            next_available_at=next_available_at,
            now=first.now,
            place=first.place,
            read=lambda: (frozenset(first.outcomes), tuple(pulled.grants)),
        )

    def _packed_of(self, results: tuple[RunResult, ...]) -> completion.Packed | None:
        """As ``prepare`` has them, if it was told of these."""
        packed, self._packed = self._packed, None
        if not results:
            return None
        return packed if packed is not None and packed.results == results else completion.pack(results)

    def _pull_more(self, request: StepRequest, order: Turn, first: _Committed) -> tuple[Pulled, datetime | None]:
        """What the first transaction does not pull, from the room it left: queues with a rule, then paced claims.

        All that was pulled, and when to look again.
        """
        pulled, look_at = first.pulled, first.next_available_at
        if first.has_rules and (request.room > 0 or request.results):
            # Paced claims of both kinds of queues are pulled by turns: what is first may take the whole class.
            with_paced = not first.is_paced_due or order.number % 2 == 0
            ruled = self._ruled.pull(request, request.room - len(pulled.grants), order, with_paced=with_paced)
            pulled = together(pulled, ruled.pulled)
            look_at = min((at for at in (look_at, ruled.look_at) if at is not None), default=None)
        if first.is_paced_due and (room := request.room_for_paced(pulled.grants)) > 0:
            paced = self._connection.unless_contended(
                lambda: self._pull_paced(request, room, order), otherwise=Pulled((), 0)
            )
            pulled = together(pulled, paced)
        return pulled, look_at

    def _complete_and_pull(
        self,
        request: StepRequest,
        packed: completion.Packed | None,
        order: Turn,
        room: int,
        meanwhile: Callable[[], None],
    ) -> _Committed:
        written = promoted = pulled = None
        with self._connection.autocommit() as connection:
            self._prepare(connection)
            with connection.pipeline():
                connection.execute(b"BEGIN")
                if packed is not None:
                    written, promoted = completion.complete(connection, request.worker_id, packed)
                if room > 0 and order.queues:
                    pulled = pull(connection, request.worker_id, request.lease, room, order.queues, order.first)
                ahead = look_ahead(connection, order.queues)
                connection.execute(b"COMMIT")
                meanwhile()  # all is sent: nothing that others may wait for depends on this process any more
            granted = grants_of(pulled) if pulled is not None else Pulled((), 0)
            row = ahead.fetchone()
            assert row is not None  # noqa: S101 - an aggregate is one row
        return _Committed(written, promoted, granted, *row)

    def _settle(self, pulled: Pulled) -> None:
        with self._connection.autocommit() as connection:
            parking.settle(connection, pulled.parked, pulled.replacing)

    def _pull_paced(self, request: StepRequest, room: int, order: Turn) -> Pulled:
        worker, limit = request.worker_id, request.catch_up_concurrency
        with self._connection.transaction() as connection:
            return pull_paced(connection, worker, request.lease, room, limit, order.queues, order.first)

    def _execute(self, statement: bytes, values: tuple[int, ...] = ()) -> None:
        with self._connection.autocommit() as connection:
            connection.execute(statement, values)

    def _next_turn(self, request: StepRequest) -> Turn:
        """The order of this step; steps that pull nothing use up no turn."""
        order = turn(self._turn, request.queues)
        self._turn += request.room > 0
        return order

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        if connection is not self._prepared:
            arrays.register(connection)
            plan_by_index(connection)
            self._prepared = connection

    # --- a run --------------------------------------------------------------------------------------

    def definitions(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        if not keys:
            return {}
        wanted = arrays.big_ints([job_id for job_id, _ in keys]), arrays.ints([revision for _, revision in keys])
        with self._connection.autocommit() as connection:
            self._prepare(connection)
            rows = connection.execute(_DEFINITIONS, wanted, prepare=True).fetchall()
        return {(job_id, revision): text for job_id, revision, text in rows}

    def mark_started(self, grants: Sequence[Grant]) -> frozenset[int]:
        ordered = sorted(grants, key=lambda grant: (grant.job_id, grant.scheduled_at))
        jobs, ticks = [grant.job_id for grant in ordered], [grant.scheduled_at for grant in ordered]
        with self._connection.autocommit() as connection:
            self._prepare(connection)
            marked = connection.execute(_MARK_STARTED, (jobs, ticks, [grant.token for grant in ordered]))
            return frozenset(token for (token,) in marked.fetchall())

    def renew(self, worker_id: int, tokens: Sequence[int], lease: timedelta) -> Renewal:
        with self._connection.autocommit() as connection:
            return leases.renew(connection, worker_id, tokens, lease)

    def orphans(self, worker_id: int, known: Sequence[int]) -> tuple[Grant, ...]:
        with self._connection.autocommit() as connection:
            return leases.orphans(connection, worker_id, known)

    def stop_requests(self, worker_id: int) -> StopRequests:
        with self._connection.autocommit() as connection:
            return leases.stop_requests(connection, worker_id)

    # --- housekeeping -------------------------------------------------------------------------------

    def requeue_expired(self, limit: int = 500, poison_after: int = 3) -> tuple[Requeued, ...]:
        with self._connection.autocommit() as connection:
            requeued = leases.requeue(connection, limit, poison_after)
            ended = [one for one in requeued if one.state != State.READY]
            if ended:  # a claim that is ready again takes its slot itself
                completion.promote_after(connection, [(one.job_id, one.scheduled_at) for one in ended])
            if requeued:
                connection.execute(_NOTIFY_WORK)
        return requeued

    def sweep(self) -> int:
        with self._connection.transaction() as connection:
            slot_groups.trim(connection)
        with self._connection.autocommit() as connection:
            promoted = completion.sweep(connection).rowcount
            if promoted:
                connection.execute(_NOTIFY_WORK)
            parking.settle_all(connection, self._sweeps)
            self._sweeps += 1
        return promoted


def _leaves_work(
    results: Sequence[RunResult],
    outcomes: dict[int, int],
    promoted: frozenset[tuple[int, datetime]],
    grants: Sequence[Grant],
) -> bool:
    """Whether this step made a claim ready at once that it did not take itself: other workers should look."""
    given_back = {
        (result.job_id, result.scheduled_at)
        for result in results
        if result.retry_at is None and outcomes.get(result.token) == State.READY
    }
    made_ready = promoted | given_back
    return bool(made_ready) and bool(made_ready - {(grant.job_id, grant.scheduled_at) for grant in grants})
