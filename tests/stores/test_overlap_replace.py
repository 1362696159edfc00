"""`overlap: replace` and `queue_limit`: what becomes of ticks that wait on a slot; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, Channel, Grant, JobChange, RunResult, StepRequest, Store, StoreOptions
from sexton.store.sqlite import parking
from sexton.store.sqlite.connection import SqliteConnection
from tests.support.claim_rows import MINUTE, ClaimRows, claim_values, now
from tests.support.leader_scene import create, definition

LEASE = timedelta(seconds=30)
REPLACE = int(Overlap.REPLACE)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def step(store: Store, *results: RunResult, room: int = 100) -> tuple[Grant, ...]:
    return store.grants.step(StepRequest(1, ("default",), room, LEASE, 10, results)).grants


def ended(grant: Grant, outcome: State = State.SUCCEEDED) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now())


def shown(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"


def asked(rows: ClaimRows, grant: Grant) -> bool:
    return bool(rows.row(grant.job_id, grant.scheduled_at).cancel_requested)


# --- replace ------------------------------------------------------------------------------------------


def test_a_tick_that_meets_a_busy_slot_asks_the_run_to_stop_and_runs_in_its_place(
    store: Store, rows: ClaimRows
) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    at = rows.add(overlap=REPLACE)
    assert step(store) == ()
    assert rows.state(1, at) == State.PARKED
    holder = rows.row(1, first.scheduled_at)
    assert holder.cancel_requested
    assert holder.reason == f"overlap replace: asked to stop for the tick of {shown(at)}"
    assert store.grants.renew(1, [first.token], LEASE).cancel == {first.token}
    (second,) = step(store, ended(first, State.CANCELLED))
    assert second.scheduled_at == at
    assert rows.state(1, first.scheduled_at) == State.CANCELLED


def test_a_run_that_is_asked_to_stop_and_fails_is_not_tried_again(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    at = rows.add(overlap=REPLACE)
    step(store)
    (second,) = step(store, ended(first, State.READY))
    assert (second.scheduled_at, rows.state(1, first.scheduled_at)) == (at, State.CANCELLED)


def test_a_dead_run_is_replaced_when_its_lease_is_over(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (dead,) = step(store)
    at = rows.add(overlap=REPLACE)
    step(store)
    rows.expire_leases([dead.token])
    (requeued,) = store.grants.requeue_expired()
    assert requeued.state == State.CANCELLED
    assert [grant.scheduled_at for grant in step(store)] == [at]


def test_of_several_ticks_only_the_newest_waits(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    older = [rows.add(overlap=REPLACE) for _ in range(2)]
    assert step(store) == ()
    newest = rows.add(overlap=REPLACE)
    assert step(store) == ()
    assert [rows.state(1, at) for at in (*older, newest)] == [State.SKIPPED, State.SKIPPED, State.PARKED]
    assert rows.row(1, older[0]).reason == f"overlap replace: the newer tick of {shown(older[1])} waits in its place"
    assert rows.row(1, older[1]).reason == f"overlap replace: the newer tick of {shown(newest)} waits in its place"
    assert [grant.scheduled_at for grant in step(store, ended(first, State.CANCELLED))] == [newest]


@pytest.mark.parametrize("changes", [{"origin": int(Origin.MANUAL)}, {"attempt": 1}], ids=["manual", "granted before"])
def test_other_claims_wait_their_turn_and_stop_nobody(store: Store, rows: ClaimRows, changes: dict[str, Any]) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    waits = [rows.add(overlap=REPLACE, **changes) for _ in range(2)]
    assert step(store) == ()
    store.grants.sweep()
    assert not asked(rows, first)
    assert [rows.state(1, at) for at in waits] == [State.PARKED, State.PARKED]
    for at in waits:
        (first,) = step(store, ended(first))
        assert first.scheduled_at == at


def test_the_tick_for_which_a_run_was_stopped_goes_before_those_that_queue(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    rows.add(overlap=REPLACE, origin=int(Origin.MANUAL))
    at = rows.add(overlap=REPLACE)
    step(store)
    (second,) = step(store, ended(first, State.CANCELLED))
    assert second.scheduled_at == at
    assert not asked(rows, second)


def test_a_sweep_asks_where_the_step_that_parked_did_not(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    older, newest = rows.add(overlap=REPLACE, state=int(State.PARKED)), rows.add(overlap=REPLACE, state=2)
    store.grants.sweep()
    assert asked(rows, first)
    assert (rows.state(1, older), rows.state(1, newest)) == (State.SKIPPED, State.PARKED)


def test_a_paused_tick_and_a_halted_cluster_stop_nobody(store: Store, rows: ClaimRows) -> None:
    rows.add(overlap=REPLACE)
    (first,) = step(store)
    at = rows.add(overlap=REPLACE, state=2, blocked=True)
    store.grants.sweep()
    assert not asked(rows, first)
    rows.halt(True)
    rows.change(1, at, blocked=False)
    store.grants.sweep()
    assert not asked(rows, first)
    rows.halt(False)
    store.grants.sweep()
    assert asked(rows, first)


def test_workers_are_told_at_once_that_a_run_is_to_stop(store: Store, rows: ClaimRows) -> None:
    wakeup = threading.Event()
    listener = store.listen([Channel.STOPS], wakeup)
    try:
        rows.add(overlap=REPLACE)
        step(store)
        wakeup.wait(0.5)  # what a listener says when it connects
        wakeup.clear()
        rows.add(overlap=REPLACE)
        step(store)
        assert wakeup.wait(60)
    finally:
        listener.close()


# --- queue_limit --------------------------------------------------------------------------------------


def queueing(store: Store, limit: int) -> int:
    (job,) = create(store, definition("a", overlap=Overlap.QUEUE, queue_limit=limit))
    return job.job_id


def test_ticks_beyond_the_queue_limit_end_skipped_the_oldest_first(store: Store, rows: ClaimRows) -> None:
    job = queueing(store, 3)
    rows.add(job)
    (first,) = step(store)
    waits = [rows.add(job) for _ in range(5)]
    assert step(store) == ()
    assert [rows.state(job, at) for at in waits] == [State.SKIPPED] * 2 + [State.PARKED] * 3
    assert rows.row(job, waits[0]).reason == "overlap queue: 4 newer ticks wait for its slot, and queue_limit is 3"
    assert rows.row(job, waits[1]).finished_at is not None
    for at in waits[2:]:
        (first,) = step(store, ended(first))
        assert first.scheduled_at == at


def test_only_ticks_that_no_worker_had_count_and_end(store: Store, rows: ClaimRows) -> None:
    """Nobody's approved backfill or retry is eaten."""
    job = queueing(store, 1)
    rows.add(job)
    step(store)
    kept = [
        rows.add(job, origin=int(Origin.MANUAL)),
        rows.add(job, origin=int(Origin.BACKFILL)),
        rows.add(job, attempt=1),
    ]
    tick = rows.add(job)
    step(store)
    store.grants.sweep()
    assert [rows.state(job, at) for at in (*kept, tick)] == [State.PARKED] * 4


def test_a_queue_limit_that_is_lowered_counts_from_the_next_sweep_on(store: Store, rows: ClaimRows) -> None:
    job = queueing(store, 100)
    rows.add(job)
    step(store)
    waits = [rows.add(job) for _ in range(4)]
    step(store)
    lower = definition("a", overlap=Overlap.QUEUE, queue_limit=2)
    store.edits.edit([JobChange(ChangeKind.REVISE, job, lower)], "alice")
    store.grants.sweep()
    assert [rows.state(job, at) for at in waits] == [State.SKIPPED] * 2 + [State.PARKED] * 2


def test_without_a_word_a_hundred_wait(store: Store, rows: ClaimRows) -> None:
    rows.add(1, overlap=int(Overlap.QUEUE))
    step(store)
    waits = [rows.add(1, overlap=int(Overlap.QUEUE), state=2) for _ in range(101)]
    store.grants.sweep()
    assert rows.states() == {State.RUNNING: 1, State.SKIPPED: 1, State.PARKED: 100}
    assert rows.state(1, waits[0]) == State.SKIPPED


def test_on_sqlite_what_waits_is_counted_no_further_than_its_limit(sqlite_ledger: str) -> None:
    scene = ClaimRows(sqlite_ledger)
    with closing(open_store(StoreOptions(sqlite_ledger))) as store:
        ids = [
            create(store, definition(f"j{limit}", overlap=Overlap.QUEUE, queue_limit=limit))[0].job_id
            for limit in (3, 900, 2000)
        ]
    parked = {"state": int(State.PARKED), "overlap": int(Overlap.QUEUE)}
    scene.add_many([claim_values(job, now() + n * MINUTE, slot=job, **parked) for job in ids for n in range(1500)])
    scene.close()
    one = SqliteConnection(StoreOptions(sqlite_ledger))
    work: list[int] = []

    def counted(slots: list[int] | None) -> int:
        with one.transaction() as connection:
            work.clear()
            connection.set_progress_handler(lambda: work.append(1), 100)
            parking.settle(one, connection, one.now_micros(), slots)
            connection.set_progress_handler(None, 0)
            return len(work)

    step, again, far = counted([ids[0]]), counted([ids[0]]), counted([ids[2]])
    assert step > 100  # it ended a thousand
    assert again < step
    assert far < 5  # left to sweeps
    counted(None)
    assert counted([ids[0]]) < 5
    left = "SELECT slot, count(*) FROM claims WHERE state = 2 GROUP BY slot ORDER BY slot"
    with one.transaction() as connection:
        assert connection.execute(left).fetchall() == list(zip(ids, (3, 900, 1500), strict=True))
    one.close()
