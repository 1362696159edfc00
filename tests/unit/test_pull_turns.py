"""The order of a worker's steps: high priorities first nearly always, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sexton.store.pull_turns import CYCLE, PRIORITIES, turn

QUEUES = [f"q{number}" for number in range(12)]


@given(st.integers(0, 10**9), st.sets(st.sampled_from(PRIORITIES), min_size=1))
def test_every_priority_that_has_work_comes_first_within_a_cycle(start: int, with_work: set[int]) -> None:
    firsts = Counter(
        next(priority for priority in turn(number, ()).priorities if priority in with_work)
        for number in range(start, start + CYCLE)
    )
    assert set(firsts) == with_work
    assert firsts[max(with_work)] >= CYCLE * 7 // 8, "the highest leads in seven steps of eight"


@given(st.integers(0, 10**9))
def test_a_step_names_every_priority_once_and_keeps_the_order_of_the_others(number: int) -> None:
    priorities = turn(number, ()).priorities
    assert sorted(priorities, reverse=True) == list(PRIORITIES)
    assert list(priorities[1:]) == sorted(priorities[1:], reverse=True)


def test_five_orders_of_priorities_are_all_there_are() -> None:
    assert len({turn(number, ()).priorities for number in range(1000)}) == 5


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_each_queue_comes_first_in_the_steps_of_each_priority(start: int, count: int) -> None:
    """Whatever the number of queues has in common with the length of a cycle."""
    queues = QUEUES[:count]
    turns = [turn(number, queues) for number in range(start, start + CYCLE * (count + 1))]
    assert all(sorted(one.queues) == sorted(queues) for one in turns)
    for priority in PRIORITIES:
        assert {one.queues[0] for one in turns if one.first == priority} == set(queues)


@given(st.integers(0, 10**9), st.sampled_from(PRIORITIES))
def test_a_queue_with_a_rule_that_found_no_room_goes_first_within_eight_steps(start: int, waiting: int) -> None:
    firsts = [turn(number, ()).begins_with_ruled(waiting) for number in range(start, start + 8)]
    assert any(firsts)
    assert sum(firsts) == {2: 4, 1: 2, 0: 2, -1: 1, -2: 1}[waiting]
    assert not any(turn(number, ()).begins_with_ruled(None) for number in range(start, start + 8))
