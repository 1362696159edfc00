"""What of a paused job is granted, retried and triggered; one job's pause and that of all are the same to workers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sexton.claims import Origin, State
from sexton.errors import NotFound, Refused
from sexton.store.protocol import ChangeKind, Grant, JobChange, RunResult, StepRequest, Store
from tests.support.leader_scene import create, definition, lead, rows, set_columns
from tests.support.past_jobs import claims_of, decide, differences, minutes_after, old_job

LEASE = timedelta(seconds=30)


def step(store: Store, *results: RunResult) -> list[Grant]:
    return list(store.grants.step(StepRequest(1, ("default",), 10, LEASE, 10, results)).grants)


def pause(store: Store, job_id: int, *, everything: bool) -> None:
    if everything:
        store.pauses.pause_all("ana", "storage moves")
    else:
        store.edits.edit([JobChange(ChangeKind.PAUSE, job_id, why="storage moves")], "ana")


def resume(store: Store, job_id: int, *, everything: bool) -> None:
    if everything:
        store.pauses.resume_all("ana")
    else:
        store.edits.edit([JobChange(ChangeKind.RESUME, job_id)], "ana")


@pytest.mark.parametrize("everything", [False, True], ids=["one", "all"])
def test_of_a_paused_job_only_manual_claims_are_granted_and_retries_wait(
    store: Store, ledger_url: str, everything: bool
) -> None:
    """Runs that run go on, and their results count."""
    term = lead(store)
    job = old_job(store, ledger_url)
    ticks = minutes_after(job, 58, 60)
    decide(store, term, job, 60, claims=claims_of(job, ticks))
    set_columns(ledger_url, "claims", {"job_id": job.job_id}, start_by=None, overlap=0)
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[2]}, blocked=True)
    one, two = sorted(step(store), key=lambda grant: grant.scheduled_at)
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[2]}, blocked=False)
    pause(store, job.job_id, everything=everything)
    now = store.now()
    succeeds = RunResult(one.job_id, one.scheduled_at, one.token, one.attempt, State.SUCCEEDED, now)
    again = RunResult(
        two.job_id, two.scheduled_at, two.token, two.attempt, State.READY, now, retry_at=now, uses_retry=True
    )
    assert step(store, succeeds, again) == []
    states = [row.state for row in rows(ledger_url, "claims")]
    assert states == [State.SUCCEEDED, State.READY, State.READY]
    manual = store.edits.trigger(job.job_id, "ana", "r1")
    assert [(grant.scheduled_at, grant.origin) for grant in step(store)] == [(manual.scheduled_at, Origin.MANUAL)]
    resume(store, job.job_id, everything=everything)
    assert {grant.scheduled_at for grant in step(store)} == set(ticks[1:])


def test_a_trigger_in_a_halted_cluster_waits_and_consumes_no_tick(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    store.edits.halt("ana", "look")
    triggered = store.edits.trigger(job.job_id, "ana")
    assert step(store) == []
    store.edits.lift_halt("ana")
    assert [grant.scheduled_at for grant in step(store)] == [triggered.scheduled_at]
    decide(store, term, job, 60, claims=claims_of(job, minutes_after(job, 1, 60)))
    assert differences(store) == []


def test_a_request_id_belongs_to_one_job_and_no_job_that_is_gone_is_triggered(store: Store) -> None:
    one, two = create(store, definition("one"), definition("two"))
    first = store.edits.trigger(one.job_id, "ana", "r1")
    store.pauses.pause_all("ana", "storage moves")
    again = store.edits.trigger(one.job_id, "ben", "r1")
    assert (again.existed, again.scheduled_at) == (True, first.scheduled_at)
    with pytest.raises(Refused, match="was used for job 'one'"):
        store.edits.trigger(two.job_id, "ana", "r1")
    store.edits.edit([JobChange(ChangeKind.RETIRE, two.job_id)], "ana")
    for job_id in (two.job_id, 999):
        with pytest.raises(NotFound):
            store.edits.trigger(job_id, "ana", "r2")
