"""What a worker that has plenty in hand does when: starts, looks for urgent work, writes results."""

from __future__ import annotations

import pytest

from sexton.claims import State
from sexton_worker.core import pull_policy
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench, raising


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_was_granted_starts_during_the_next_exchange_but_for_what_is_urgent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_policy, "LARGEST_PULL", 2)
    monkeypatch.setattr(pull_policy, "capacity", lambda slots, pace: 8)
    bench.give(*range(1, 5))
    bench.grants.ready.append(a_grant(6)._replace(priority=2))  # the database has what is urgent come first
    bench.give(5, 7, 8)
    bench.work()
    bench.work()
    assert bench.execution.running == {1, 2, 3, 4}
    assert bench.work() == 0.0
    assert bench.execution.running == {1, 2, 3, 4, 6}
    began: list[set[int]] = []
    bench.grants.before_step = lambda: began.append(set(bench.execution.running))
    bench.work()
    assert began == [{1, 2, 3, 4, 5, 6}]
    assert bench.execution.running == set(range(1, 9))


def test_who_is_told_of_work_looks_soon_and_leaves_its_results_for_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_policy, "LARGEST_PULL", 4)
    monkeypatch.setattr(pull_policy, "capacity", lambda slots, pace: 8)
    bench.give(*range(1, 5))
    bench.work()
    for token in range(1, 5):
        bench.execution.end(token)
    bench.loop.notice.set()
    bench.loop.notice.set()
    bench.grants.ready.append(a_grant(9)._replace(priority=2))
    bench.work()
    assert 9 in bench.execution.running
    bench.loop.notice.set()  # again: the results do not wait for ever
    bench.work()
    asked = [(request.room, len(request.results)) for request in bench.grants.requests]
    assert asked == [(4, 0), (pull_policy.URGENT_PULL, 0), (4, 4)]


@pytest.fixture
def busy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Two exchanges of a drain are over, and a third, whose grants 5 and 6 wait for the fourth."""
    monkeypatch.setattr(pull_policy, "LARGEST_PULL", 2)
    monkeypatch.setattr(pull_policy, "capacity", lambda slots, pace: 99)
    bench.give(*range(1, 11))
    bench.work(2)
    assert bench.work() == 0.0
    assert bench.execution.running == {1, 2, 3, 4}
    return bench


def test_an_answer_is_taken_in_while_the_next_exchange_is_on_its_way(busy: Bench) -> None:
    held: list[int] = []
    busy.grants.before_step = lambda: held.append(busy.book.count())
    assert busy.book.count() == 4
    busy.work()
    assert held == [6]
    assert busy.execution.running == {1, 2, 3, 4, 5, 6}


def test_results_are_made_ready_while_the_exchange_before_theirs_is_on_its_way(busy: Bench) -> None:
    busy.execution.end(3)
    busy.work()
    ready = busy.grants.prepared
    assert [result.token for result in ready] == [3]
    busy.clock.seconds += pull_policy.LINGER
    busy.work()
    assert busy.grants.requests[-1].results == ready


def test_what_an_answer_granted_that_was_not_taken_in_is_not_taken_for_lost(
    busy: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next exchange never came to the database: then all that is here is known first."""
    with monkeypatch.context() as away:
        away.setattr(busy.grants, "step", lambda request, meanwhile: raising(request))
        busy.work()
    busy.work()
    assert {5, 6} <= set(busy.grants.asked_known)
    assert {5, 6} <= busy.execution.running


def test_what_was_granted_and_not_taken_in_goes_back_when_the_worker_drains(busy: Bench) -> None:
    busy.loop.drain()
    assert not busy.loop.is_done
    busy.work()
    busy.clock.seconds += pull_policy.LINGER
    busy.work()
    assert {busy.outcomes()[token] for token in (5, 6)} == {State.READY}


def test_at_most_once_is_written_down_between_two_exchanges_though_they_follow_each_other_at_once(busy: Bench) -> None:
    busy.grants.ready = []
    busy.give(11, 12, at_most_once=True)
    busy.give(*range(13, 31))
    during: list[bool] = []
    busy.grants.before_step = lambda: during.append(bool({11, 12} & busy.execution.running))
    assert busy.work(2) == 0.0
    assert during == [False, False]
    assert busy.grants.started == [11, 12]
    assert {11, 12} <= busy.execution.running
    assert busy.loop._goes_on()


def test_exchanges_are_short_for_a_while_after_an_urgent_claim(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_policy, "capacity", lambda slots, pace: 999)
    bench.grants.before_step = lambda: setattr(bench.clock, "seconds", bench.clock.seconds + 0.016)
    bench.give(*range(1, 401))
    bench.grants.ready.insert(0, a_grant(999)._replace(priority=1))
    bench.work(2)
    each = 0.016 / pull_policy.LARGEST_PULL
    assert bench.rooms()[1] == pytest.approx(pull_policy.SHORT_SECONDS / each, abs=1)
    bench.clock.seconds += pull_policy.URGENT_FOR
    assert bench.loop._room() == pytest.approx(
        min(pull_policy.LARGEST_PULL, pull_policy.EXCHANGE_SECONDS / each), abs=1
    )
