"""In which turn the runs begin that wait in a worker."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from sexton_worker.core.turns import enter, turn


@dataclass(frozen=True, slots=True)
class Waiting:
    name: str
    arrival: int


def line_of(*runs: tuple[str, int]) -> list[str]:
    line: deque[Waiting] = deque()
    for number, (name, priority) in enumerate(runs):
        enter(line, Waiting(name, turn(number, priority)))
    return [one.name for one in line]


def test_runs_of_one_priority_begin_as_they_came() -> None:
    assert line_of(("a", 0), ("b", 0), ("c", 0)) == ["a", "b", "c"]


def test_an_urgent_run_goes_before_all_that_were_taken_ahead() -> None:
    assert line_of(("a", 0), ("b", -2), ("c", 0), ("urgent", 2), ("d", 1), ("second", 2)) == [
        *("urgent", "second", "d", "a", "c", "b")
    ]


def test_any_mixture_stands_in_the_order_of_its_turns() -> None:
    draw = random.Random(1)
    runs = [(str(number), draw.randint(-2, 2)) for number in range(300)]
    assert line_of(*runs) == [name for name, _ in sorted(runs, key=lambda run: -run[1])]
