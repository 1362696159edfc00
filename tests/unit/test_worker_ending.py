"""How a worker's loop ends: draining, giving back, and what it does about a fault."""

from __future__ import annotations

import pytest

from sexton.claims import State
from sexton_worker.core.runs import StopReason
from sexton_worker.loop import (
    GIVEN_BACK,
    PARTING_SECONDS,
    RETRY_SECONDS,
)
from tests.support.worker_bench import Bench, raising
from tests.support.worker_fakes import FakeWakeup


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- the end


def test_a_draining_worker_takes_nothing_more_and_ends_when_its_runs_have(bench: Bench) -> None:
    bench.give(1, 2, 3)
    bench.work()
    bench.loop.drain()
    bench.execution.end(1)
    bench.work()
    assert not bench.loop.is_done
    assert bench.rooms() == [2, 0]
    assert bench.book.is_draining
    bench.execution.end(2)
    bench.work()
    assert bench.loop.is_done
    assert bench.outcomes() == {1: State.SUCCEEDED, 2: State.SUCCEEDED}
    assert bench.execution.stopped == []


def test_a_drain_that_takes_too_long_gives_the_claims_back(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.loop.drain()
    assert bench.work() == pytest.approx(5.0)
    bench.clock.seconds += 28
    assert bench.work() == pytest.approx(2.0)
    bench.clock.seconds += 2
    bench.work(2)
    assert bench.execution.stopped == [(1, StopReason.GIVEN_BACK)]
    (result,) = bench.grants.results
    assert (result.outcome, result.uses_retry, result.retry_at) == (State.READY, False, None)
    assert bench.loop.is_done


def test_claims_are_given_back_on_request_started_or_not(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.give(2, at_most_once=True)
    original = bench.grants.mark_started
    bench.grants.mark_started = raising  # type: ignore[method-assign,assignment]  # away in mid-step
    bench.work()
    bench.grants.mark_started = original  # type: ignore[method-assign]  # it is back
    bench.loop.give_back()
    bench.work(2)
    assert bench.outcomes() == {1: State.READY, 2: State.READY}
    assert {result.error for result in bench.grants.results} >= {GIVEN_BACK}
    assert bench.loop.is_done


def test_a_started_at_most_once_run_that_is_stopped_is_lost_not_run_again(bench: Bench) -> None:
    bench.give(1, at_most_once=True)
    bench.work()
    bench.loop.give_back()
    bench.work(2)
    assert bench.outcomes() == {1: State.LOST}


def test_an_ending_worker_waits_for_the_database_only_so_long(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.grants.is_away = True
    bench.loop.give_back()
    bench.work(2)
    assert not bench.loop.is_done
    bench.clock.seconds += PARTING_SECONDS
    assert bench.loop.is_done


def test_run_goes_on_after_a_fault_and_ends_unregistered(bench: Bench) -> None:
    bench.give(1)
    faults = iter([RuntimeError("a fault of the store"), RuntimeError("another")])

    def break_twice() -> None:
        for fault in faults:
            raise fault

    bench.grants.before_step = break_twice
    original = bench.clock.wait

    def wait(wakeup: FakeWakeup, seconds: float) -> bool:
        if bench.execution.running:
            bench.execution.end(1)
            bench.loop.drain()
        return original(wakeup, seconds)

    bench.clock.wait = wait  # type: ignore[method-assign,assignment]  # the run ends while the loop sleeps
    bench.loop.run()
    assert bench.outcomes() == {1: State.SUCCEEDED}
    assert not bench.grants.is_registered
    assert bench.clock.waits[:2] == [RETRY_SECONDS, RETRY_SECONDS]
