"""Workers come and go, renew, freeze and die: what becomes of their claims; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select

from sexton.claims import Origin, Overlap, State
from sexton.store.protocol import Grant, Requeued, RunResult, StepRequest, StepResult, Store
from sexton.store.tables import workers
from tests.support.claim_rows import MINUTE, ClaimRows, now

LEASE = timedelta(seconds=30)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def step(store: Store, *results: RunResult, room: int = 100, worker_id: int = 1) -> StepResult:
    return store.grants.step(StepRequest(worker_id, ("default",), room, LEASE, 10, results))


def ended(grant: Grant) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())


def test_a_worker_registers_is_seen_and_leaves(store: Store, rows: ClaimRows) -> None:
    first = store.grants.register("host-1", "10.0.0.1", "0.1.0", 77, ["default", "größer"], 8)
    second = store.grants.register("host-2", "10.0.0.2", "0.1.0", 78, ["default"], 2)
    assert first != second
    store.grants.seen(first, 5, True)
    store.grants.unregister(second)
    with rows.engine.begin() as connection:
        one, two = connection.execute(select(workers).order_by(workers.c.name)).all()
    assert (one.name, one.address, one.pid, one.slots, one.busy, one.draining) == ("host-1", "10.0.0.1", 77, 8, 5, True)
    assert abs(one.seen_at - now()) < MINUTE
    assert one.stopped_at is None
    assert two.stopped_at is not None


def test_busy_slots_are_those_whose_claims_run_whatever_the_worker_said_last(store: Store, rows: ClaimRows) -> None:
    worker = store.grants.register("worker", "here", "0", 1, ["default"], 2)
    store.grants.seen(worker, 2, False)
    assert [one.busy for one in store.reads.workers()] == [0]
    for _ in range(3):
        rows.add(1, overlap=int(Overlap.ALLOW))
    store.grants.step(StepRequest(worker, ("default",), 1, LEASE, 10))
    assert [one.busy for one in store.reads.workers()] == [1]
    store.grants.step(StepRequest(worker, ("default",), 2, LEASE, 10))
    assert [one.busy for one in store.reads.workers()] == [2]  # the third is taken ahead


# --- started ------------------------------------------------------------------------------------------


def test_the_started_write_counts_only_under_the_current_token(store: Store, rows: ClaimRows) -> None:
    """Invariant 4."""
    at = rows.add(1)
    (grant,) = step(store).grants
    assert store.grants.mark_started([grant._replace(token=grant.token + 1)]) == frozenset()
    assert rows.row(1, at).started_at is None
    assert store.grants.mark_started([grant]) == {grant.token}
    started = rows.row(1, at).started_at
    assert store.grants.mark_started([grant]), "asked again after a lost answer"
    assert rows.row(1, at).started_at == started
    step(store, ended(grant))
    assert not store.grants.mark_started([grant])
    assert rows.row(1, at).started_at == started


def test_the_started_writes_of_many_are_one(store: Store, rows: ClaimRows) -> None:
    """Invariant 4: each is judged by its own token."""
    at = {job: rows.add(job) for job in range(1, 6)}
    grants = step(store).grants
    stale = grants[2]._replace(token=grants[4].token)
    wanted = [*grants[:2], stale, grants[3]]
    assert store.grants.mark_started(wanted) == {grant.token for grant in (*grants[:2], grants[3])}
    marked = {job for job, instant in at.items() if rows.row(job, instant).started_at is not None}
    assert marked == {grant.job_id for grant in (*grants[:2], grants[3])}
    assert store.grants.mark_started([]) == frozenset()


# --- renewing -----------------------------------------------------------------------------------------


def test_renewing_moves_the_leases_that_are_still_held(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 5):
        rows.add(job)
    mine = step(store, room=3).grants
    (other,) = step(store, worker_id=2).grants
    step(store, ended(mine[2]), room=0)
    rows.change(mine[1].job_id, mine[1].scheduled_at, cancel_requested=True)
    rows.expire_leases([mine[0].token])
    tokens = [grant.token for grant in mine] + [other.token, 10**9]
    renewal = store.grants.renew(1, tokens, timedelta(minutes=5))
    assert renewal.held == {mine[0].token, mine[1].token}
    assert renewal.cancel == {mine[1].token}
    assert renewal.lease_expires_at - renewal.now == timedelta(minutes=5)
    assert abs(renewal.now - now()) < MINUTE
    assert rows.row(mine[0].job_id, mine[0].scheduled_at).lease_expires_at == renewal.lease_expires_at
    assert rows.row(other.job_id, other.scheduled_at).lease_expires_at == other.lease_expires_at
    assert store.grants.requeue_expired() == ()


def test_renewing_nothing_tells_the_time(store: Store, rows: ClaimRows) -> None:
    renewal = store.grants.renew(1, [], LEASE)
    assert (renewal.held, renewal.cancel) == (frozenset(), frozenset())
    assert abs(renewal.now - now()) < MINUTE


# --- lost leases --------------------------------------------------------------------------------------


def test_a_lease_in_force_is_left_alone(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    step(store)
    assert store.grants.requeue_expired() == ()


def test_a_lost_lease_names_the_worker_as_people_do(store: Store, rows: ClaimRows) -> None:
    worker_id = store.grants.register("ringer", "host", "1", 1, ["default"], 4)
    at = rows.add(1)
    (grant,) = step(store, worker_id=worker_id).grants
    rows.expire_leases([grant.token])
    store.grants.requeue_expired()
    assert rows.runs(1, at)[0].error.startswith("lease lost: ringer did not renew it by 20")


def test_an_expired_lease_is_requeued_once_with_a_higher_token(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store, worker_id=5).grants
    store.grants.mark_started([grant])
    rows.expire_leases([grant.token])
    assert store.grants.requeue_expired() == (Requeued(1, at, grant.token, State.READY),)
    assert store.grants.requeue_expired() == ()
    claim = rows.row(1, at)
    assert (claim.state, claim.token, claim.worker_id, claim.losses, claim.retries) == (State.READY, None, None, 1, 0)
    assert (claim.started_at, claim.granted_at, claim.finished_at) == (None, None, None)
    (run,) = rows.runs(1, at)
    assert (run.token, run.outcome, run.worker_id, run.attempt) == (grant.token, State.READY, 5, 1)
    assert run.error.startswith("lease lost: worker 5 did not renew it by 20")
    assert run.lateness_ms is not None
    assert rows.slot_tokens(1) == [None]
    (again,) = step(store, worker_id=6).grants
    assert again.token > grant.token
    assert again.attempt == 2


def test_an_at_most_once_run_that_started_is_lost_and_the_next_in_line_runs(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1, at_most_once=True)
    (grant,) = step(store).grants
    parked = rows.add(1)
    step(store)
    store.grants.mark_started([grant])
    rows.expire_leases([grant.token])
    assert store.grants.requeue_expired() == (Requeued(1, at, grant.token, State.LOST),)
    claim = rows.row(1, at)
    assert (claim.state, claim.token, claim.losses) == (State.LOST, grant.token, 1)
    assert claim.finished_at is not None
    assert claim.reason.endswith("started, and on_worker_lost is fail")
    assert rows.runs(1, at)[0].outcome == State.LOST
    assert rows.state(1, parked) == State.READY


def test_an_at_most_once_run_that_never_started_is_run_again(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1, at_most_once=True)
    (grant,) = step(store).grants
    rows.expire_leases([grant.token])
    assert store.grants.requeue_expired() == (Requeued(1, at, grant.token, State.READY),)


def test_a_claim_that_loses_its_lease_too_often_is_poison(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    verdicts = []
    for _ in range(3):
        (grant,) = step(store).grants
        rows.expire_leases([grant.token])
        verdicts += [one.state for one in store.grants.requeue_expired(poison_after=3)]
    assert verdicts == [State.READY, State.READY, State.LOST]
    assert "3 leases lost" in rows.row(1, at).reason
    assert [run.outcome for run in rows.runs(1, at)] == verdicts


def test_a_lost_run_that_was_asked_to_stop_is_not_run_again(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store).grants
    rows.change(1, at, cancel_requested=True)
    rows.expire_leases([grant.token])
    assert store.grants.requeue_expired() == (Requeued(1, at, grant.token, State.CANCELLED),)


def test_requeueing_takes_the_longest_expired_up_to_the_limit(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 6):
        rows.add(job, overlap=int(Overlap.ALLOW if job % 2 else Overlap.QUEUE))
    grants = step(store).grants
    rows.expire_leases(grant.token for grant in grants)
    rows.change(3, grants[2].scheduled_at, lease_expires_at=now() - 600 * MINUTE)
    assert [one.job_id for one in store.grants.requeue_expired(limit=1)] == [3]
    assert len(store.grants.requeue_expired()) == 4


# --- sweeping -----------------------------------------------------------------------------------------


def test_the_sweep_promotes_what_a_lost_promotion_left_behind(store: Store, rows: ClaimRows) -> None:
    ticks = [rows.add(1) for _ in range(3)]
    (grant,) = step(store).grants
    assert store.grants.sweep() == 0, "the slot is busy"
    rows.change(1, ticks[1], blocked=True)
    rows.change(1, ticks[2], blocked=True)
    step(store, ended(grant), room=0)
    rows.change(1, ticks[1], blocked=False)  # resumed: nobody frees the slot any more
    rows.change(1, ticks[2], blocked=False)
    assert store.grants.sweep() == 1
    assert [rows.state(1, at) for at in ticks] == [State.SUCCEEDED, State.READY, State.PARKED]


def test_the_sweep_looks_at_every_group_and_fills_every_free_row(store: Store, rows: ClaimRows) -> None:
    rows.add_slot_rows(50, limit=2)
    for job in range(1, 7):
        rows.add(job, slot=50 if job < 5 else job, state=int(State.PARKED))
    rows.add(7, state=int(State.PARKED), origin=int(Origin.HELD))
    assert store.grants.sweep() == 5
    assert rows.states() == {State.READY: 5, State.PARKED: 2}


# --- orphans ------------------------------------------------------------------------------------------


def test_orphans_are_grants_the_worker_does_not_know(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 4):
        rows.add(job)
    known, unknown = step(store, room=2).grants
    step(store, worker_id=2)
    assert store.grants.orphans(1, [known.token]) == (unknown,)
    assert store.grants.orphans(1, [known.token, unknown.token]) == ()
    assert set(store.grants.orphans(1, [])) == {known, unknown}


def test_what_began_and_must_not_run_twice_is_no_orphan(store: Store, rows: ClaimRows) -> None:
    """Invariant 4: whoever runs it, giving it back would run it twice."""
    rows.add(1, at_most_once=True)
    rows.add(2, at_most_once=True)
    began, waits = step(store).grants
    store.grants.mark_started([began])
    assert store.grants.orphans(1, []) == (waits,)


def test_a_worker_registers_again_as_the_one_it_is(store: Store, rows: ClaimRows) -> None:
    register = ("host-1", "10.0.0.1", "0.1.0", 77, ["default"], 8)
    first = store.grants.register(*register)
    with rows.engine.begin() as connection:
        connection.execute(workers.delete())
    assert store.grants.register(*register, again=first) == first
    store.grants.unregister(first)
    assert store.grants.register(*register, again=first) == first
    with rows.engine.begin() as connection:
        (row,) = connection.execute(select(workers)).all()
    assert (row.worker_id, row.stopped_at) == (first, None)
