"""What operators do to claims and workers, and what it is worth against those who take and end them meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from sqlalchemy import insert, select, update

from sexton.claims import Origin, Overlap, State
from sexton.errors import NotFound, Refused
from sexton.store import open_store
from sexton.store.poison import pause_poison
from sexton.store.protocol import (
    Channel,
    Grant,
    RunResult,
    StepRequest,
    StepResult,
    StopOutcome,
    StopRequests,
    Store,
    StoreOptions,
    WorkerChoice,
)
from sexton.store.tables import events, jobs, workers
from tests.stores.conftest import OpenAnother
from tests.support.claim_rows import MINUTE, ClaimRows, now

LEASE = timedelta(seconds=30)
JOB = 1


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows(on_request=True)
    with scene.engine.begin() as connection:
        names = {"name": "bell", "name_key": "bell", "hash_seed": "bell"}
        connection.execute(insert(jobs).values(job_id=JOB, revision=1, created_at=now(), changed=1, **names))
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def step(store: Store, *results: RunResult, room: int = 100, worker_id: int = 1) -> StepResult:
    return store.grants.step(StepRequest(worker_id, ("default",), room, LEASE, 10, results))


def result(grant: Grant, outcome: State, **columns: object) -> RunResult:
    return RunResult(
        grant.job_id,
        grant.scheduled_at,
        grant.token,
        grant.attempt,
        outcome,
        now(),
        **columns,  # type: ignore[arg-type]  # checked by the dataclass
    )


def cancel(
    store: Store, tick: datetime | None = None, *, running_only: bool = False
) -> list[tuple[State, StopOutcome]]:
    done = store.operations.cancel(JOB, "mary@vm", "wrong data", tick, running_only=running_only)
    assert [one.scheduled_at for one in done] == sorted(one.scheduled_at for one in done)
    return [(one.state, one.outcome) for one in done]


def told(rows: ClaimRows) -> list[tuple[str, str]]:
    with rows.engine.begin() as connection:
        return [(row.actor, row.action) for row in connection.execute(select(events).order_by(events.c.event_id))]


# --- cancel -------------------------------------------------------------------------------------------


def test_of_a_job_all_that_fell_due_is_cancelled_and_what_is_ahead_is_not(store: Store, rows: ClaimRows) -> None:
    running = rows.add()
    (grant,) = step(store).grants
    parked = rows.add()
    assert step(store).grants == ()
    retried = rows.add(attempt=1, retries=1, available_at=now() + 60 * MINUTE)
    ahead = rows.add(scheduled_at=now() + MINUTE)
    other = rows.add(job_id=2)
    assert cancel(store) == [
        (State.RUNNING, StopOutcome.ASKED),
        (State.PARKED, StopOutcome.CANCELLED),
        (State.READY, StopOutcome.CANCELLED),
    ]
    for at in (parked, retried):
        row = rows.row(JOB, at)
        assert (row.state, row.reason, row.token) == (State.CANCELLED, "cancelled by mary@vm: wrong data", None)
        assert row.finished_at is not None
    assert rows.row(JOB, running).reason == "asked to stop by mary@vm: wrong data"
    assert rows.state(JOB, ahead) == rows.state(2, other) == State.READY
    assert store.grants.stop_requests(1) == StopRequests(frozenset({grant.token}), False)
    assert told(rows) == [("mary@vm", "job.cancelled")]


def test_a_second_operator_is_told_that_it_was_asked_and_nothing_is_recorded_twice(
    store: Store, rows: ClaimRows
) -> None:
    at, _ = rows.add(), rows.add()
    step(store)
    cancel(store)
    assert cancel(store) == [(State.RUNNING, StopOutcome.ASKED_BEFORE)]
    assert cancel(store, at) == [(State.RUNNING, StopOutcome.ASKED_BEFORE)]
    assert len(told(rows)) == 1


def test_only_what_runs_is_stopped_where_that_is_asked(store: Store, rows: ClaimRows) -> None:
    rows.add()
    step(store)
    waits = rows.add()
    assert cancel(store, running_only=True) == [(State.RUNNING, StopOutcome.ASKED)]
    assert rows.state(JOB, waits) == State.READY


@pytest.mark.parametrize("outcome", [State.READY, State.CANCELLED])
def test_a_run_that_was_asked_to_stop_ends_cancelled_and_is_not_retried(
    store: Store, rows: ClaimRows, outcome: State
) -> None:
    at = rows.add()
    (grant,) = step(store).grants
    cancel(store, at)
    step(store, result(grant, outcome))
    assert rows.state(JOB, at) == State.CANCELLED
    assert [run.outcome for run in rows.runs(JOB, at)] == [State.CANCELLED]
    assert cancel(store, at) == [(State.CANCELLED, StopOutcome.OVER)]


def test_what_came_after_those_that_were_told_is_not_cancelled(store: Store, rows: ClaimRows) -> None:
    told = rows.add()
    came = rows.add()
    stopped = store.operations.cancel(JOB, "mary@vm", "", among=[told])
    assert [one.scheduled_at for one in stopped] == [told]
    assert (rows.state(JOB, told), rows.state(JOB, came)) == (State.CANCELLED, State.READY)
    assert store.operations.cancel(JOB, "mary@vm", "", among=[]) == ()


def test_a_run_that_ended_by_itself_keeps_its_outcome(store: Store, rows: ClaimRows) -> None:
    at = rows.add()
    (grant,) = step(store).grants
    cancel(store, at)
    step(store, result(grant, State.SUCCEEDED))
    assert cancel(store, at) == [(State.SUCCEEDED, StopOutcome.OVER)]


def test_a_cancelled_run_whose_worker_is_dead_ends_with_its_lease(store: Store, rows: ClaimRows) -> None:
    at = rows.add()
    (grant,) = step(store).grants
    cancel(store, at)
    rows.expire_leases([grant.token])
    store.grants.requeue_expired()
    assert rows.state(JOB, at) == State.CANCELLED


def test_the_next_parked_claim_is_promoted_where_a_promoted_one_is_cancelled(store: Store, rows: ClaimRows) -> None:
    rows.add()
    (grant,) = step(store).grants
    first, second = rows.add(), rows.add()
    step(store)
    step(store, result(grant, State.SUCCEEDED), room=0)
    assert (rows.state(JOB, first), rows.state(JOB, second)) == (State.READY, State.PARKED)
    cancel(store, first)
    assert rows.state(JOB, second) == State.READY


def test_a_tick_to_come_is_cancelled_once_its_claim_is_written(store: Store, rows: ClaimRows) -> None:
    ahead = rows.add(scheduled_at=now() + MINUTE)
    assert cancel(store, ahead) == [(State.READY, StopOutcome.CANCELLED)]
    with pytest.raises(NotFound, match=r"has no claim for .* yet.*sexton pause bell"):
        cancel(store, now() + 30 * MINUTE)
    with pytest.raises(NotFound, match="sexton ticks bell"):
        cancel(store, now() - 30 * MINUTE)


def test_a_worker_is_woken_for_what_is_to_be_stopped_and_who_waits_for_its_end(
    store: Store, rows: ClaimRows, open_another: OpenAnother
) -> None:
    rows.add()
    (grant,) = step(store).grants
    wakeup = threading.Event()
    listener = open_another().listen([Channel.WORK], threading.Event(), {Channel.STOPS: wakeup})
    assert wakeup.wait(60)  # it listens
    wakeup.clear()
    cancel(store)
    assert wakeup.wait(60)
    wakeup.clear()
    step(store, result(grant, State.CANCELLED))
    assert wakeup.wait(60)
    listener.close()


def test_claims_that_are_cancelled_pulled_and_ended_at_once_end_in_one_way(
    store: Store, rows: ClaimRows, ledger_url: str
) -> None:
    """Each claim either never ran, or its run was asked to stop; none is left, and none changed but by an arrow."""
    rows.add_slot_rows(JOB, 3)
    for _ in range(60):
        rows.add(overlap=int(Overlap.QUEUE))
    begun, over = threading.Event(), threading.Event()

    def work(worker_id: int) -> None:
        with closing(open_store(StoreOptions(ledger_url))) as own:
            held: list[Grant] = []
            while not over.is_set():
                answer = step(own, *(result(one, State.READY) for one in held), room=2, worker_id=worker_id)
                held = list(answer.grants)
                begun.set()
            step(own, *(result(one, State.READY) for one in held), room=0, worker_id=worker_id)

    threads = [threading.Thread(target=work, args=[worker]) for worker in (1, 2)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    cancel(store)
    over.set()
    for thread in threads:
        thread.join()
    assert rows.states() == {State.CANCELLED: 60}


# --- rerun --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.LOST, State.SKIPPED, State.CANCELLED])
def test_an_ended_claim_is_ready_again_with_its_history(store: Store, rows: ClaimRows, state: State) -> None:
    at = rows.add(overlap=int(Overlap.SKIP), origin=int(Origin.BACKFILL))
    if state is State.SKIPPED:
        rows.change(JOB, at, state=int(State.SKIPPED), finished_at=now(), reason="overlap skip")
    else:
        (grant,) = step(store).grants
        rows.change(JOB, at, retries=2, losses=2)
        step(store, result(grant, state))
    attempts = 1  # also of one that never ran: nobody decides it as late, or sweeps it from a full queue
    done = store.operations.rerun(JOB, at, "mary@vm", "fixed")
    assert (done.was, done.attempt, done.is_paused) == (state, attempts, False)
    row = rows.row(JOB, at)
    assert (row.state, row.origin, row.overlap) == (State.READY, Origin.BACKFILL, Overlap.QUEUE)
    assert (row.retries, row.losses, row.finished_at, row.reason) == (0, 0, None, None)
    (again,) = step(store).grants
    assert again.attempt == attempts + 1
    step(store, result(again, State.SUCCEEDED))
    assert [run.attempt for run in rows.runs(JOB, at)] == ([2] if state is State.SKIPPED else [1, 2])
    assert told(rows) == [("mary@vm", "job.rerun")]


def test_a_cancelled_run_that_is_run_again_is_not_cancelled_again(store: Store, rows: ClaimRows) -> None:
    at = rows.add()
    (grant,) = step(store).grants
    cancel(store, at)
    step(store, result(grant, State.CANCELLED))
    store.operations.rerun(JOB, at, "mary@vm", "")
    (again,) = step(store).grants
    assert store.grants.stop_requests(1).cancel == frozenset()
    step(store, result(again, State.READY, retry_at=now()), room=0)
    assert rows.state(JOB, at) == State.READY


def test_what_has_not_ended_is_held_or_retired_is_not_run_again(store: Store, rows: ClaimRows) -> None:
    at = rows.add()
    with pytest.raises(Refused, match="has not ended: it is ready"):
        store.operations.rerun(JOB, at, "mary@vm", "")
    step(store)
    with pytest.raises(Refused, match="has not ended: it is running"):
        store.operations.rerun(JOB, at, "mary@vm", "")
    held = rows.add(state=int(State.HELD))
    with pytest.raises(Refused, match="held for an answer"):
        store.operations.rerun(JOB, held, "mary@vm", "")
    over = rows.add(state=int(State.FAILED), finished_at=now())
    with rows.engine.begin() as connection:
        connection.execute(update(jobs).values(retired_at=now()))
    with pytest.raises(Refused, match="the job bell is retired"):
        store.operations.rerun(JOB, over, "mary@vm", "")
    with pytest.raises(NotFound):
        store.operations.rerun(JOB, now(), "mary@vm", "")
    assert told(rows) == []


def test_a_rerun_of_a_paused_job_waits_for_its_resume(store: Store, rows: ClaimRows) -> None:
    with rows.engine.begin() as connection:
        connection.execute(update(jobs).values(paused_at=now()))
    scheduled = rows.add(state=int(State.FAILED), finished_at=now())
    manual = rows.add(state=int(State.FAILED), finished_at=now(), origin=int(Origin.MANUAL))
    assert store.operations.rerun(JOB, scheduled, "mary@vm", "").is_paused
    assert not store.operations.rerun(JOB, manual, "mary@vm", "").is_paused
    assert [grant.scheduled_at for grant in step(store).grants] == [manual]


def test_two_who_ask_for_one_rerun_get_one(store: Store, rows: ClaimRows, ledger_url: str) -> None:
    at = rows.add(state=int(State.FAILED), finished_at=now())
    answers: list[bool] = []

    def ask() -> None:
        with closing(open_store(StoreOptions(ledger_url))) as own:
            try:
                own.operations.rerun(JOB, at, "mary@vm", "")
            except Refused:
                answers.append(False)
            else:
                answers.append(True)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, False, False, True]


# --- poison -------------------------------------------------------------------------------------------


def test_a_job_is_poison_once_its_last_two_ticks_took_three_workers_each(store: Store, rows: ClaimRows) -> None:
    def ran(state: State, losses: int) -> None:
        rows.add(state=int(state), losses=losses, finished_at=now())

    def is_poison() -> bool:
        return store.operations.poisoned([JOB, 2]) == ((JOB, "bell"),)

    ran(State.LOST, 3)
    rows.add()
    assert not is_poison()  # one tick
    ran(State.LOST, 3)
    assert is_poison()
    ran(State.LOST, 1)
    assert not is_poison()  # on_worker_lost: fail, and one worker lost
    ran(State.LOST, 3)
    ran(State.SUCCEEDED, 2)
    assert not is_poison()
    ran(State.LOST, 3)
    ran(State.LOST, 4)
    assert is_poison()
    with rows.engine.begin() as connection:
        connection.execute(update(jobs).values(paused_at=now()))
    assert store.operations.poisoned([JOB]) == ()


def test_poison_is_paused_once(store: Store, rows: ClaimRows) -> None:
    for _ in range(2):
        rows.add(state=int(State.LOST), losses=3, finished_at=now())
    assert pause_poison(store, {JOB, 2}, "for a reason") == ["bell"]
    with rows.engine.connect() as connection:
        assert connection.execute(select(jobs.c.paused_at).where(jobs.c.job_id == JOB)).scalar_one() is not None
    assert pause_poison(store, {JOB, 2}, "for a reason") == []


# --- drain --------------------------------------------------------------------------------------------


def test_a_drain_is_taken_back_only_while_nobody_asked_anew(store: Store, rows: ClaimRows) -> None:
    worker = store.grants.register("w1", "vm", "0.1.0", 1, ["default"], 4)
    store.grants.register("w2", "vm", "0.1.0", 2, ["default"], 4)
    (mine,) = store.operations.drain(WorkerChoice(name="w1"), "mary@vm")

    def takes_back(event: int | None) -> bool:
        done = store.operations.drain(WorkerChoice(name="w1"), "mary@vm", asked=False, since=event)
        return done[0].changed

    store.operations.drain(WorkerChoice(name="w1"), "bob@vm", asked=False)
    assert not takes_back(mine.event)
    (of_bob,) = store.operations.drain(WorkerChoice(name="w1"), "bob@vm")
    assert not takes_back(mine.event)
    assert store.grants.stop_requests(worker).drain
    store.operations.drain(WorkerChoice(name="w2"), "eve@vm")  # of another worker
    assert takes_back(of_bob.event)
    assert not store.grants.stop_requests(worker).drain


def test_workers_are_asked_to_drain_by_name_version_or_queue(store: Store, rows: ClaimRows) -> None:
    one = store.grants.register("w1", "vm", "0.1.0", 1, ["default"], 4)
    two = store.grants.register("w2", "vm", "0.2.0", 2, ["default", "gpu"], 4)
    gone = store.grants.register("w3", "vm", "0.1.0", 3, ["gpu"], 4)
    store.grants.unregister(gone)

    def asked(choice: WorkerChoice, *, asked: bool = True) -> list[tuple[int, bool]]:
        done = store.operations.drain(choice, "mary@vm", asked=asked)
        return [(worker.worker_id, worker.changed) for worker in done]

    assert asked(WorkerChoice(name="w1")) == [(one, True)]
    assert asked(WorkerChoice(name="w1")) == [(one, False)]
    assert asked(WorkerChoice(version="0.1.0"), asked=False) == [(one, True)]
    assert asked(WorkerChoice(queue="gpu")) == [(two, True)]
    assert asked(WorkerChoice(name="w3")) == []
    assert [store.grants.stop_requests(worker).drain for worker in (one, two)] == [False, True]
    with rows.engine.begin() as connection:
        connection.execute(update(workers).values(seen_at=now() - 11 * MINUTE))
    assert asked(WorkerChoice(queue="default")) == []
    assert [action for _, action in told(rows)] == [
        "workers.asked_to_drain",
        "workers.drain_taken_back",
        "workers.asked_to_drain",
    ]
