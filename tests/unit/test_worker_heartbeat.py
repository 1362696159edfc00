from __future__ import annotations

import pytest
import structlog.testing

from sexton_worker.core.runs import StopReason
from sexton_worker.heartbeat import LONGEST_PAUSE, RETRY_SECONDS, HeartbeatLoop
from sexton_worker.lease_book import LeaseBook
from sexton_worker.lease_guard import LONGEST_PAUSE as GUARD_PAUSE
from sexton_worker.lease_guard import LeaseGuard
from tests.support.runs import a_grant
from tests.support.worker_fakes import WORKER, FakeClock, FakeExecution, FakeStore, FakeWakeup

LEASE, BEAT = 30.0, 10.0  # the defaults of the cluster


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeStore(self.clock)
        self.grants = self.store.grants
        self.execution = FakeExecution(self.clock, FakeWakeup())
        self.book = LeaseBook()
        self.book.worker_id = WORKER
        self.heartbeat = HeartbeatLoop(
            self.store.as_store(), self.clock, self.execution, self.book, self.clock.wakeup()
        )

    def hold(self, token: int, *, ends_with_lease: bool = False) -> None:
        self.grants.running[token] = a_grant(token)
        self.execution.running.add(token)
        self.book.hold({token: ends_with_lease}, sent=self.clock.seconds, lease=LEASE)

    def beat_after(self, seconds: float) -> float:
        self.clock.seconds += seconds
        return self.heartbeat.step()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_short_runs_are_never_renewed_and_longer_ones_once_per_heartbeat(bench: Bench) -> None:
    bench.hold(1)
    bench.beat_after(BEAT - 1)
    assert bench.grants.renewed == []
    bench.beat_after(1)
    assert bench.grants.renewed == [[1]]
    bench.beat_after(BEAT - 1)
    assert bench.grants.renewed == [[1]]
    bench.beat_after(1)
    assert bench.grants.renewed == [[1], [1]]


def test_renewals_of_many_runs_fall_together(bench: Bench) -> None:
    bench.hold(1)
    bench.clock.seconds += BEAT / 2
    bench.hold(2)
    bench.clock.seconds += BEAT / 4
    bench.hold(3)
    bench.beat_after(BEAT / 4)
    assert bench.grants.renewed == [[1, 2]]


def test_the_lease_ends_counted_from_before_the_renewal_was_sent(bench: Bench) -> None:
    bench.hold(1)
    sent = bench.clock.seconds + BEAT
    original = bench.grants.renew

    def slow(*arguments: object) -> object:
        bench.clock.seconds += 4
        return original(*arguments)  # type: ignore[arg-type]  # passed on as they came

    bench.grants.renew = slow  # type: ignore[method-assign,assignment]  # the answer takes its time
    bench.beat_after(BEAT)
    (holding,) = bench.book.holdings()
    assert (holding.renewed, holding.until) == (sent, sent + LEASE)


def test_a_lost_claim_stops_an_at_most_once_run_and_leaves_others_to_be_refused(bench: Bench) -> None:
    bench.hold(1)
    bench.hold(2, ends_with_lease=True)
    bench.grants.stolen |= {1, 2}
    bench.beat_after(BEAT)
    assert bench.execution.stopped == [(2, StopReason.LEASE_LOST)]
    assert bench.execution.running == {1}
    bench.beat_after(BEAT)
    assert bench.grants.renewed == [[1, 2]]  # nobody asks again for what is lost


def test_a_run_that_ended_meanwhile_is_not_taken_for_lost(bench: Bench) -> None:
    bench.hold(1, ends_with_lease=True)
    original = bench.grants.renew

    def completed_first(*arguments: object) -> object:
        del bench.grants.running[1]
        bench.book.release(1)
        return original(*arguments)  # type: ignore[arg-type]  # passed on as they came

    bench.grants.renew = completed_first  # type: ignore[method-assign,assignment]  # the loop is quicker
    bench.beat_after(BEAT)
    assert bench.execution.stopped == []


def test_a_cancelled_run_is_stopped(bench: Bench) -> None:
    bench.hold(1)
    bench.hold(2)
    bench.grants.cancelled.add(1)
    bench.beat_after(BEAT)
    assert bench.execution.stopped == [(1, StopReason.CANCELLED)]


def test_an_at_most_once_run_ends_with_its_lease_also_when_the_database_is_away(bench: Bench) -> None:
    bench.hold(1)
    bench.hold(2, ends_with_lease=True)
    bench.grants.is_away = True
    assert bench.beat_after(LEASE - 0.1) == RETRY_SECONDS
    assert bench.execution.stopped == []
    bench.beat_after(0.2)
    assert bench.execution.stopped == [(2, StopReason.LEASE_LOST)]


def test_leases_end_in_time_though_the_heartbeat_waits_for_an_answer(bench: Bench) -> None:
    guard = LeaseGuard(bench.clock, bench.execution, bench.book, bench.clock.wakeup())
    bench.hold(1)
    bench.hold(2, ends_with_lease=True)
    assert guard.step() == GUARD_PAUSE
    bench.clock.seconds += LEASE - 0.1
    assert 0 < guard.step() <= 0.11
    assert bench.execution.stopped == []
    bench.clock.seconds += 0.1
    guard.step()
    assert bench.execution.stopped == [(2, StopReason.LEASE_LOST)]


def test_after_an_outage_everything_is_renewed_at_once(bench: Bench) -> None:
    bench.hold(1)
    bench.grants.is_away = True
    bench.beat_after(BEAT)
    bench.grants.is_away = False
    bench.beat_after(RETRY_SECONDS)
    assert bench.grants.renewed == [[1]]


def test_the_worker_shows_up_once_per_heartbeat(bench: Bench) -> None:
    bench.hold(1)
    assert bench.beat_after(0) <= LONGEST_PAUSE
    bench.book.is_draining = True
    bench.beat_after(BEAT / 2)
    bench.beat_after(BEAT / 2)
    assert bench.grants.seen_with == [(1, False), (1, True)]


def test_an_unregistered_worker_says_nothing(bench: Bench) -> None:
    bench.book.worker_id = None
    bench.hold(1)
    bench.beat_after(BEAT * 2)
    assert bench.grants.renewed == []
    assert bench.grants.seen_with == []


def test_no_fault_of_a_step_ends_the_beating(bench: Bench) -> None:
    steps = 0

    def faulty() -> float:
        nonlocal steps
        steps += 1
        if steps == 3:
            bench.heartbeat.end()
        raise RuntimeError("a fault")

    bench.heartbeat.step = faulty  # type: ignore[method-assign]  # three bad steps
    bench.heartbeat.run()
    assert steps == 3


def test_an_outage_is_said_once_and_its_end_with_how_long_it_was(bench: Bench) -> None:
    with structlog.testing.capture_logs() as logs:
        bench.grants.is_away = True
        for _ in range(5):
            bench.beat_after(BEAT)
        bench.grants.is_away = False
        bench.beat_after(BEAT)
        bench.beat_after(BEAT)
    assert [one["event"] for one in logs] == ["heartbeat.database_unreachable", "heartbeat.database_answers"]
    assert (logs[1]["after_seconds"], logs[1]["failed_tries"]) == (5 * BEAT, 5)
