"""How much of its room a worker gives to claims under the catch-up budget: never its last slots, if it has more."""

from __future__ import annotations

import pytest

from sexton.catch_up import paced_slots
from sexton.claims import Origin
from tests.support.runs import a_grant
from tests.support.worker_bench import Bench


@pytest.mark.parametrize(("slots", "paced"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (32, 24)])
def test_a_quarter_of_the_slots_is_kept_for_live_ticks(slots: int, paced: int) -> None:
    assert paced_slots(slots) == paced


def test_what_a_worker_has_of_caught_up_runs_counts_until_it_has_ended() -> None:
    bench = Bench()  # of two slots
    bench.grants.ready += [a_grant(1)._replace(origin=Origin.CATCH_UP)]
    bench.work(2)
    bench.give(2)
    bench.loop.notice.set()
    bench.work(2)
    assert bench.execution.running == {1, 2}
    bench.execution.end(1)
    bench.work()
    asked = [(request.room, request.paced_room) for request in bench.grants.requests]
    assert (asked[0], asked[1], asked[-1]) == ((2, 1), (1, 0), (1, 1))
