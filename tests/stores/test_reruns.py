"""Reruns of jobs that were edited since the tick ran, or are edited at the same moment; cancelling before them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from sexton.claims import Overlap, State
from sexton.errors import Refused
from sexton.job_rules import ConcurrencyKey
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.postgres import edits, operations
from sexton.store.postgres.edit_writes import EditWrites
from sexton.store.protocol import ChangeKind, Grant, JobChange, RunResult, StepRequest, Store, StoreOptions
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.leader_scene import create, definition, rows
from tests.support.waiting import eventually

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


# --- ahead of its time, and very many -----------------------------------------------------------------


def test_a_tick_that_was_cancelled_ahead_of_its_time_waits_for_it_when_it_is_run_again(
    store: Store, claims: ClaimRows
) -> None:
    (job,) = (job.job_id for job in create(store, definition("a", overlap=Overlap.QUEUE)))
    at = claims.add(job, now().replace(microsecond=0) + timedelta(hours=1), jitter_ms=2500)
    store.operations.cancel(job, "mary@vm", "", at)
    store.operations.rerun(job, at, "mary@vm", "")
    assert claims.row(job, at).available_at == at + timedelta(seconds=2.5)
    assert step(store) == []


@pytest.mark.parametrize("count", [5, 6])
def test_very_many_are_cancelled_in_parts(
    store: Store, claims: ClaimRows, monkeypatch: pytest.MonkeyPatch, ledger_url: str, count: int
) -> None:
    """The server ends a transaction in which a client writes down 50,000 of them."""
    for module in ("postgres", "sqlite"):
        monkeypatch.setattr(f"sexton.store.{module}.operations.CANCELLED_AT_ONCE", 3)
    a, b = (job.job_id for job in create(store, keyed("a"), keyed("b")))
    (group,) = {row.slot for row in rows(ledger_url, "jobs")}
    claims.add_many(claim_values(a, START + number * MINUTE, slot=group) for number in range(count))
    waits = claims.add(b, now() - MINUTE, slot=group, state=int(State.PARKED))
    stopped = store.operations.cancel(a, "mary@vm", "")
    assert [one.scheduled_at for one in stopped] == [START + number * MINUTE for number in range(count)]
    assert claims.states() == {State.CANCELLED: count, State.READY: 1}
    assert claims.state(b, waits) == State.READY, "what it waited for is gone"
    told = [json.loads(row.detail)["cancelled"] for row in rows(ledger_url, "events", action="job.cancelled")]
    assert told == [3, count - 3]


# --- at one moment, on PostgreSQL ---------------------------------------------------------------------


def waits(url: str) -> bool:
    """Whether the second store waits for a lock."""
    with contextlib.closing(ClaimRows(url)) as scene, scene.engine.begin() as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'sexton second'"
        return connection.exec_driver_sql(f"{query} AND datname = current_database()").first() is not None


def edited_during_a_rerun(url: str, change: ChangeKind, *, is_paused: bool = False) -> tuple[Any, Any]:
    """The job and its claim after an edit that came once the claim was ready again, and before that was committed."""
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(contextlib.closing(open_store(StoreOptions(url, application=name, answer_within=60))))
            for name in ("sexton first", "sexton second")
        )
        claims = stack.enter_context(contextlib.closing(ClaimRows(url)))
        job = create(first, definition("a", overlap=Overlap.QUEUE))[0].job_id
        at = run_once(first, claims, job, Overlap.QUEUE)
        if is_paused:
            first.edits.edit([JobChange(ChangeKind.PAUSE, job, why="night")], "alice")
        new = keyed("a") if change is ChangeKind.REVISE else None
        aside, editing = stack.enter_context(ThreadPoolExecutor(1)), list[Future[object]]()

        def interrupted(detail: object) -> str:
            editing.append(aside.submit(second.edits.edit, [JobChange(change, job, new, why="now")], "alice"))
            eventually(lambda: editing[0].done() or waits(url), within=60, what="the edit has decided")
            return json.dumps(detail)

        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(operations, "_json", interrupted)
        patch.setattr(operations, "LIMITS", "")  # however slow this is
        first.operations.rerun(job, at, "mary@vm", "")
        editing[0].result(60)
        ((row,), claim) = rows(url, "jobs"), claims.row(job, at)
        return row, claim


def test_a_rerun_and_a_pause_at_one_moment_leave_a_paused_claim(postgres_ledger: str) -> None:
    _, claim = edited_during_a_rerun(postgres_ledger, ChangeKind.PAUSE)
    assert (claim.state, claim.blocked) == (State.READY, True)


def test_a_rerun_and_a_resume_at_one_moment_leave_a_claim_that_runs(postgres_ledger: str) -> None:
    _, claim = edited_during_a_rerun(postgres_ledger, ChangeKind.RESUME, is_paused=True)
    assert (claim.state, claim.blocked) == (State.READY, False)


def test_a_rerun_and_a_new_key_at_one_moment_leave_a_claim_of_the_key(postgres_ledger: str) -> None:
    job, claim = edited_during_a_rerun(postgres_ledger, ChangeKind.REVISE)
    assert claim.slot == job.slot < 0


def test_a_rerun_and_a_retirement_at_one_moment_leave_no_paused_claim(postgres_ledger: str) -> None:
    _, claim = edited_during_a_rerun(postgres_ledger, ChangeKind.RETIRE, is_paused=True)
    assert (claim.state, claim.reason) == (State.CANCELLED, "paused when the job was retired")


def test_a_tick_is_not_run_again_while_its_job_is_being_retired(
    postgres_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(
                contextlib.closing(open_store(StoreOptions(postgres_ledger, application=name, answer_within=60)))
            )
            for name in ("sexton first", "sexton second")
        )
        claims = stack.enter_context(contextlib.closing(ClaimRows(postgres_ledger)))
        job = create(first, definition("a", overlap=Overlap.QUEUE))[0].job_id
        at = run_once(first, claims, job, Overlap.QUEUE)
        aside, asking = stack.enter_context(ThreadPoolExecutor(1)), list[Future[object]]()

        class Interrupted(EditWrites):
            def write(self, withdrawn: Mapping[int, int]) -> None:
                super().write(withdrawn)
                self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # however slow this is
                asking.append(aside.submit(second.operations.rerun, job, at, "mary@vm", ""))
                eventually(lambda: asking[0].done() or waits(postgres_ledger), within=60, what="the rerun has decided")

        monkeypatch.setattr(edits, "EditWrites", Interrupted)
        first.edits.edit([JobChange(ChangeKind.RETIRE, job)], "alice")
        with pytest.raises(Refused, match="the job a is retired"):
            asking[0].result(60)
        assert claims.state(job, at) == State.SUCCEEDED
