"""Stores with a fault planted in them, for the simulator to find: none of it is in the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sexton.decisions import CommitResult, TickBatch
from sexton.store.protocol import JobsRead, LateJobRow, Requeued, StepRequest, StepResult
from sexton.store.protocol.grants import nothing
from sexton.store.sqlite import tick_commit
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.grants import SqliteGrants
from sexton.store.sqlite.store import SqliteStore
from sexton.store.sqlite.ticks import SqliteTicks
from sexton.store.tables import to_micros
from sexton_tui.simulation.world import World


def rows(connection: SqliteConnection, statement: str, *values: object) -> list[Any]:
    with connection.snapshot() as reading:
        return reading.execute(statement, values).fetchall()


class FencelessTicks(SqliteTicks):
    """The commit ignores the leader's term (against invariant 3)."""

    def commit(self, batch: TickBatch) -> CommitResult:
        ((term,),) = rows(self._connection, "SELECT term FROM cluster WHERE id = 1")
        return super().commit(replace(batch, term=term))


def drop_the_fence(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = FencelessTicks(store.connection)


class CursorFirstTicks(SqliteTicks):
    """The cursor moves in one transaction, the decisions follow in another (against invariants 2 and 7)."""

    def __init__(self, connection: SqliteConnection, world: World) -> None:
        super().__init__(connection)
        self._world = world

    def commit(self, batch: TickBatch) -> CommitResult:
        result = super().commit(replace(batch, claims=(), skips=(), proposals=(), decisions=()))
        actor = self._world.current
        assert actor is not None
        actor.host.point("ticks.commit")
        self._world.pause(self._world.draw(0.0001, 0.002))
        moved = {move.job_id for move in batch.moves} - set(result.not_moved)
        now = to_micros(self._world.now())
        with self._connection.transaction() as writing:
            claims = [claim for claim in batch.claims if claim.job_id in moved]
            tick_commit._insert_claims(writing, claims, batch.term, now)
            skips = (skip for skip in batch.skips if skip.job_id in moved)
            tick_commit._insert_skips(writing, skips, batch.term, now)
        return result


def move_the_cursor_first(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = CursorFirstTicks(store.connection, world)


class TrustingGrants(SqliteGrants):
    """Every result counts, under whatever token it comes (against invariant 4)."""

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        with self._connection.transaction() as writing:
            for result in request.results:
                late = writing.execute(
                    "UPDATE claims SET state = 1, token = ? WHERE job_id = ? AND scheduled_at = ? AND token IS NOT ?",
                    (result.token, result.job_id, to_micros(result.scheduled_at), result.token),
                )
                if late.rowcount:
                    writing.execute("DELETE FROM runs WHERE token = ?", (result.token,))  # the loss, as requeued
        return super().step(request, meanwhile)


def trust_late_results(store: SqliteStore, world: World) -> None:
    vars(store)["grants"] = TrustingGrants(store.connection)


class GreedyGrants(SqliteGrants):
    """Slots are never busy."""

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        with self._connection.transaction() as writing:
            writing.execute("UPDATE slots SET token = NULL")
            writing.execute("UPDATE claims SET state = 0 WHERE state = 2")
        return super().step(request, meanwhile)


def free_all_slots(store: SqliteStore, world: World) -> None:
    vars(store)["grants"] = GreedyGrants(store.connection)


class HaltlessGrants(SqliteGrants):
    """A pull ignores that the cluster is halted."""

    def step(self, request: StepRequest, meanwhile: Callable[[], None] = nothing) -> StepResult:
        ((halted,),) = rows(self._connection, "SELECT halted FROM cluster WHERE id = 1")
        with self._connection.transaction() as writing:
            writing.execute("UPDATE cluster SET halted = 0")
        result = super().step(request, meanwhile)
        with self._connection.transaction() as writing:
            writing.execute("UPDATE cluster SET halted = ?", (halted,))
        return result


def ignore_the_halt(store: SqliteStore, world: World) -> None:
    vars(store)["grants"] = HaltlessGrants(store.connection)


class HastyGrants(SqliteGrants):
    """Claims are taken from their workers though the lease still holds."""

    def requeue_expired(self, limit: int = 500, poison_after: int = 3) -> tuple[Requeued, ...]:
        with self._connection.transaction() as writing:
            writing.execute("UPDATE claims SET lease_expires_at = 0 WHERE state = 1")
        return super().requeue_expired(limit, poison_after)


def take_leases(store: SqliteStore, world: World) -> None:
    vars(store)["grants"] = HastyGrants(store.connection)


class TwiceWritingTicks(SqliteTicks):
    """Claims are written before the cursor is asked."""

    def commit(self, batch: TickBatch) -> CommitResult:
        with self._connection.transaction() as writing:
            tick_commit._insert_claims(writing, list(batch.claims), batch.term, to_micros(self._connection.now()))
        return super().commit(batch)


def write_claims_first(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = TwiceWritingTicks(store.connection)


class BrokenTicks(SqliteTicks):
    """Reading jobs fails with an error that no loop expects."""

    def load_jobs(self, changed_after: int | None = None) -> JobsRead:
        raise RuntimeError("planted")


def break_reading(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = BrokenTicks(store.connection)


class ForgetfulTicks(SqliteTicks):
    """A duty fails with an error that is logged and goes by."""

    def late_jobs(self, limit: int = 100) -> tuple[LateJobRow, ...]:
        raise RuntimeError("planted")


def break_housekeeping(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = ForgetfulTicks(store.connection)
