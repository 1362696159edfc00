"""What a worker makes of requests to stop its runs, or to drain; that a notification suffices is tried with real ones
(tests/acceptance/test_cli_stopping)."""

from __future__ import annotations

import pytest

from sexton.claims import State
from sexton.job_formats import FORMAT
from sexton_worker.core.runs import StopReason
from sexton_worker.heartbeat import HeartbeatLoop
from sexton_worker.loop import GIVEN_BACK
from sexton_worker.starts import FOR_YOUNGER
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench

BEAT = 10.0  # the default of the cluster


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def heartbeat(bench: Bench) -> HeartbeatLoop:
    return HeartbeatLoop(
        bench.store.as_store(),
        bench.clock,
        bench.execution,
        bench.book,
        bench.clock.wakeup(),
        heed_drain=bench.loop.heed_drain,
    )


def beat(bench: Bench, heartbeat: HeartbeatLoop, after: float = BEAT) -> None:
    bench.clock.seconds += after
    heartbeat.step()


def test_a_short_run_is_cancelled_without_a_renewal(bench: Bench, heartbeat: HeartbeatLoop) -> None:
    bench.give(1)
    bench.work()
    bench.grants.cancelled.add(1)
    beat(bench, heartbeat, after=1.0)
    assert bench.grants.renewed == []
    assert bench.execution.stopped == [(1, StopReason.CANCELLED)]
    bench.work()
    assert bench.outcomes() == {1: State.CANCELLED}


def test_a_run_that_was_asked_to_stop_before_it_began_is_stopped_once_it_has(
    bench: Bench, heartbeat: HeartbeatLoop
) -> None:
    bench.work()
    bench.grants.running[1] = a_grant(1)
    bench.book.hold({1: False}, sent=bench.clock.seconds, lease=30.0)
    bench.grants.cancelled.add(1)
    beat(bench, heartbeat, after=1.0)
    assert bench.execution.stopped == []
    bench.execution.running.add(1)
    beat(bench, heartbeat, after=1.0)
    assert bench.execution.stopped == [(1, StopReason.CANCELLED)]


def test_an_asked_drain_ends_the_worker_as_a_signal_does(bench: Bench, heartbeat: HeartbeatLoop) -> None:
    bench.give(1)
    bench.work()
    bench.grants.is_drain_asked = True
    beat(bench, heartbeat)
    assert (bench.loop.is_done, bench.book.is_draining) == (False, True)
    bench.give(2)
    bench.execution.end(1)
    bench.work()
    assert bench.outcomes() == {1: State.SUCCEEDED}
    assert bench.loop.is_done
    assert [grant.token for grant in bench.grants.ready] == [2]
    beat(bench, heartbeat, after=1.0)
    assert bench.grants.seen_with[-1] == (0, True)  # at once, not after a heartbeat


def test_a_drain_that_is_taken_back_leaves_the_worker_at_work(bench: Bench, heartbeat: HeartbeatLoop) -> None:
    bench.give(1)
    bench.work()
    bench.grants.is_drain_asked = True
    beat(bench, heartbeat)
    bench.work()
    bench.grants.is_drain_asked = False
    beat(bench, heartbeat)
    assert not bench.book.is_draining
    bench.give(2)
    bench.work()
    assert bench.execution.running == {1, 2}


def test_what_a_signal_began_is_not_taken_back(bench: Bench, heartbeat: HeartbeatLoop) -> None:
    bench.give(1)
    bench.work()
    bench.grants.is_drain_asked = True
    beat(bench, heartbeat)
    bench.loop.drain()
    bench.grants.is_drain_asked = False
    beat(bench, heartbeat)
    assert bench.book.is_draining


def test_a_worker_that_drains_gives_back_at_once_what_has_not_begun(bench: Bench) -> None:
    bench.give(1, 2)
    bench.work()
    bench.execution.waiting.append(2)
    bench.loop.drain()
    bench.work()
    assert bench.outcomes() == {2: State.READY}
    assert [(result.token, result.error) for result in bench.grants.results] == [(2, GIVEN_BACK)]
    assert bench.execution.running == {1}


def test_a_job_of_a_younger_format_is_left_to_younger_workers(bench: Bench) -> None:
    younger = '{"format": 9, "name": "payroll"}'
    bench.grants.definitions = lambda keys: dict.fromkeys(keys, younger)  # type: ignore[method-assign]  # of a fake
    bench.give(1)
    bench.work(2)
    (result,) = bench.grants.results
    assert (result.outcome, result.uses_retry) == (State.READY, False)
    assert result.retry_at is not None
    assert result.retry_at >= bench.clock.wall() + FOR_YOUNGER
    known = f"this Sexton knows {FORMAT}; install the younger Sexton here too"
    assert result.error == f"given back: job 'payroll' has the format 9, and {known}"
