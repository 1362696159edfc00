"""Concurrency keys: one slot group across jobs, entered, sized and left by edits; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.errors import Refused
from sexton.job_rules import ConcurrencyKey
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeDone, ChangeKind, Grant, JobChange, RunResult, StepRequest, Store
from tests.support.claim_rows import ClaimRows, now
from tests.support.leader_scene import MINUTE, batch, create, definition, lead, read, rows, ticks_after

LEASE = timedelta(seconds=30)


@pytest.fixture
def claims(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def keyed(name: str, limit: int = 1, key: str = "warehouse", **keys: Any) -> JobDefinition:
    return definition(name, concurrency_key=ConcurrencyKey(key, limit), **({"overlap": Overlap.QUEUE} | keys))


def edit(store: Store, kind: ChangeKind, job_id: int, new: JobDefinition | None = None) -> ChangeDone:
    (done,) = store.edits.edit([JobChange(kind, job_id, new)], "alice")
    return done


def revise(store: Store, job_id: int, new: JobDefinition) -> ChangeDone:
    return edit(store, ChangeKind.REVISE, job_id, new)


def ids(store: Store, *definitions: JobDefinition) -> list[int]:
    return [job.job_id for job in create(store, *definitions)]


def slot_of(url: str, job_id: int) -> int | None:
    (row,) = rows(url, "jobs", job_id=job_id)
    slot: int | None = row.slot
    return slot


def step(store: Store, *results: RunResult) -> list[Grant]:
    return list(store.grants.step(StepRequest(1, ("default",), 100, LEASE, 10, results)).grants)


def ended(grant: Grant, outcome: State = State.SUCCEEDED) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now())


# --- entering and leaving -----------------------------------------------------------------------------


def test_jobs_of_one_key_share_one_group_of_slots(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    a, b, other, plain = ids(store, keyed("a", 2), keyed("b", 2), keyed("c", 1, key="mail"), definition("d"))
    assert slot_of(ledger_url, a) == slot_of(ledger_url, b) != slot_of(ledger_url, other)
    assert slot_of(ledger_url, plain) is None
    assert [(row.key, row.size) for row in rows(ledger_url, "slot_groups")] == [("mail", 1), ("warehouse", 2)]
    group = slot_of(ledger_url, a)
    assert group is not None
    assert group < 0
    assert claims.slot_tokens(group) == [None, None]


def test_every_new_claim_names_the_group_of_its_jobs_key(store: Store, ledger_url: str) -> None:
    a, plain = create(store, keyed("a"), definition("b"))
    term = lead(store)
    assert store.ticks.commit(batch(store, term, [(a, ticks_after(a, 2)), (plain, ticks_after(plain, 2))])).moved == 2
    for job_id in (a.job_id, plain.job_id):
        store.edits.trigger(job_id, "alice")
    group = slot_of(ledger_url, a.job_id)
    assert {row.slot for row in rows(ledger_url, "claims", job_id=a.job_id)} == {group}
    assert {row.slot for row in rows(ledger_url, "claims", job_id=plain.job_id)} == {plain.job_id}


def test_never_more_than_the_limit_run_whatever_job_they_are_of(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    a, b = ids(store, keyed("a", 2), keyed("b", 2))
    group = slot_of(ledger_url, a)
    ticks = [(job, claims.add(job, slot=group)) for _ in range(2) for job in (a, b)]
    running = step(store)
    assert [(grant.job_id, grant.scheduled_at) for grant in running] == ticks[:2]
    assert [claims.state(*tick) for tick in ticks[2:]] == [State.PARKED] * 2
    (next_one,) = step(store, ended(running[1]))
    assert (next_one.job_id, next_one.scheduled_at) == ticks[2]


def test_skip_speaks_of_the_key_and_names_it_and_the_job_that_was_met(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    a, b = ids(store, keyed("a", 2), keyed("b", 2, overlap=Overlap.SKIP))
    group = slot_of(ledger_url, a)
    claims.add(a, slot=group)
    claims.add(a, slot=group)
    assert len(step(store)) == 2
    at = claims.add(b, slot=group, overlap=int(Overlap.SKIP))
    assert step(store) == []
    assert claims.state(b, at) == State.SKIPPED
    reason = claims.row(b, at).reason
    assert reason.startswith("overlap skip: the run of a at 2026-01-01T00:00:00.000000Z (token ")
    assert reason.endswith(") was not over; the key warehouse lets 2 run, and none of its slots was free")


def test_skip_runs_while_the_key_has_a_free_slot(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    (a,) = ids(store, keyed("a", 2, overlap=Overlap.SKIP))
    group = slot_of(ledger_url, a)
    ticks = [claims.add(a, slot=group, overlap=int(Overlap.SKIP)) for _ in range(3)]
    assert [grant.scheduled_at for grant in step(store)] == ticks[:2]
    assert claims.state(a, ticks[2]) == State.SKIPPED


def test_replace_stops_the_oldest_holder_of_the_key(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    a, b = ids(store, keyed("a", 2), keyed("b", 2, overlap=Overlap.REPLACE))
    group = slot_of(ledger_url, a)
    held = [claims.add(a, slot=group) for _ in range(2)]
    oldest, younger = step(store)
    at = claims.add(b, slot=group, overlap=int(Overlap.REPLACE))
    step(store)
    assert [bool(claims.row(a, tick).cancel_requested) for tick in held] == [True, False]
    reason = f"overlap replace: asked to stop for the tick of b at {at:%Y-%m-%dT%H:%M:%S.%fZ}"
    assert claims.row(a, oldest.scheduled_at).reason == reason
    store.grants.sweep()
    assert not claims.row(a, younger.scheduled_at).cancel_requested, "one run for one tick"
    assert [grant.job_id for grant in step(store, ended(oldest, State.CANCELLED))] == [b]


@pytest.mark.parametrize("key_before", [None, "mail"])
def test_a_job_that_gets_another_key_takes_along_what_waits_and_not_what_runs(
    store: Store, claims: ClaimRows, ledger_url: str, key_before: str | None
) -> None:
    before = definition("a", overlap=Overlap.QUEUE) if key_before is None else keyed("a", key=key_before)
    a, b = ids(store, before, keyed("b"))
    old, group = slot_of(ledger_url, a) or a, slot_of(ledger_url, b)
    runs, parked = claims.add(a, slot=old), claims.add(a, slot=old)
    (grant,) = step(store)
    manual = claims.add(a, slot=old, origin=int(Origin.MANUAL))
    assert claims.state(a, parked) == State.PARKED
    revise(store, a, keyed("a"))
    assert slot_of(ledger_url, a) == group
    assert [claims.row(a, at).slot for at in (runs, parked, manual)] == [old, group, group]
    assert claims.state(a, parked) == State.READY
    assert claims.slot_tokens(old) == [grant.token], "a run keeps the slot that it has"
    assert [one.scheduled_at for one in step(store)] == [parked]
    step(store, ended(grant))
    assert claims.slot_tokens(old) == [None]


def test_a_job_that_loses_its_key_goes_back_to_its_own_slot(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    a, b = ids(store, keyed("a"), keyed("b"))
    group = slot_of(ledger_url, a)
    claims.add(b, slot=group)
    (grant,) = step(store)
    at = claims.add(a, slot=group)
    assert step(store) == []
    revise(store, a, definition("a", overlap=Overlap.QUEUE))
    assert slot_of(ledger_url, a) is None
    assert (claims.row(a, at).slot, claims.state(a, at)) == (a, State.READY)
    assert [one.job_id for one in step(store)] == [a]
    step(store, ended(grant))


def test_a_parked_claim_that_moves_has_its_time_to_start_anew(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    a, _ = ids(store, definition("a", overlap=Overlap.QUEUE), keyed("b"))
    at = claims.add(a, state=int(State.PARKED), start_by=now() - MINUTE)
    ready = claims.add(a, start_by=now() + MINUTE)
    before = claims.row(a, ready).start_by
    revise(store, a, keyed("a"))
    assert claims.row(a, at).start_by > now()
    assert claims.row(a, ready).start_by == before


def test_what_might_run_beside_everything_takes_a_slot_once_its_job_has_a_key(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    (a,) = ids(store, definition("a", overlap=Overlap.ALLOW))
    waits = [claims.add(a, overlap=int(Overlap.ALLOW)) for _ in range(3)]
    revise(store, a, keyed("a", 2))
    assert [grant.scheduled_at for grant in step(store)] == waits[:2]
    assert claims.state(a, waits[2]) == State.PARKED


def test_ticks_written_ahead_are_written_again_with_the_new_group(store: Store, ledger_url: str) -> None:
    (a,) = create(store, definition("a"))
    term = lead(store)
    store.ticks.commit(batch(store, term, [(a, ticks_after(a, 30, MINUTE))]))
    revise(store, a.job_id, keyed("a"))
    again = read(store, a.job_id)
    store.ticks.commit(batch(store, term, [(again, ticks_after(again, 30, MINUTE))]))
    group = slot_of(ledger_url, a.job_id)
    found = [row for row in rows(ledger_url, "claims", job_id=a.job_id) if row.scheduled_at > again.at]
    assert found
    assert {row.slot for row in found} == {group}


# --- limits -------------------------------------------------------------------------------------------


def test_a_limit_that_is_raised_lets_what_waits_run(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    (a,) = ids(store, keyed("a", 1))
    group = slot_of(ledger_url, a)
    assert group is not None
    waits = [claims.add(a, slot=group) for _ in range(3)]
    step(store)
    revise(store, a, keyed("a", 2))
    assert len(claims.slot_tokens(group)) == 2
    assert [grant.scheduled_at for grant in step(store)] == [waits[1]]


def test_a_limit_that_is_lowered_takes_the_free_rows_and_then_the_busy_ones(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    """Never more than the new limit are granted anew, whichever run ends first."""
    (a,) = ids(store, keyed("a", 5))
    group = slot_of(ledger_url, a)
    assert group is not None
    for _ in range(4):
        claims.add(a, slot=group)
    running = step(store)
    assert len(running) == 4
    revise(store, a, keyed("a", 2))
    assert len(claims.slot_tokens(group)) == 4, "the free one is gone"
    waits = [claims.add(a, slot=group) for _ in range(3)]
    for number, grant in enumerate(running[:2]):
        assert step(store, ended(grant)) == [], f"{3 - number} run still"
    store.grants.sweep()
    assert len(claims.slot_tokens(group)) == 2
    assert [grant.scheduled_at for grant in step(store, ended(running[2]))] == waits[:1]
    assert len(step(store, ended(running[3]))) == 1


def test_a_limit_that_is_lowered_counts_before_any_sweep(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    (a,) = ids(store, keyed("a", 3))
    group = slot_of(ledger_url, a)
    for _ in range(3):
        claims.add(a, slot=group)
    running = step(store)
    revise(store, a, keyed("a", 1))
    at = claims.add(a, slot=group)
    assert step(store, *map(ended, running[:2])) == []
    assert claims.state(a, at) == State.PARKED
    assert [grant.scheduled_at for grant in step(store, ended(running[2]))] == [at]


def test_a_limit_that_goes_down_and_up_again_has_its_rows(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    (a,) = ids(store, keyed("a", 4))
    group = slot_of(ledger_url, a)
    assert group is not None
    for _ in range(4):
        claims.add(a, slot=group)
    running = step(store)
    revise(store, a, keyed("a", 1))
    step(store, *map(ended, running[:2]))
    store.grants.sweep()
    revise(store, a, keyed("a", 3))
    store.grants.sweep()
    assert len(claims.slot_tokens(group)) == 3
    waits = [claims.add(a, slot=group) for _ in range(2)]
    assert [grant.scheduled_at for grant in step(store)] == waits[:1]


def test_a_key_outlives_its_last_job_for_what_still_runs(store: Store, claims: ClaimRows, ledger_url: str) -> None:
    (a,) = ids(store, keyed("a", 2))
    group = slot_of(ledger_url, a)
    assert group is not None
    claims.add(a, slot=group)
    (grant,) = step(store)
    edit(store, ChangeKind.RETIRE, a)
    (again,) = step(store, ended(grant, State.READY))
    assert claims.slot_tokens(group) == [again.token, None]
    (b,) = ids(store, keyed("b", 1))
    assert slot_of(ledger_url, b) == group
    assert claims.slot_tokens(group) == [again.token], "with the limit of who has the key now"


def test_a_claim_of_a_queue_that_nobody_serves_does_not_keep_its_key_to_itself(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    a, b = ids(store, keyed("a", queue="gpu"), keyed("b"))
    group = slot_of(ledger_url, a)
    claims.add(b, slot=group)
    (grant,) = step(store)
    waiting = [claims.add(a, slot=group, queue="gpu", state=int(State.PARKED)) for _ in range(3)]
    at = claims.add(b, slot=group)
    assert step(store) == []
    assert step(store, ended(grant)) == []
    assert [claims.state(a, tick) for tick in waiting] == [State.READY, State.PARKED, State.PARKED]
    store.grants.sweep()
    assert [one.scheduled_at for one in step(store)] == [at]


# --- refused ------------------------------------------------------------------------------------------


def test_a_key_has_one_limit_in_the_cluster(store: Store, ledger_url: str) -> None:
    a, b = ids(store, keyed("a", 2), keyed("b", 2))
    with pytest.raises(Refused, match="'warehouse' would have two limits: 2 in job 'a', 3 in job 'c'"):
        ids(store, keyed("c", 3))
    with pytest.raises(Refused, match="two limits: 2 in job 'b', 1 in job 'a'"):
        revise(store, a, keyed("a", 1))
    changes = [JobChange(ChangeKind.REVISE, job_id, keyed(name, 4)) for job_id, name in ((a, "a"), (b, "b"))]
    store.edits.edit(changes, "alice")
    (row,) = rows(ledger_url, "slot_groups")
    assert row.size == 4
    assert [row.name for row in rows(ledger_url, "jobs")] == ["a", "b"], "what was refused changed nothing"


def test_two_limits_in_one_edit_are_refused(store: Store, ledger_url: str) -> None:
    with pytest.raises(Refused, match="two limits: 1 in job 'a', 2 in job 'b'"):
        ids(store, keyed("a", 1), keyed("b", 2))
    assert rows(ledger_url, "slot_groups") == []


def test_a_retired_job_has_no_say_in_a_keys_limit(store: Store, ledger_url: str) -> None:
    a, b = ids(store, keyed("a", 2), keyed("b", 2))
    edit(store, ChangeKind.RETIRE, a)
    revise(store, b, keyed("b", 5))
    (row,) = rows(ledger_url, "slot_groups")
    assert row.size == 5


def test_allow_beside_a_key_is_refused(store: Store) -> None:
    with pytest.raises(Refused, match="overlap: allow lets any number run, and its concurrency_key lets 1"):
        ids(store, keyed("a", overlap=Overlap.ALLOW))
