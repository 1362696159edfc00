"""What a worker that has plenty in hand does when: starts, looks for urgent work, writes results."""

from __future__ import annotations

import pytest

from sexton_worker.core import pull_policy
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_was_granted_starts_during_the_next_exchange_but_for_what_is_urgent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_policy, "LARGEST_PULL", 2)
    monkeypatch.setattr(pull_policy, "capacity", lambda slots, pace: 8)
    bench.give(*range(1, 6))
    bench.grants.ready.append(a_grant(6)._replace(priority=2))
    bench.give(7, 8)
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
