"""What a pull grants, in which order, and what it leaves; on both databases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from sexton.claims import Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import Grant, RunResult, StepRequest, StepResult, Store, StoreOptions
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now

LEASE = timedelta(seconds=30)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def pull(store: Store, room: int = 100, **changes: Any) -> StepResult:
    values: dict[str, Any] = {"worker_id": 1, "queues": ("default",), "lease": LEASE, "catch_up_concurrency": 10}
    return store.grants.step(StepRequest(room=room, **(values | changes)))


def ended(grant: Grant, outcome: State = State.SUCCEEDED, **changes: Any) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now(), **changes)


def jobs_of(result: StepResult) -> list[int]:
    return [grant.job_id for grant in result.grants]


def test_a_grant_carries_the_claim_its_token_and_its_lease(store: Store, rows: ClaimRows) -> None:
    at = rows.add(7, revision=3, jitter_ms=1500, at_most_once=True, retries=2, start_by=now() + MINUTE)
    result = pull(store)
    (grant,) = result.grants
    assert (grant.job_id, grant.scheduled_at, grant.revision, grant.origin) == (7, at, 3, Origin.SCHEDULE)
    assert (grant.attempt, grant.retries, grant.slot, grant.at_most_once) == (1, 2, 7, True)
    assert grant.jitter == timedelta(milliseconds=1500)
    assert abs(grant.lease_expires_at - (result.now + LEASE)) < timedelta(seconds=1)
    claim = rows.row(7, at)
    assert (claim.state, claim.token, claim.worker_id, claim.attempt) == (State.RUNNING, grant.token, 1, 1)
    assert claim.lease_expires_at == grant.lease_expires_at
    assert claim.granted_at is not None
    assert claim.start_by is None
    assert rows.slot_tokens(7) == [grant.token]


def test_tokens_grow_with_every_grant(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 6):
        rows.add(job)
    first = [grant.token for grant in pull(store, room=3).grants]
    second = [grant.token for grant in pull(store).grants]
    assert len(set(first + second)) == 5
    assert max(first) < min(second)


def test_nothing_is_pulled_before_it_is_available(store: Store, rows: ClaimRows) -> None:
    soon, later = now() + MINUTE, now() + 2 * MINUTE
    rows.add(1, soon, available_at=later)
    rows.add(2, later, available_at=later + MINUTE)
    result = pull(store)
    assert (result.grants, result.picked) == ((), 0)
    assert result.next_available_at == later


def test_the_next_available_instant_is_ahead_and_of_these_queues_in_any_class(store: Store, rows: ClaimRows) -> None:
    ahead = [now() + number * MINUTE for number in range(1, 6)]
    rows.add(1)  # due now: not ahead, also when it cannot be granted
    rows.add(2, ahead[0], queue="other")
    rows.add(3, ahead[3], priority=-2, origin=int(Origin.CATCH_UP))
    rows.add(4, ahead[4], priority=2)
    rows.add(5, ahead[1], blocked=True)
    assert pull(store, room=0).next_available_at == ahead[3]
    assert pull(store, room=0, queues=("default", "other")).next_available_at == ahead[0]
    assert pull(store, room=0, queues=("unknown",)).next_available_at is None


def test_higher_priorities_first_then_the_longest_due(store: Store, rows: ClaimRows) -> None:
    for job, priority in enumerate((-2, 0, 2, 1, -1, 2), start=1):
        rows.add(job, priority=priority)
    order = [jobs_of(pull(store, room=1))[0] for _ in range(2)]
    assert order + jobs_of(pull(store)) == [3, 6, 4, 2, 5, 1]


def test_live_claims_before_paced_ones_whatever_their_priority(store: Store, rows: ClaimRows) -> None:
    for job, origin in enumerate((Origin.CATCH_UP, Origin.HELD, Origin.BACKFILL), start=1):
        rows.add(job, origin=int(origin), priority=2)
    rows.add(8, origin=int(Origin.SCHEDULE), priority=-2)
    rows.add(9, origin=int(Origin.MANUAL), priority=-2)
    assert sorted(jobs_of(pull(store, room=2))) == [8, 9]
    assert jobs_of(pull(store, room=2)) == [1, 2]
    assert jobs_of(pull(store, room=2)) == [3]


def test_one_step_takes_both_classes_where_there_is_room(store: Store, rows: ClaimRows) -> None:
    rows.add(1, origin=int(Origin.CATCH_UP))
    rows.add(2)
    assert jobs_of(pull(store)) == [2, 1]


def test_at_most_the_allowed_number_of_paced_claims_run_at_once(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 8):
        rows.add(job, origin=int(Origin.BACKFILL))
    first = pull(store, catch_up_concurrency=3)
    assert len(first.grants) == 3
    assert pull(store, catch_up_concurrency=3, worker_id=2).grants == ()
    freed = pull(store, catch_up_concurrency=3, results=(ended(first.grants[0]),))
    assert len(freed.grants) == 1
    assert pull(store, catch_up_concurrency=5, worker_id=2).grants != ()


def test_the_room_is_respected(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 11):
        rows.add(job, origin=int(Origin.SCHEDULE if job % 2 else Origin.CATCH_UP), overlap=int(Overlap.ALLOW))
    assert len(pull(store, room=7).grants) == 7
    assert pull(store, room=0).grants == ()
    assert len(pull(store, room=7).grants) == 3


def test_only_the_named_queues_are_pulled(store: Store, rows: ClaimRows) -> None:
    rows.add(1, queue="one")
    rows.add(2, queue="two")
    rows.add(3, queue="three")
    assert sorted(jobs_of(pull(store, queues=("one", "three")))) == [1, 3]
    assert pull(store, queues=()).grants == ()


def test_a_full_queue_does_not_starve_the_next(store: Store, rows: ClaimRows) -> None:
    rows.add_many(claim_values(job, START, queue="full") for job in range(1, 50))
    rows.add(99, queue="other")
    seen = {job for _ in range(4) for job in jobs_of(pull(store, room=1, queues=("full", "other")))}
    assert 99 in seen


def test_a_claim_whose_start_by_has_passed_is_left_to_housekeeping(store: Store, rows: ClaimRows) -> None:
    late = rows.add(1, start_by=now() - MINUTE)
    rows.add(2, start_by=now() + MINUTE)
    rows.add(3, start_by=None)
    assert jobs_of(pull(store)) == [2, 3]
    assert rows.state(1, late) == State.READY


def test_blocked_claims_are_not_pulled(store: Store, rows: ClaimRows) -> None:
    rows.add(1, blocked=True)
    rows.add(2, blocked=True, origin=int(Origin.HELD))
    assert pull(store).picked == 0


def test_a_halted_cluster_grants_nothing_and_still_takes_results(store: Store, rows: ClaimRows) -> None:
    first = rows.add(1)
    (grant,) = pull(store).grants
    rows.add(2)
    rows.add(3, origin=int(Origin.CATCH_UP))
    rows.halt(True)
    result = pull(store, results=(ended(grant),))
    assert result.grants == ()
    assert result.accepted == {grant.token}
    assert rows.state(1, first) == State.SUCCEEDED
    rows.halt(False)
    assert sorted(jobs_of(pull(store))) == [2, 3]


# --- slots ------------------------------------------------------------------------------------------


def test_the_oldest_claim_takes_the_slot_and_the_others_park(store: Store, rows: ClaimRows) -> None:
    first, second, third = (rows.add(1) for _ in range(3))
    result = pull(store)
    assert [grant.scheduled_at for grant in result.grants] == [first]
    assert result.picked == 3
    assert [rows.state(1, at) for at in (second, third)] == [State.PARKED, State.PARKED]


def test_oldest_means_the_tick_not_when_it_became_available(store: Store, rows: ClaimRows) -> None:
    retried = rows.add(1, available_at=START + 5 * MINUTE, attempt=1)
    younger = rows.add(1, available_at=START + 2 * MINUTE)
    assert [grant.scheduled_at for grant in pull(store).grants] == [retried]
    assert rows.state(1, younger) == State.PARKED


_CONTENTION = """CREATE FUNCTION contention() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'for a test' USING ERRCODE = 'deadlock_detected'; END $$"""


@pytest.mark.parametrize(
    "trigger",
    [
        "BEFORE UPDATE ON claims FOR EACH ROW WHEN (OLD.origin = 1)",
        "BEFORE INSERT ON counters FOR EACH ROW WHEN (NEW.name = 'stale_results')",
    ],
    ids=["paced pull", "counting"],
)
def test_contention_after_the_commit_costs_its_own_statement_alone(postgres_ledger: str, trigger: str) -> None:
    rows = ClaimRows(postgres_ledger)
    with rows.engine.begin() as connection:
        connection.execute(text(_CONTENTION))
        connection.execute(text(f"CREATE TRIGGER contention {trigger} EXECUTE FUNCTION contention()"))
    with contextlib.closing(open_store(StoreOptions(postgres_ledger))) as store:
        first = rows.add(1)
        (grant,) = pull(store, room=1).grants
        rows.add(2, origin=int(Origin.CATCH_UP))
        rows.add(3)
        stale = ended(grant)._replace(token=grant.token + 1_000)
        result = pull(store, results=(ended(grant), stale))
        assert result.accepted == {grant.token}
        assert 3 in jobs_of(result)
        assert rows.row(1, first).state == State.SUCCEEDED
    rows.close()


def test_a_busy_slot_parks_what_comes_later(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    (grant,) = pull(store).grants
    later = rows.add(1)
    result = pull(store, worker_id=2)
    assert (result.grants, result.picked) == ((), 1)
    assert rows.state(1, later) == State.PARKED
    assert rows.slot_tokens(1) == [grant.token]


def test_a_skip_s_reason_names_the_worker_as_people_do(store: Store, rows: ClaimRows) -> None:
    worker_id = store.grants.register("ringer", "host", "1", 1, ["default"], 4)
    rows.add(1, overlap=int(Overlap.SKIP))
    assert len(pull(store, worker_id=worker_id).grants) == 1
    later = rows.add(1, overlap=int(Overlap.SKIP))
    pull(store, worker_id=worker_id)
    assert ", on ringer) was not over" in rows.row(1, later).reason


def test_skip_ends_a_claim_that_meets_a_busy_slot_and_names_the_run(store: Store, rows: ClaimRows) -> None:
    rows.add(1, overlap=int(Overlap.SKIP))
    (grant,) = pull(store, worker_id=17).grants
    later = rows.add(1, overlap=int(Overlap.SKIP))
    assert pull(store, worker_id=2).grants == ()
    claim = rows.row(1, later)
    assert claim.state == State.SKIPPED
    assert claim.finished_at is not None
    assert (
        claim.reason
        == f"overlap skip: the run of 2026-01-01T00:00:00.000000Z (token {grant.token}, on worker 17) was not over"
    )


def test_skip_names_the_run_that_the_same_pull_granted(store: Store, rows: ClaimRows) -> None:
    first = rows.add(1, overlap=int(Overlap.SKIP))
    second = rows.add(1, overlap=int(Overlap.SKIP))
    (grant,) = pull(store).grants
    assert grant.scheduled_at == first
    claim = rows.row(1, second)
    assert claim.state == State.SKIPPED
    assert f"(token {grant.token}, on worker 1)" in claim.reason


@pytest.mark.parametrize("origin", [Origin.CATCH_UP, Origin.HELD, Origin.BACKFILL, Origin.MANUAL])
def test_skip_never_eats_what_somebody_asked_for(store: Store, rows: ClaimRows, origin: Origin) -> None:
    rows.add(1, overlap=int(Overlap.SKIP))
    assert len(pull(store).grants) == 1
    asked = rows.add(1, overlap=int(Overlap.SKIP), origin=int(origin))
    assert pull(store).grants == ()
    assert rows.state(1, asked) == State.PARKED


def test_skip_never_eats_a_claim_granted_before(store: Store, rows: ClaimRows) -> None:
    rows.add(1, overlap=int(Overlap.SKIP))
    assert len(pull(store).grants) == 1
    retried = rows.add(1, overlap=int(Overlap.SKIP), attempt=1)
    assert pull(store).grants == ()
    assert rows.state(1, retried) == State.PARKED


def test_allow_takes_no_slot(store: Store, rows: ClaimRows) -> None:
    for _ in range(3):
        rows.add(1, overlap=int(Overlap.ALLOW))
    result = pull(store)
    assert len(result.grants) == 3
    assert rows.slot_tokens(1) == [None]


def test_a_group_of_several_rows_grants_as_many_as_it_has(store: Store, rows: ClaimRows) -> None:
    rows.add_slot_rows(50, limit=3)
    ticks = [rows.add(job, slot=50) for job in range(1, 6)]
    result = pull(store)
    assert jobs_of(result) == [1, 2, 3]
    assert sorted(rows.slot_tokens(50), key=str) == sorted((grant.token for grant in result.grants), key=str)
    assert [rows.state(job, at) for job, at in zip((4, 5), ticks[3:], strict=True)] == [State.PARKED] * 2
    more = pull(store, results=(ended(result.grants[1]),))
    assert jobs_of(more) == [4]


def test_a_claim_without_slot_rows_waits_and_stops_nobody(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    rows.add(2)
    stray = START + 90 * MINUTE
    rows.add_many([claim_values(1, stray, slot=1)])
    rows.change(1, stray, slot=404)
    assert sorted(jobs_of(pull(store))) == [1, 2]
    assert rows.state(1, stray) == State.READY


def test_replace_queues_until_it_is_built(store: Store, rows: ClaimRows) -> None:
    rows.add(1, overlap=int(Overlap.REPLACE))
    second = rows.add(1, overlap=int(Overlap.REPLACE))
    assert len(pull(store).grants) == 1
    assert rows.state(1, second) == State.PARKED


def test_of_the_room_paced_claims_get_no_more_than_their_own(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 7):
        rows.add(job, origin=int(Origin.CATCH_UP))
    rows.add(8)
    first = pull(store, room=6, paced_room=2)
    assert len(first.grants) == 3
    assert jobs_of(first)[0] == 8
    assert pull(store, room=6, paced_room=0).grants == ()
    assert len(pull(store, room=6).grants) == 4
