"""How Python runs are put together, and what worker and process share in memory."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.targets import PythonTarget
from sexton_worker.core.chunks import ALONE_SECONDS, FEWEST_TOGETHER, LARGEST_HAND, Durations, most_together, share
from sexton_worker.execution import RunOrder
from sexton_worker.targets import board
from sexton_worker.targets.board import RING, Board
from sexton_worker.targets.python_queue import PythonQueue
from tests.support.runs import DEADLINE, a_grant, rules_for

# --- how many


def test_what_is_slow_or_unknown_goes_alone() -> None:
    durations = Durations()
    assert durations.most_together("f") == 1
    durations.note("f", 0.00001)
    assert durations.most_together("f") == LARGEST_HAND
    durations.note("f", 3.0)
    assert durations.most_together("f") == 1
    for _ in range(20):
        durations.note("f", 0.00001)
    assert durations.most_together("f") == 1  # one slow run is not forgotten at once
    for _ in range(80):
        durations.note("f", 0.00001)
    assert durations.most_together("f") > 1
    assert durations.most_together("g") == 1


@given(seconds=st.floats(0, 1e6), waiting=st.integers(1, 1000), processes=st.integers(0, 64))
def test_a_hand_is_never_empty_nor_larger_than_the_ring(seconds: float, waiting: int, processes: int) -> None:
    most = most_together(seconds)
    assert 1 <= share(waiting, processes, most, seconds) <= most <= LARGEST_HAND <= RING


def test_runs_are_dealt_evenly_but_not_too_thin() -> None:
    assert share(200, 4, LARGEST_HAND) == 50
    assert share(8, 4, LARGEST_HAND) == FEWEST_TOGETHER
    assert share(200, 4, 3) == 3


def test_what_one_process_does_in_a_moment_wakes_no_second() -> None:
    assert share(100, 4, LARGEST_HAND, ALONE_SECONDS / 100) == 100
    assert share(100, 4, LARGEST_HAND, ALONE_SECONDS / 40) == 40
    assert share(1000, 4, LARGEST_HAND, 0.0) == LARGEST_HAND


# --- which


def an_order(token: int, function: str = "m:f", *, begin_by: float = 1e9, at_most_once: bool = False) -> RunOrder:
    grant = a_grant(token, at_most_once=at_most_once)
    return RunOrder(grant, "nightly", rules_for(PythonTarget(function)), DEADLINE, begin_by)


def a_queue(*orders: RunOrder) -> PythonQueue:
    queue = PythonQueue()
    for arrival, order in enumerate(orders):
        target = order.rules.target
        assert isinstance(target, PythonTarget)
        queue.add(order, target, arrival)
    queue.note("m:f", 0.00001)
    return queue


def together(queue: PythonQueue, held: int = 0) -> list[int]:
    tasks, _ = queue.pop_together(held, 1, now=100.0)
    return [task.token for task in tasks]


def test_a_run_that_may_be_made_once_only_is_never_given_with_others() -> None:
    """A process that outlives its worker may begin what it holds."""
    queue = a_queue(an_order(1), an_order(2), an_order(3, at_most_once=True), an_order(4))
    assert [together(queue) for _ in range(3)] == [[1, 2], [3], [4]]


def test_slow_functions_and_quick_ones_do_not_go_together() -> None:
    queue = a_queue(an_order(1), an_order(2, "m:slow"), an_order(3), an_order(4))
    queue.note("m:slow", 5.0)
    assert [together(queue) for _ in range(3)] == [[1], [2], [3, 4]]


def test_what_may_no_longer_begin_is_not_given() -> None:
    queue = a_queue(an_order(1), an_order(2, begin_by=100.0), an_order(3))
    assert queue.pop_expired(100.0) is None
    assert together(queue) == [1]
    expired = queue.pop_expired(100.0)
    assert expired is not None
    assert expired.token == 2
    assert together(queue) == [3]


def test_what_was_taken_back_is_in_front_again_in_its_order() -> None:
    queue = a_queue(*(an_order(token) for token in range(1, 6)))
    tasks, is_quick = queue.pop_together(LARGEST_HAND - 3, 1, now=0.0)
    assert [task.token for task in tasks] == [1, 2, 3]
    assert is_quick
    queue.again(tasks[1:])
    assert queue.clear() == [2, 3, 4, 5]
    assert len(queue) == 0


# --- the board


@pytest.fixture
def boards() -> tuple[Board, Board]:
    """The child's, then the worker's."""
    memory = Board.descriptor()
    return Board(os.dup(memory)), Board(memory)


def test_each_end_is_seen_once_in_its_turn(boards: tuple[Board, Board]) -> None:
    child, worker = boards
    for token in range(1, 3 * RING):
        assert worker.ended(token) is None
        child.note_ended(token, token + 0.25, token + 0.5)
        assert worker.ended(token + 1) is None
        assert worker.ended(token) == (token + 0.25, token + 0.5)
        assert worker.ended(token) is None


def test_a_half_written_record_is_none(boards: tuple[Board, Board], monkeypatch: pytest.MonkeyPatch) -> None:
    child, worker = boards
    child.note_ended(1, 2.0, 3.0)
    monkeypatch.setattr(board, "hash", lambda value: 0, raising=False)
    child.note_ended(2, 4.0, 5.0)
    child.note_begun(2, 4.0)
    monkeypatch.undo()
    assert worker.ended(1) == (2.0, 3.0)
    assert worker.ended(2) is None
    assert worker.begun(2) is None
    child.note_begun(2, 4.0)
    assert worker.begun(2) == 4.0
    assert worker.begun(3) is None


def test_counts_go_both_ways(boards: tuple[Board, Board]) -> None:
    child, worker = boards
    assert (worker.mailed(), child.taken()) == (0, 0)
    child.note_mail()
    worker.note_taking()
    worker.note_taking()
    assert (worker.mailed(), child.taken()) == (1, 2)


def test_the_line_of_a_run_follows_its_rules_not_its_revision_alone() -> None:
    queue = PythonQueue()
    first = an_order(1)
    second = first._replace(grant=a_grant(2), rules=rules_for(PythonTarget("m:f"), env={"A": "1"}))
    for order in (first, second, first._replace(grant=a_grant(3))):
        queue.add(order, PythonTarget("m:f"), 0)
    lines = [task.line for _ in range(3) for task in queue.pop_together(0, 1, 0.0)[0]]
    assert ['{"A":"1"}' in line for line in lines] == [False, True, False]
