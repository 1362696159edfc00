"""Slots and rates of queues hold in every pull, and nothing sleeps through its chance; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.queue_rules import OTHERS_WAIT, QueueRule
from sexton.store.protocol import Channel, Grant, RunResult, StepRequest, StepResult, Store
from sexton.store.pull_turns import CYCLE
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.queue_rows import limit, open_at, opens_at
from tests.support.waiting import eventually

LEASE = timedelta(seconds=30)
DAY = timedelta(days=1)
OpenAnother = Callable[..., Store]


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def step(store: Store, *results: RunResult, room: int = 100, **changes: Any) -> StepResult:
    values: dict[str, Any] = {"worker_id": 1, "queues": ("default",), "lease": LEASE, "catch_up_concurrency": 10}
    return store.grants.step(StepRequest(room=room, results=results, **(values | changes)))


def ended(grant: Grant, outcome: State = State.SUCCEEDED, **changes: Any) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now(), **changes)


def add(rows: ClaimRows, *jobs: int, **columns: Any) -> None:
    for job in jobs:
        rows.add(job, **columns)


def add_many(rows: ClaimRows, jobs: Iterable[int], **columns: Any) -> None:
    rows.add_many(claim_values(job, START, overlap=int(Overlap.ALLOW), **columns) for job in jobs)


def jobs_of(result: StepResult) -> list[int]:
    return [grant.job_id for grant in result.grants]


# --- slots ----------------------------------------------------------------------------------------


def test_no_more_claims_of_a_queue_run_than_it_has_slots(store: Store, rows: ClaimRows) -> None:
    limit(rows, slots=2)
    add(rows, *range(1, 6))
    first = step(store)
    assert jobs_of(first) == [1, 2]
    assert jobs_of(step(store)) == []
    assert jobs_of(step(store, ended(first.grants[0]))) == [3]
    assert rows.states()[State.RUNNING] == 2


def test_a_run_that_goes_back_frees_its_slot_of_the_queue(store: Store, rows: ClaimRows) -> None:
    """Given back, retried or lost with its lease: what does not run does not count."""
    limit(rows, slots=1)
    add(rows, 1, 2)
    (first,) = step(store).grants
    (second,) = step(store, ended(first, State.READY, retry_at=now() + MINUTE)).grants
    assert second.job_id == 2
    rows.expire_leases([second.token])
    store.grants.requeue_expired()
    assert jobs_of(step(store)) == [2]


def test_the_other_queues_are_pulled_as_ever(store: Store, rows: ClaimRows) -> None:
    limit(rows, "gpu", slots=1)
    add(rows, 1, 2, queue="gpu")
    add(rows, 3, 4)
    assert jobs_of(step(store, queues=("default", "gpu"))) == [3, 4, 1]
    assert jobs_of(step(store, queues=("gpu",))) == []


def test_a_limit_lowered_while_runs_are_in_flight_stops_no_run_and_grants_none(store: Store, rows: ClaimRows) -> None:
    limit(rows, slots=3)
    add(rows, *range(1, 6))
    grants = step(store).grants
    store.edits.set_queue_rule("default", {"slots": "1"}, "ann@host")
    assert jobs_of(step(store, ended(grants[0]))) == []
    assert jobs_of(step(store, ended(grants[1]))) == []
    assert jobs_of(step(store, ended(grants[2]))) == [4]


def test_a_rule_counts_from_its_commit_and_until_it_is_lifted(store: Store, rows: ClaimRows) -> None:
    """No worker has to learn of it: each pull looks for itself."""
    add(rows, 1, 2, 3)
    (first,) = step(store, room=1).grants
    store.edits.set_queue_rule("default", {"slots": "1"}, "ann@host")
    assert jobs_of(step(store)) == []
    store.edits.set_queue_rule("default", {"slots": "none"}, "ann@host")
    assert jobs_of(step(store)) == [2, 3]
    assert first.job_id == 1


def test_of_the_room_paced_claims_of_all_queues_get_no_more_than_their_own(store: Store, rows: ClaimRows) -> None:
    limit(rows, "gpu", slots=4)
    add(rows, *range(1, 4), queue="gpu", origin=int(Origin.CATCH_UP))
    add(rows, *range(11, 14), origin=int(Origin.HELD))
    add(rows, 4, queue="gpu")
    for _ in range(2):  # by turns
        granted = step(store, queues=("default", "gpu"), room=9, paced_room=2).grants
        assert sum(grant.origin.is_paced for grant in granted) == 2


def test_paced_claims_of_a_limited_queue_keep_both_limits(store: Store, rows: ClaimRows) -> None:
    limit(rows, "gpu", slots=4)
    add(rows, 1, queue="gpu")
    add(rows, *range(2, 9), queue="gpu", origin=int(Origin.CATCH_UP))
    add(rows, *range(11, 19), origin=int(Origin.BACKFILL))
    queues = ("default", "gpu")
    by_class = step(store, queues=queues, catch_up_concurrency=2)
    assert len(by_class.grants) == 3, "the live one, and what the class allows"
    by_queue = step(store, queues=queues, catch_up_concurrency=100)
    running = [grant for grant in (*by_class.grants, *by_queue.grants) if grant.job_id < 10]
    assert len(running) <= 4
    for _ in range(2):  # by turns
        step(store, queues=queues, catch_up_concurrency=100)
    states = [rows.row(job, grant.scheduled_at).state for job, grant in ((one.job_id, one) for one in running)]
    assert all(state == State.RUNNING for state in states)
    assert rows.states()[State.RUNNING] == 4 + 8


def test_the_order_of_a_limited_queue_is_that_of_any(store: Store, rows: ClaimRows) -> None:
    limit(rows, slots=3)
    add(rows, 1, priority=-1)
    add(rows, 2, 3)
    add(rows, 4, priority=2)
    assert jobs_of(step(store)) == [4, 2, 3]


def test_a_claim_that_waits_for_its_job_takes_no_slot_of_the_queue(store: Store, rows: ClaimRows) -> None:
    limit(rows, slots=2)
    add(rows, 1, 1, 2)  # two ticks of one job, which does not overlap
    first = step(store)
    assert jobs_of(first) == [1]
    assert first.picked == 2
    assert jobs_of(step(store)) == [2]
    assert rows.states() == {State.RUNNING: 2, State.PARKED: 1}


# --- rates ----------------------------------------------------------------------------------------


def test_a_rate_admits_one_second_of_it_at_once_and_no_more(store: Store, rows: ClaimRows) -> None:
    limit(rows, rate=5.0, next_at=now() - DAY)
    add(rows, *range(1, 21))
    before = now()
    assert jobs_of(step(store)) == [1, 2, 3, 4, 5]
    next_at = opens_at(rows)
    assert next_at is not None
    assert next_at > before


def test_a_worker_comes_back_when_the_rate_opens_and_others_later(
    store: Store, rows: ClaimRows, open_another: OpenAnother
) -> None:
    limit(rows, rate=1 / 86_400, next_at=now() - MINUTE)
    add(rows, 1, 2)
    first = step(store)
    assert jobs_of(first) == [1]
    next_at = opens_at(rows)
    assert next_at is not None
    assert abs(next_at - (first.now + DAY)) < MINUTE
    assert first.next_available_at == next_at
    assert step(store).next_available_at == next_at, "who was granted the last one"
    assert step(open_another()).next_available_at == next_at + OTHERS_WAIT
    open_at(rows, now() - MINUTE)
    assert jobs_of(step(store)) == [2]


def test_a_worker_comes_for_a_claim_written_ahead_when_claim_and_rate_allow(store: Store, rows: ClaimRows) -> None:
    soon = now() + MINUTE
    rows.add(1, soon, available_at=soon)
    limit(rows, rate=1 / 86_400, next_at=now() - MINUTE)
    assert step(store).next_available_at == soon
    later = now() + timedelta(hours=1)
    open_at(rows, later)
    assert step(store).next_available_at == later


def test_a_clock_that_jumped_back_does_not_shut_a_queue(store: Store, rows: ClaimRows) -> None:
    limit(rows, rate=10.0, next_at=now() + 400 * DAY)
    add(rows, 1, 2, 3)
    before = now()
    assert jobs_of(step(store)) == [1]
    next_at = opens_at(rows)
    assert next_at is not None
    assert before < next_at < now() + timedelta(seconds=1)


def test_a_step_that_grants_nothing_uses_nothing_of_the_rate(store: Store, rows: ClaimRows) -> None:
    limit(rows, rate=1.0, next_at=now() - DAY)
    before = opens_at(rows)
    assert jobs_of(step(store)) == []
    add(rows, 1)
    rows.halt(True)
    assert jobs_of(step(store)) == []
    assert opens_at(rows) == before
    rows.halt(False)
    assert jobs_of(step(store)) == [1]


def test_slots_and_rate_hold_together(store: Store, rows: ClaimRows) -> None:
    limit(rows, slots=3, rate=1 / 86_400, next_at=now() - MINUTE)
    add(rows, 1, 2, 3)
    (grant,) = step(store).grants
    assert jobs_of(step(store, ended(grant))) == [], "a slot is free, the rate is not"
    limit(rows, slots=3, rate=100.0, next_at=now() - MINUTE)
    assert jobs_of(step(store)) == [2, 3]


# --- who is first, and who is told ----------------------------------------------------------------


def test_endless_urgent_work_does_not_starve_a_low_priority(store: Store, rows: ClaimRows) -> None:
    """Urgent claims come first in every step but one of a cycle: the classes between have no work."""
    add(rows, 1, 2, priority=-2)
    add_many(rows, range(101, 101 + CYCLE), priority=2)
    granted = [job for _ in range(CYCLE) for job in jobs_of(step(store, room=1))]
    assert len(granted) == CYCLE
    assert granted.count(1) == 1
    assert sum(job > 100 for job in granted) == CYCLE - 1


@pytest.mark.parametrize(("priority", "steps"), [(2, 3), (0, 5), (-2, 9)])
def test_endless_work_of_other_queues_does_not_starve_a_limited_one(
    store: Store, rows: ClaimRows, priority: int, steps: int
) -> None:
    limit(rows, "gpu", slots=1)
    at = rows.add(1, queue="gpu", priority=priority)
    add_many(rows, range(2, 30), priority=2)
    for _ in range(steps):
        result = step(store, room=1, queues=("default", "gpu"))
        assert result.picked >= 1, "a worker with room looks again at once"
        if rows.state(1, at) == State.RUNNING:
            return
    pytest.fail(f"not granted in {steps} steps")


def test_a_reserved_room_that_the_limited_queue_does_not_use_is_asked_for_again(
    store: Store, rows: ClaimRows, open_another: OpenAnother
) -> None:
    """Else a worker would sleep beside a backlog of its other queues."""
    limit(rows, "gpu", slots=1)
    add(rows, 1, queue="gpu", priority=2)
    add_many(rows, range(2, 30))
    while jobs_of(step(store, room=1, queues=("default", "gpu"))) != [1]:
        if jobs_of(step(open_another(), queues=("gpu",))) == [1]:
            break
    for _ in range(4):
        assert step(store, room=1, queues=("default", "gpu")).picked >= 1


def test_a_lifted_limit_leaves_no_room_reserved(store: Store, rows: ClaimRows) -> None:
    limit(rows, "gpu", slots=1)
    add(rows, 1, queue="gpu", priority=-2)
    add_many(rows, range(2, 30), priority=2)
    queues = ("default", "gpu")
    assert jobs_of(step(store, room=1, queues=queues)) == [2]
    store.edits.set_queue_rule("gpu", {"slots": "none"}, "ann@host")
    assert all(len(step(store, room=1, queues=queues).grants) == 1 for _ in range(9))


def test_a_freed_slot_wakes_others_when_its_worker_has_no_room(
    store: Store, rows: ClaimRows, open_another: OpenAnother
) -> None:
    limit(rows, slots=1)
    add(rows, 1, 2)
    (grant,) = step(store).grants
    wakeup = threading.Event()
    listener = open_another().listen((Channel.WORK,), wakeup)
    eventually(wakeup.is_set, within=60, what="the listener is there")
    try:
        wakeup.clear()
        step(store, ended(grant), room=0)
        assert wakeup.wait(60)
    finally:
        listener.close()
    assert jobs_of(step(open_another())) == [2]


# --- what operators set ---------------------------------------------------------------------------


def test_a_rule_is_set_shown_audited_and_lifted(store: Store, rows: ClaimRows) -> None:
    change = store.edits.set_queue_rule("gpu", {"slots": "4", "rate": "30/h"}, "ann@host")
    assert (change.before, change.after) == (QueueRule(), QueueRule(4, 30 / 3600))
    add(rows, 1, 2, queue="gpu")
    assert len(step(store, queues=("gpu",)).grants) == 1, "a new rate begins with one grant"
    (queue,) = store.reads.queues()
    assert (queue.name, queue.due, queue.running, queue.rule) == ("gpu", 1, 1, QueueRule(4, 30 / 3600))
    assert store.edits.set_queue_rule("gpu", {"slots": "4"}, "ann@host").after == change.after
    assert store.edits.set_queue_rule("gpu", {"slots": "none", "rate": "none"}, "bob@host").after == QueueRule()
    events = store.reads.events_page(action="queue.changed")
    assert [(event.actor, dict(event.detail)) for event in events] == [
        (
            "bob@host",
            {"queue": "gpu", "from": "slots 4, rate 30/h", "to": "slots none, rate none"},
        ),
        (
            "ann@host",
            {"queue": "gpu", "from": "slots none, rate none", "to": "slots 4, rate 30/h"},
        ),
    ], "and what changed nothing is no event"
    assert jobs_of(step(store, queues=("gpu",))) == [2]


def test_changing_the_slots_leaves_the_rate_where_it_was(store: Store, rows: ClaimRows) -> None:
    next_at = now() + timedelta(hours=7)
    limit(rows, slots=1, rate=1 / 86_400, next_at=next_at)
    store.edits.set_queue_rule("default", {"slots": "2"}, "ann@host")
    assert opens_at(rows) == next_at
    store.edits.set_queue_rule("default", {"rate": "10/s"}, "ann@host")
    assert opens_at(rows) != next_at
