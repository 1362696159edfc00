"""What a worker that goes on does when it finds the ledger elsewhere: after a restore or a promotion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sexton.claims import State
from sexton_worker.starts import LEDGER_MOVED
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench
from tests.support.worker_fakes import WORKER, a_definition


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_after_a_restore_definitions_are_read_anew_and_what_had_not_begun_goes_back(bench: Bench) -> None:
    """A restored ledger numbers its revisions anew: the same job and revision may say something else."""
    bench.give(1, 2, 3)
    bench.work()
    assert bench.execution.running == {1, 2}
    bench.grants.definitions_of[1, 1] = replace(a_definition(), name="renamed")
    bench.grants.place = "elsewhere"
    bench.execution.end(1)
    bench.work(2)
    orders = bench.execution.orders
    assert {token: orders[token].job for token in orders} == {1: "nightly", 2: "nightly", 3: "renamed"}
    assert bench.grants.registered_as == [None, WORKER]  # once more, for its row may be gone: as the one it is


def test_a_grant_in_hand_when_the_ledger_moved_goes_back(bench: Bench) -> None:
    bench.work()
    bench.loop._hands.take([a_grant(7)])
    bench.grants.running[7] = a_grant(7)
    bench.loop._starts.begin_anew([a_grant(7)])
    bench.work()
    assert [(result.token, result.outcome, result.error) for result in bench.grants.results] == [
        (7, State.READY, LEDGER_MOVED)
    ]
