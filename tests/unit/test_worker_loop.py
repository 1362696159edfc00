from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from sexton.claims import OnLeaseLost, State
from sexton.errors import DatabaseUnreachable
from sexton.job_rules import RetryRules
from sexton.store.protocol import Grant
from sexton_worker import poison
from sexton_worker.core.pull_policy import RECALL_SECONDS
from sexton_worker.core.runs import Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.loop import (
    ANSWER_LOST,
    RETRY_SECONDS,
    SLOTS_BUSY,
)
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench, raising
from tests.support.worker_fakes import a_definition


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_grants_run_side_by_side_up_to_the_slots_and_results_make_room(bench: Bench) -> None:
    bench.give(1, 2, 3)
    bench.work()
    assert bench.execution.running == {1, 2}
    assert bench.execution.orders[1].job == "nightly"
    assert bench.execution.orders[1].deadline == bench.clock.wall() + timedelta(hours=24)
    bench.execution.end(1)
    bench.work()
    assert bench.execution.running == {2, 3}
    assert bench.outcomes() == {1: State.SUCCEEDED}
    assert bench.rooms() == [2, 1]  # results and pull went in one exchange
    assert bench.book.count() == 2


def test_without_room_and_results_the_database_is_left_alone(bench: Bench) -> None:
    bench.give(1, 2)
    bench.work(3)
    assert bench.rooms() == [2]


def test_a_result_carries_what_the_run_was(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    started = bench.clock.wall()
    bench.clock.seconds += 2
    bench.execution.end(
        1, exit_code=3, error="exited with code 3", started=bench.clock.seconds - 2, stdout=b"o", stdout_bytes=9
    )
    bench.clock.seconds += 0.5
    bench.work()
    (result,) = bench.grants.results
    assert (result.outcome, result.exit_code, result.error) == (State.FAILED, 3, "exited with code 3")
    assert (result.stdout, result.stdout_bytes, result.attempt) == (b"o", 9, 3)
    assert abs(result.started_at - started) < timedelta(milliseconds=1) if result.started_at else False
    assert abs(result.finished_at - started - timedelta(seconds=2)) < timedelta(milliseconds=1)


def test_a_run_never_starts_before_the_one_before_it_ended_however_the_database_answers(bench: Bench) -> None:
    delays = iter([0.008, 0.0, 0.006, 0.0, 0.004, 0.0, 0.002, 0.0])

    def answer_late() -> None:
        bench.clock.seconds += next(delays, 0.0)

    bench.grants.before_step = answer_late  # the way there is slow: the reading seems late
    for token in range(1, 8):
        bench.give(token)
        bench.work()
        bench.execution.end(token, started=bench.clock.seconds)
    bench.work(2)
    times = [instant for one in bench.grants.results for instant in (one.started_at, one.finished_at)]
    assert len(times) == 14
    assert times == sorted(times, key=lambda instant: instant or bench.clock.wall())


def test_an_error_that_no_database_takes_is_sent_as_one_that_it_does(bench: Bench) -> None:
    """Else the exchange would fail for ever, and with it the results of all other jobs."""
    bench.give(1)
    bench.work()
    bench.execution.end(1, exit_code=1, error="ValueError: \ud800 and \0")
    bench.work()
    (result,) = bench.grants.results
    assert result.error == "ValueError: ? and \N{REPLACEMENT CHARACTER}"


def test_a_job_whose_claim_ended_as_poison_is_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[int]] = []

    def ask(store: object, jobs: set[int], why: str) -> list[str]:
        asked.append(jobs)
        return []

    monkeypatch.setattr(poison, "pause_poison", ask)
    bench.give(1)
    bench.grants.ready.append(a_grant(2, losses=2))
    bench.work()
    bench.execution.end(1, ending=Ending.VANISHED, error="gone")
    bench.work()
    assert asked == []
    bench.execution.end(2, ending=Ending.VANISHED, error="gone")
    bench.work()
    assert asked == [{1}]
    assert [(result.outcome, result.is_loss) for result in bench.grants.results] == [
        (State.READY, True),
        (State.LOST, True),
    ]


def test_a_failed_run_goes_back_with_its_retry_and_a_later_time(bench: Bench) -> None:
    bench.grants.definitions_of[1, 1] = a_definition(retries=RetryRules(max=1, delay=timedelta(seconds=8)))
    bench.give(1)
    bench.work()
    bench.execution.end(1, exit_code=1)
    bench.work()
    (result,) = bench.grants.results
    assert (result.outcome, result.uses_retry) == (State.READY, True)
    assert result.retry_at == result.finished_at + timedelta(seconds=6)  # jitter's draw is in the middle


def fault(bench: Bench, token: int) -> float:
    """The machine cannot start this run; the seconds for which the worker then sleeps."""
    bench.execution.end(token, ending=Ending.MACHINE_FAULT, started=None, error="given back: no descriptors")
    return bench.work()


def test_a_fault_of_the_machine_gives_the_claim_back_and_pauses_the_pull(bench: Bench) -> None:
    bench.give(1, 2, 3, at_most_once=True)
    with capture_logs() as logs:
        bench.work()
        assert fault(bench, 1) == pytest.approx(1.0)
        assert fault(bench, 2) == pytest.approx(1.0)
        assert bench.rooms() == [2, 0, 0]  # 3 is left to others
        bench.clock.seconds += 1.0
        bench.work()
        assert bench.rooms()[-1] == 2
        assert bench.execution.running == {3}
        assert fault(bench, 3) == pytest.approx(2.0)
    results = bench.grants.results
    assert [(one.token, one.outcome, one.uses_retry, one.started_at) for one in results] == [
        (token, State.READY, False, None) for token in (1, 2, 3)
    ]
    assert all(one.retry_at == one.finished_at + timedelta(seconds=1.5) for one in results)
    assert {one.error for one in results} == {"given back: no descriptors"}
    assert [entry["event"] for entry in logs].count("worker.machine_fault") == 1


def test_an_idle_worker_sleeps_to_the_next_claim_or_its_poll(bench: Bench) -> None:
    assert bench.work() == 5.0
    bench.grants.next_available_at = bench.clock.wall() + timedelta(seconds=2)
    assert bench.work() == pytest.approx(2.0, abs=0.01)
    bench.grants.picked_but_kept = 1  # no grant although one was picked: not idle
    assert bench.work() < 0.02


def test_what_was_taken_ahead_is_given_back_when_the_slots_are_stuck(bench: Bench) -> None:
    bench.give(1, 2)
    bench.work()
    bench.give(*range(3, 9))
    for token in (1, 2):
        bench.execution.end(token)
    bench.work()
    assert bench.rooms() == [2, 2]
    for token in (3, 4):
        bench.execution.end(token)
    bench.work()
    assert bench.execution.running == {5, 6, 7, 8}  # twice as many as ended between two exchanges
    bench.execution.waiting = [7, 8]
    assert bench.work() == RECALL_SECONDS
    bench.clock.seconds += RECALL_SECONDS
    bench.work()
    assert bench.execution.recalled == [7, 8]
    given_back = bench.grants.results[4:]
    assert [(one.token, one.outcome, one.error) for one in given_back] == [
        (7, State.READY, SLOTS_BUSY),
        (8, State.READY, SLOTS_BUSY),
    ]
    assert bench.execution.running == {5, 6}
    bench.give(9)
    bench.work(2)
    assert bench.execution.running == {5, 6}  # and nothing is taken ahead again
    assert bench.rooms()[-1] == 0


# --- the database is away


def test_results_wait_while_the_database_is_away_and_go_once(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.grants.is_away = True
    bench.execution.end(1)
    assert bench.work(3) == RETRY_SECONDS
    assert bench.book.count() == 1  # the heartbeat goes on renewing it
    bench.grants.is_away = False
    bench.work(2)
    assert bench.outcomes() == {1: State.SUCCEEDED}
    assert [len(request.results) for request in bench.grants.requests] == [0, 1, 0]
    assert bench.book.count() == 0


def test_grants_of_a_lost_answer_are_given_back_without_a_retry(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.give(2)
    bench.grants.is_losing = True
    bench.work()
    assert bench.execution.running == {1}
    bench.work()
    assert bench.grants.asked_known == [1]
    (result,) = bench.grants.results
    assert (result.token, result.outcome, result.error) == (2, State.READY, ANSWER_LOST)
    assert (result.uses_retry, result.retry_at, result.started_at) == (False, None, None)
    assert bench.execution.running == {1}


def test_results_of_a_lost_answer_are_sent_again_and_counted_once(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.execution.end(1)
    bench.grants.is_losing = True
    bench.work(3)
    assert bench.outcomes() == {1: State.SUCCEEDED}
    assert [len(request.results) for request in bench.grants.requests] == [0, 1, 1, 0]


def test_a_refused_result_is_written_down_as_such_and_forgotten(bench: Bench) -> None:
    """Invariant 4: the store says no, and the worker asks no more."""
    bench.give(1)
    bench.work()
    bench.grants.stolen.add(1)
    bench.execution.end(1)
    bench.work(3)
    assert bench.outcomes() == {}
    assert [len(request.results) for request in bench.grants.requests] == [0, 1, 0, 0]
    assert [result.token for result in bench.store.refused] == [1]
    assert bench.book.count() == 0


def test_a_grant_whose_lease_ran_out_before_it_could_start_never_starts(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    bench.grants.definitions_of[1, 2] = a_definition()
    bench.grants.ready.append(a_grant(2)._replace(revision=2))
    original = bench.grants.definitions
    bench.grants.definitions = raising  # type: ignore[method-assign,assignment]  # the database goes away in mid-step
    bench.work(2)  # the exchange that follows knows no definition of what it could start meanwhile
    bench.grants.definitions = original  # type: ignore[method-assign]  # it is back, but too late
    bench.clock.seconds += 31
    bench.work(2)
    assert bench.execution.running == {1}
    assert [one.token for one in bench.book.holdings()] == [1]
    assert bench.outcomes() == {2: State.READY}


# --- at most once


def test_an_at_most_once_run_starts_only_after_its_started_write(bench: Bench) -> None:
    bench.give(1, 2, at_most_once=True)
    bench.grants.stolen.add(2)
    bench.work()
    assert sorted(bench.grants.started) == [1, 2]
    assert bench.execution.running == {1}
    assert [one.token for one in bench.book.holdings()] == [1]
    assert bench.book.holdings()[0].ends_with_lease


def test_other_runs_need_no_started_write(bench: Bench) -> None:
    bench.give(1)
    bench.work()
    assert bench.grants.started == []
    assert not bench.book.holdings()[0].ends_with_lease


def test_whether_a_run_must_not_outlive_its_lease_is_known_before_it_begins(bench: Bench) -> None:
    bench.grants.definitions_of[1, 1] = a_definition(on_lease_lost=OnLeaseLost.KILL)
    original = bench.execution.start

    def start(*orders: RunOrder) -> None:
        assert bench.book.binding().keys() == {order.token for order in orders}
        original(*orders)

    bench.execution.start = start  # type: ignore[method-assign]  # looks first
    bench.give(1, 2)
    bench.work()
    assert bench.execution.running == {1, 2}
    assert bench.grants.started == []
    bench.grants.is_away = True
    bench.clock.seconds += 31
    bench.work()
    assert bench.execution.stopped == [(1, StopReason.LEASE_LOST), (2, StopReason.LEASE_LOST)]
    bench.grants.is_away = False
    bench.work()
    assert bench.outcomes() == {1: State.READY, 2: State.READY}


def test_an_at_most_once_run_waits_for_a_database_that_went_away(bench: Bench) -> None:
    bench.give(1, at_most_once=True)
    original = bench.grants.mark_started
    bench.grants.mark_started = raising  # type: ignore[method-assign,assignment]  # away in mid-step
    bench.work()
    assert bench.execution.running == set()
    bench.grants.mark_started = original  # type: ignore[method-assign]  # it is back
    bench.work()
    assert bench.execution.running == {1}


# --- bad definitions


def test_an_at_most_once_run_whose_started_write_was_answered_too_late_is_given_back_and_not_lost(bench: Bench) -> None:
    """It is marked as started, and has certainly not begun."""
    original = bench.grants.mark_started

    def lose_the_answer(grants: Sequence[Grant]) -> frozenset[int]:
        original(grants)
        raise DatabaseUnreachable("the answer was lost")

    bench.grants.mark_started = lose_the_answer  # type: ignore[method-assign]  # the write was done
    bench.give(1, at_most_once=True)
    bench.work()
    bench.grants.mark_started = original  # type: ignore[method-assign]  # it is back, but too late
    bench.clock.seconds += 31
    bench.work(2)
    assert bench.execution.orders == {}
    assert bench.outcomes() == {1: State.READY}


def test_a_definition_that_cannot_be_read_fails_its_own_run_only(bench: Bench) -> None:
    """Invariant 9."""
    bench.grants.broken.add((1, 2))
    bench.grants.ready += [a_grant(1)._replace(revision=2), a_grant(2)]
    bench.work(2)
    assert bench.execution.running == {2}
    (result,) = bench.grants.results
    assert (result.token, result.outcome) == (1, State.FAILED)
    assert "revision 2 of job 1 cannot be read" in result.error


def test_a_definition_that_is_gone_fails_its_run(bench: Bench) -> None:
    bench.grants.ready.append(a_grant(1)._replace(revision=9))
    bench.work(2)
    assert bench.outcomes() == {1: State.FAILED}


def test_a_worker_that_was_frozen_stops_what_may_be_anothers_before_the_database_hears_of_it(bench: Bench) -> None:
    """Invariant 4: only what must not outlive its lease; the others go on, and their results are refused if need be."""
    bench.give(1, at_most_once=True)
    bench.give(2)
    bench.work()
    seen: list[set[int]] = []
    bench.grants.before_step = lambda: seen.append(set(bench.execution.running))
    bench.clock.seconds += 31
    bench.execution.end(2)
    bench.work()
    assert bench.execution.stopped == [(1, StopReason.LEASE_LOST)]
    assert seen[0] == set()
    assert bench.outcomes()[1] is State.LOST


def test_a_worker_that_was_frozen_for_less_than_a_lease_stops_nothing(bench: Bench) -> None:
    bench.give(1, at_most_once=True)
    bench.work()
    bench.clock.seconds += 29
    bench.work()
    assert bench.execution.stopped == []
