"""A worker stopped (SIGSTOP) with the gate of a limited queue in its hands shuts it for moments, not for ever."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

from sexton.claims import Overlap, State
from sexton.store import open_store
from sexton.store.protocol import RunResult, StepRequest, StoreOptions
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.queue_rows import limit
from tests.support.stopped_workers import LIMIT_SECONDS, Housekeeper, StoppedWorkers
from tests.support.waiting import eventually

LEASE = timedelta(seconds=30)
# BEGIN, complete, promote, pull, look ahead, COMMIT, how queues stand; then BEGIN, gate, count, pull, spend, COMMIT.
STOPS = (10, 11, 12)
CLAIMS = 12


def test_a_limited_queue_is_pulled_while_a_worker_is_stopped_at_its_gate(postgres_ledger: str) -> None:
    rows = ClaimRows(postgres_ledger)
    rows.guard_arrows()
    queues = tuple(f"queue-{stop}" for stop in STOPS)  # one for each child
    for stop, queue in zip(STOPS, queues, strict=True):
        limit(rows, queue, slots=3, rate=1000.0, next_at=START)
        rows.add_many(
            claim_values(stop, START + number * MINUTE, queue=queue, overlap=int(Overlap.ALLOW))
            for number in range(CLAIMS)
        )
    with closing(rows), StoppedWorkers(postgres_ledger) as stopped:
        with Housekeeper(postgres_ledger) as housekeeper:
            for stop in STOPS:
                stopped.start(stop)
            drain(postgres_ledger, rows, queues)
            assert stopped.stand_still(), "others went on while they stayed stopped"
            assert housekeeper.terminated >= len(STOPS) - 1, "they held the gate"
        for said in stopped.go_on():
            assert said == "unreachable" or said.startswith("accepted"), said
        assert rows.states() == {State.SUCCEEDED: CLAIMS * len(STOPS)}


def drain(url: str, rows: ClaimRows, queues: tuple[str, ...]) -> None:
    """A worker that runs everything there is, and looks whether the slots of each queue are kept."""
    results: tuple[RunResult, ...] = ()
    with closing(open_store(StoreOptions(url))) as store:

        def is_drained() -> bool:
            nonlocal results
            step = store.grants.step(StepRequest(1, queues, 50, LEASE, 100, results))
            assert all(queue.running <= 3 for queue in store.reads.queues())
            results = tuple(
                RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
                for grant in step.grants
            )
            return set(rows.states()) == {State.SUCCEEDED}

        eventually(is_drained, within=LIMIT_SECONDS, what="every claim is run")
