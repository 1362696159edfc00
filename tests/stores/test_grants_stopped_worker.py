"""A worker stopped (SIGSTOP) behind any statement of its step stops nobody: the others go on while it stays stopped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import RunResult, StepRequest, StoreOptions
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.stopped_workers import LIMIT_SECONDS, Housekeeper, StoppedWorkers
from tests.support.waiting import eventually

LEASE = timedelta(seconds=30)
# BEGIN, complete, promote, pull, look ahead, COMMIT; then BEGIN, gate, paced pull, COMMIT.
STATEMENTS = 10
QUEUES = tuple(f"queue-{statements}" for statements in range(1, STATEMENTS + 1))  # one for each child


@pytest.fixture
def rows(postgres_ledger: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(postgres_ledger)
    scene.guard_arrows()
    yield scene
    scene.close()


LIVE = {"overlap": int(Overlap.QUEUE)}
PACED = {"overlap": int(Overlap.ALLOW), "origin": int(Origin.CATCH_UP)}


def test_workers_go_on_while_one_is_stopped_behind_each_statement(postgres_ledger: str, rows: ClaimRows) -> None:
    stops = range(1, STATEMENTS + 1)
    keys = [(10 * stop + job, START + number * MINUTE) for stop in stops for job in range(5) for number in range(4)]
    rows.add_many(
        claim_values(job, at, queue=f"queue-{job // 10}", **(PACED if job % 10 == 4 else LIVE)) for job, at in keys
    )
    with StoppedWorkers(postgres_ledger) as stopped:
        with Housekeeper(postgres_ledger) as housekeeper:
            for statements in stops:
                # So that this one gets as far: one that finds the gate locked does without the paced pull.
                eventually(lambda: is_gate_free(rows), within=LIMIT_SECONDS, what="the gate of the paced class is free")
                stopped.start(statements)
            drain(postgres_ledger, rows)
            assert stopped.stand_still(), "the others went on while they stayed stopped"
            assert housekeeper.terminated > 0
        assert rows.states() == {State.SUCCEEDED: len(keys)}
        rows.assert_slots_are_held_rightly()
        for said in stopped.go_on():
            assert said == "unreachable" or said.startswith("accepted"), said
        assert rows.states() == {State.SUCCEEDED: len(keys)}, "who was stopped changed nothing (invariant 4)"
        for key in keys:
            assert [run.outcome for run in rows.runs(*key)].count(State.SUCCEEDED) == 1


def is_gate_free(rows: ClaimRows) -> bool:
    """Whether nobody holds an advisory lock in this database."""
    held = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
     WHERE locktype = 'advisory' AND d.datname = current_database()"""
    with rows.engine.begin() as connection:
        return connection.exec_driver_sql(held).scalar() == 0


def drain(url: str, rows: ClaimRows) -> None:
    """A worker that runs everything there is, whatever the stopped ones hold."""
    store = open_store(StoreOptions(url))
    results: tuple[RunResult, ...] = ()

    def is_drained() -> bool:
        nonlocal results
        step = store.grants.step(StepRequest(1, QUEUES, 50, LEASE, 100, results))
        results = tuple(
            RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
            for grant in step.grants
        )
        return set(rows.states()) == {State.SUCCEEDED}

    eventually(is_drained, within=LIMIT_SECONDS, what="every claim is run")
    store.close()
