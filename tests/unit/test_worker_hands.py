"""What a worker has in its hands, and the words in which it hands a Python run on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.claims import Origin
from sexton.recipes import Recipe
from sexton.targets import PythonTarget
from sexton_worker.core.runs import EndedRun, Ending
from sexton_worker.execution import RunOrder
from sexton_worker.hands import Hands
from sexton_worker.targets.python_requests import PythonRequests
from sexton_worker.worker_time import WorkerTime
from tests.support.runs import DEADLINE, PLAIN, a_grant
from tests.support.worker_fakes import FakeClock


def test_what_is_in_hand_under_the_catch_up_budget_is_counted_until_it_is_out_of_hand() -> None:
    clock = FakeClock()
    time = WorkerTime(clock)
    time.observed(clock.wall, lambda now: now)
    hands = Hands(clock, time, lambda: 0.5)
    paced = [a_grant(token)._replace(origin=Origin.CATCH_UP) for token in (1, 2, 3, 4)]
    hands.take([*paced, a_grant(5)])
    assert hands.paced_count() == 4
    for grant in (*paced, a_grant(5)):
        hands.begin(grant, _recipe(), clock.wall(), 99.0) if grant.token != 2 else hands.give_back(grant, "why")
    assert hands.paced_count() == 3
    hands.recalled(3, "why")
    hands.end(EndedRun(1, Ending.EXITED, clock.elapsed(), clock.elapsed(), 0))
    hands.end(EndedRun(5, Ending.EXITED, clock.elapsed(), clock.elapsed(), 0))
    assert hands.paced_count() == 1
    hands.take([paced[0]._replace(token=9)])
    hands.drop(9)
    assert hands.paced_count() == 1


def test_what_was_sent_without_an_answer_goes_again_before_what_came_since() -> None:
    clock = FakeClock()
    time = WorkerTime(clock)
    time.observed(clock.wall, lambda now: now)
    hands = Hands(clock, time, lambda: 0.5)
    hands.give_back(a_grant(1), "why")
    (first,) = hands.send()
    hands.give_back(a_grant(2), "why")
    assert (hands.results(), hands.tokens()) == (2, [1, 2])
    assert [result.token for result in hands.send()] == [first.token, 2]
    hands.settle()
    assert (hands.results(), hands.send()) == (0, ())


@pytest.mark.parametrize(
    ("target", "changes"),
    [
        (PythonTarget("a.b:c"), {}),
        (PythonTarget("a.b:c", (1,)), {}),
        (PythonTarget("a.b:c", (), {"k": None}), {}),
        (PythonTarget("a.b:c"), {"env": {"A": "ü"}, "cwd": "", "stdin": ""}),
    ],
)
def test_a_request_says_the_same_in_few_words_and_in_many(target: PythonTarget, changes: dict[str, Any]) -> None:
    rules = replace(PLAIN, target=target, max_runtime=timedelta(seconds=5), **changes)
    line = PythonRequests().line(RunOrder(a_grant(7), 'job "ü"', rules, DEADLINE), target)
    token, _, attempt, _, *rest = json.loads(line)
    assert (token, attempt) == (7, 3)
    assert rest == ['job "ü"', "a.b:c", list(target.args), target.kwargs, rules.env, rules.cwd, rules.stdin]


def _recipe() -> Recipe:
    return Recipe("job", PLAIN)
