"""What becomes of a result: the claim, the run, the output, the slot, and the next in line; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from sexton.claims import Origin, State
from sexton.job_rules import MissedRules
from sexton.jobs import JobDefinition
from sexton.store.protocol import Channel, Grant, RunResult, StepRequest, StepResult, Store
from sexton.store.tables import revisions
from sexton.targets import CommandTarget
from tests.stores.conftest import OpenAnother
from tests.support.claim_rows import MINUTE, START, ClaimRows, now
from tests.support.waiting import eventually

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


def ended(grant: Grant, outcome: State = State.SUCCEEDED, **changes: Any) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now(), **changes)


ENDS = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED)


@pytest.mark.parametrize("outcome", ENDS, ids=lambda outcome: outcome.word)
def test_a_result_ends_the_claim_writes_the_run_and_frees_the_slot(
    store: Store, rows: ClaimRows, outcome: State
) -> None:
    at = rows.add(1, revision=4, jitter_ms=250)
    (grant,) = step(store, worker_id=9).grants
    started = at + timedelta(seconds=3)
    result = ended(grant, outcome, started_at=started, exit_code=7, error="boom", stdout_bytes=70, stderr_bytes=0)
    assert step(store, result, worker_id=9).accepted == {grant.token}
    claim = rows.row(1, at)
    assert (claim.state, claim.finished_at, claim.started_at) == (outcome, result.finished_at, started)
    assert (claim.token, claim.worker_id, claim.lease_expires_at) == (grant.token, 9, None)
    (run,) = rows.runs(1, at)
    assert (run.token, run.attempt, run.revision, run.worker_id, run.outcome) == (grant.token, 1, 4, 9, outcome)
    assert (run.exit_code, run.error, run.started_at, run.finished_at) == (7, "boom", started, result.finished_at)
    assert run.lateness_ms == 2750
    assert (run.stdout_bytes, run.stderr_bytes) == (70, 0)
    assert rows.output(grant.token) is None
    assert rows.slot_tokens(1) == [None]


def test_what_is_written_is_what_the_step_was_given_whatever_was_made_ready_before(
    store: Store, rows: ClaimRows
) -> None:
    """A worker makes its results ready during the step before, and may have others when it comes to send them."""
    ticks = [(job, rows.add(job)) for job in (1, 2, 3)]
    first, second, third = (
        ended(grant, started_at=START, exit_code=0) for grant in sorted(step(store).grants, key=lambda one: one.job_id)
    )
    store.grants.prepare((first,))
    assert step(store, first, worker_id=9).accepted == {first.token}
    store.grants.prepare((first, third))
    assert step(store, second, worker_id=9).accepted == {second.token}
    store.grants.prepare(())
    failed = third._replace(outcome=State.FAILED, exit_code=1, error="boom", stderr=b"why", stderr_bytes=3)
    assert step(store, failed, worker_id=9).accepted == {third.token}
    assert step(store, first, worker_id=9).refused == 1
    told = [[(run.outcome, run.exit_code, run.error) for run in rows.runs(*tick)] for tick in ticks]
    assert told == [[(State.SUCCEEDED, 0, None)], [(State.SUCCEEDED, 0, None)], [(State.FAILED, 1, "boom")]]


def test_a_run_without_start_code_or_error_has_nulls_there(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store).grants
    step(store, ended(grant))
    (run,) = rows.runs(1, at)
    assert (run.started_at, run.exit_code, run.error, run.lateness_ms) == (None, None, None, None)


def test_output_is_kept_where_there_is_any(store: Store, rows: ClaimRows) -> None:
    for job in (1, 2):
        rows.add(job)
    first, second = step(store).grants
    step(store, ended(first, stdout=b"\x00\xff out", stderr=b"", error="nul \0 byte"), ended(second))
    assert rows.output(first.token) == (b"\x00\xff out", b"")
    assert rows.output(second.token) is None


def test_a_loss_is_counted_and_told_with_the_next_grant(store: Store, rows: ClaimRows) -> None:
    """A run that took with it what ran it; it uses no retry."""
    at = rows.add(1)
    (grant,) = step(store).grants
    assert grant.losses == 0
    (again,) = step(store, ended(grant, State.READY, is_loss=True)).grants
    assert (again.losses, again.retries, again.attempt) == (1, 0, 2)
    step(store, ended(again, State.LOST, is_loss=True))
    claim = rows.row(1, at)
    assert (claim.state, claim.losses, claim.retries) == (State.LOST, 2, 0)


def test_a_result_under_another_token_changes_nothing_and_is_counted(store: Store, rows: ClaimRows) -> None:
    """Invariant 4."""
    at = rows.add(1)
    (grant,) = step(store).grants
    stale = ended(grant, State.FAILED, stdout=b"late")._replace(token=grant.token + 1000)
    assert step(store, stale).accepted == frozenset()
    assert rows.state(1, at) == State.RUNNING
    assert rows.runs(1, at) == []
    assert rows.output(stale.token) is None
    assert rows.slot_tokens(1) == [grant.token]
    assert rows.counter("stale_results") == 1


def test_a_result_counts_once(store: Store, rows: ClaimRows) -> None:
    """Invariant 4: what is sent again after a lost answer is refused."""
    at = rows.add(1)
    (grant,) = step(store).grants
    assert step(store, ended(grant)).accepted == {grant.token}
    assert step(store, ended(grant, State.FAILED, stderr=b"again")).accepted == frozenset()
    assert rows.state(1, at) == State.SUCCEEDED
    assert len(rows.runs(1, at)) == 1
    assert rows.output(grant.token) is None
    assert rows.counter("stale_results") == 1


def test_a_result_of_a_lost_lease_is_refused_and_leaves_no_output(store: Store, rows: ClaimRows) -> None:
    """Invariant 4: the claim was taken away, and its lost run is already on record."""
    at = rows.add(1)
    (grant,) = step(store).grants
    rows.expire_leases([grant.token])
    store.grants.requeue_expired()
    (again,) = step(store, worker_id=2).grants
    assert again.token > grant.token
    assert step(store, ended(grant, stdout=b"too late"), room=0).accepted == frozenset()
    assert rows.output(grant.token) is None
    assert rows.row(1, at).token == again.token
    assert step(store, ended(again), worker_id=2).accepted == {again.token}
    assert [run.outcome for run in rows.runs(1, at)] == [State.READY, State.SUCCEEDED]


def test_one_step_takes_good_and_stale_results_together(store: Store, rows: ClaimRows) -> None:
    for job in range(1, 5):
        rows.add(job)
    grants = step(store).grants
    results = [ended(grant) for grant in grants]
    results[1] = results[1]._replace(token=10**9)
    assert step(store, *results).accepted == {grant.token for grant in grants} - {grants[1].token}


# --- back to the queue --------------------------------------------------------------------------------


def test_a_retry_waits_for_its_instant_and_uses_up_a_retry(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store).grants
    retry_at = now() + 5 * MINUTE
    result = step(store, ended(grant, State.READY, retry_at=retry_at, uses_retry=True, exit_code=1))
    assert (result.accepted, result.grants, result.next_available_at) == (frozenset({grant.token}), (), retry_at)
    claim = rows.row(1, at)
    assert (claim.state, claim.available_at, claim.retries, claim.attempt) == (State.READY, retry_at, 1, 1)
    assert (claim.token, claim.worker_id, claim.granted_at, claim.started_at) == (None, None, None, None)
    assert (claim.finished_at, claim.lease_expires_at, claim.start_by) == (None, None, None)
    (run,) = rows.runs(1, at)
    assert (run.outcome, run.exit_code) == (State.READY, 1)
    assert rows.slot_tokens(1) == [None]


def test_a_claim_given_back_keeps_its_place_and_its_retries(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store).grants
    (again,) = step(store, ended(grant, State.READY)).grants
    assert (again.scheduled_at, again.attempt, again.retries) == (at, 2, 0)
    assert again.token > grant.token
    assert rows.row(1, at).available_at == at


def test_a_retried_claim_can_be_completed_and_the_first_token_no_longer_counts(store: Store, rows: ClaimRows) -> None:
    """Invariant 4."""
    at = rows.add(1)
    (grant,) = step(store).grants
    (again,) = step(store, ended(grant, State.READY)).grants
    assert step(store, ended(grant), ended(again)).accepted == {again.token}
    assert rows.state(1, at) == State.SUCCEEDED


def test_a_run_that_was_asked_to_stop_is_not_retried(store: Store, rows: ClaimRows) -> None:
    at = rows.add(1)
    (grant,) = step(store).grants
    rows.change(1, at, cancel_requested=True)
    step(store, ended(grant, State.READY, retry_at=now(), uses_retry=True))
    claim = rows.row(1, at)
    assert (claim.state, claim.retries) == (State.CANCELLED, 0)
    assert claim.finished_at is not None
    assert [run.outcome for run in rows.runs(1, at)] == [State.CANCELLED]


# --- promotion ----------------------------------------------------------------------------------------


def test_the_step_that_frees_a_slot_runs_the_next_in_line(store: Store, rows: ClaimRows) -> None:
    ticks = [rows.add(1) for _ in range(4)]
    ran = []
    result = step(store)
    while result.grants:
        (grant,) = result.grants
        ran.append(grant.scheduled_at)
        result = step(store, ended(grant))
    assert ran == ticks
    assert rows.states() == {State.SUCCEEDED: 4}


def test_a_live_parked_claim_is_promoted_before_an_older_paced_one(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    (grant,) = step(store).grants
    paced, live = rows.add(1, origin=int(Origin.CATCH_UP)), rows.add(1)
    step(store)
    assert rows.states() == {State.RUNNING: 1, State.PARKED: 2}
    step(store, ended(grant), room=0)
    assert (rows.state(1, live), rows.state(1, paced)) == (State.READY, State.PARKED)


def test_a_paused_claim_stays_parked(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    (grant,) = step(store).grants
    paused, manual = rows.add(1), rows.add(1, origin=int(Origin.MANUAL))
    step(store)
    rows.change(1, paused, blocked=True)
    step(store, ended(grant), room=0)
    assert (rows.state(1, paused), rows.state(1, manual)) == (State.PARKED, State.READY)


def test_promotion_sets_start_by_anew_and_keeps_the_place(store: Store, rows: ClaimRows) -> None:
    rows.add(1)
    (grant,) = step(store).grants
    available_at = now() - timedelta(seconds=50)
    parked = rows.add(1, available_at=available_at, start_by=available_at + MINUTE)
    step(store)
    before = now()
    step(store, ended(grant), room=0)
    claim = rows.row(1, parked)
    assert claim.available_at == available_at
    assert before + MINUTE <= claim.start_by <= now() + MINUTE


@pytest.mark.parametrize(
    ("rules", "allowance"),
    [
        (MissedRules(grace=2 * MINUTE), 2 * MINUTE),
        (MissedRules(grace=2 * MINUTE, start_within=timedelta(milliseconds=7500)), timedelta(milliseconds=7500)),
    ],
)
def test_a_claim_parked_again_gets_no_more_than_its_revision_allows(
    store: Store, rows: ClaimRows, rules: MissedRules, allowance: timedelta
) -> None:
    write_revision(rows, 1, 1, JobDefinition("job", ({"every_ms": 60_000},), CommandTarget(("true",)), missed=rules))
    rows.add(1)
    (grant,) = step(store).grants
    parked = rows.add(1, start_by=now() + MINUTE)
    step(store)
    step(store, ended(grant), room=0)  # promoted: start_by is no longer a fixed distance from available_at
    urgent = START - MINUTE
    rows.add(1, urgent)
    (grant,) = step(store).grants
    assert rows.state(1, parked) == State.PARKED
    before = now()
    step(store, ended(grant), room=0)
    assert before + allowance <= rows.row(1, parked).start_by <= now() + allowance


def write_revision(rows: ClaimRows, job_id: int, revision: int, definition: JobDefinition) -> None:
    with rows.engine.begin() as connection:
        connection.execute(
            insert(revisions).values(
                job_id=job_id,
                revision=revision,
                definition=definition.to_text(),
                schedule=definition.schedule_text("seed"),
                firing=definition.firing_text(definition.name),
                inputs_id="inputs",
                in_force_since=START,
                applied_at=START,
                applied_by="test",
            )
        )


def test_definitions_are_found_by_job_and_revision(store: Store, rows: ClaimRows) -> None:
    definition = JobDefinition("job", ({"every_ms": 60_000},), CommandTarget(("true",)))
    write_revision(rows, 1, 1, definition)
    write_revision(rows, 1, 2, replace(definition, cwd="/other"))
    found = store.grants.definitions([(1, 2), (1, 1), (1, 3), (2, 1)])
    assert found == {(1, 1): definition.to_text(), (1, 2): replace(definition, cwd="/other").to_text()}
    assert store.grants.definitions([]) == {}


# --- waking others ------------------------------------------------------------------------------------


def test_others_are_woken_for_what_a_step_makes_ready_and_does_not_take(
    store: Store, rows: ClaimRows, open_another: OpenAnother
) -> None:
    wakeup = threading.Event()
    listener = open_another().listen((Channel.WORK,), wakeup)
    eventually(wakeup.is_set, within=60, what="the listener is there")  # it wakes its owner once it listens
    try:
        for woken_by in (State.READY, State.SUCCEEDED):
            rows.add(1)
            rows.add(1)
            (grant,) = step(store).grants
            wakeup.clear()
            step(store, ended(grant, woken_by), room=0)
            assert wakeup.wait(60), woken_by
    finally:
        listener.close()
