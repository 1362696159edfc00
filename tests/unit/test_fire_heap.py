"""The heap of next ticks holds each job once, whatever was pushed before."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sexton_scheduler.core.fire_heap import FireHeap
from tests.support.planned_jobs import NOON

ticks = st.integers(0, 20).map(lambda n: NOON + timedelta(seconds=n))


def test_the_earliest_tick_comes_first_and_equal_ticks_by_job() -> None:
    heap = FireHeap()
    heap.push(3, NOON)
    heap.push(1, NOON + timedelta(seconds=1))
    heap.push(2, NOON)
    assert heap.peek() == NOON
    assert [heap.pop(NOON), heap.pop(NOON), heap.pop(NOON)] == [2, 3, None]
    assert heap.pop(NOON + timedelta(seconds=1)) == 1


def test_a_later_push_replaces_the_earlier_one() -> None:
    heap = FireHeap()
    heap.push(1, NOON)
    heap.push(1, NOON + timedelta(seconds=5))
    assert len(heap) == 1
    assert heap.peek() == NOON + timedelta(seconds=5)
    heap.push(1, NOON)
    assert heap.pop(NOON) == 1
    assert heap.pop(NOON + timedelta(days=1)) is None


def test_replaced_entries_do_not_pile_up() -> None:
    heap = FireHeap()
    for second in range(10_000):
        heap.push(1, NOON + timedelta(seconds=second))
    assert len(heap._entries) < 1100


@given(st.lists(st.tuples(st.sampled_from(["push", "remove", "pop"]), st.integers(0, 5), ticks)))
def test_it_behaves_like_a_dictionary_sorted_by_tick(steps: list[tuple[str, int, datetime]]) -> None:
    heap, model = FireHeap(), dict[int, datetime]()
    for what, job_id, tick in steps:
        if what == "push":
            heap.push(job_id, tick)
            model[job_id] = tick
        elif what == "remove":
            heap.remove(job_id)
            model.pop(job_id, None)
        else:
            due = sorted((t, j) for j, t in model.items() if t <= tick)
            assert heap.pop(tick) == (due[0][1] if due else None)
            for _, first in due[:1]:
                del model[first]
        assert heap.peek() == min(model.values(), default=None)
        assert heap.due(NOON + timedelta(seconds=10)) == [
            job for tick, job in sorted((t, j) for j, t in model.items()) if tick <= NOON + timedelta(seconds=10)
        ]
        assert len(heap) == len(model)
