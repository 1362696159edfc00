"""Reruns of jobs that were edited since the tick ran, or are edited at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from sexton.claims import Overlap, State
from sexton.job_rules import ConcurrencyKey
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, Grant, JobChange, RunResult, StepRequest, Store
from tests.support.claim_rows import ClaimRows, now
from tests.support.leader_scene import create, definition, rows

LEASE = timedelta(seconds=30)


@pytest.fixture
def claims(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows(on_request=True)
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


def keyed(name: str) -> JobDefinition:
    return definition(name, overlap=Overlap.QUEUE, concurrency_key=ConcurrencyKey("warehouse", 1))


def step(store: Store, *results: RunResult) -> list[Grant]:
    return list(store.grants.step(StepRequest(1, ("default",), 100, LEASE, 10, results)).grants)


def ended(grant: Grant) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())


def revise(store: Store, job_id: int, new: JobDefinition) -> None:
    store.edits.edit([JobChange(ChangeKind.REVISE, job_id, new)], "alice")


def run_once(store: Store, claims: ClaimRows, job_id: int, overlap: Overlap) -> datetime:
    """A tick of the job that ran and ended."""
    at = claims.add(job_id, overlap=int(overlap))
    (grant,) = step(store)
    assert step(store, ended(grant)) == []
    return at


def test_what_ran_beside_everything_takes_a_slot_when_it_is_run_again_under_a_key(
    store: Store, claims: ClaimRows, ledger_url: str
) -> None:
    a, b = (job.job_id for job in create(store, definition("a", overlap=Overlap.ALLOW), keyed("b")))
    at = run_once(store, claims, a, Overlap.ALLOW)
    revise(store, a, keyed("a"))
    (group,) = {row.slot for row in rows(ledger_url, "jobs")}
    claims.add(b, slot=group)
    (of_b,) = step(store)
    store.operations.rerun(a, at, "mary@vm", "")
    assert step(store) == [], "the key lets one run"
    assert [grant.job_id for grant in step(store, ended(of_b))] == [a]
