"""When the catch-up is done, as a sum over what waits; and what a screen says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sexton.catch_up import CatchUp, CatchUpRead, Load, Room, catch_up_at, catch_up_sentences
from sexton.claims import Origin

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ROOMY = {"default": Room(100)}


def load(count: int = 100, starts: float = 0, run: float | None = 1, slot: int | None = None, **values: object) -> Load:
    upto, took = NOON + starts * SECOND, None if run is None else run * SECOND
    return Load(values.pop("origin", Origin.CATCH_UP), "default", count, upto, slot, took, **values)  # type: ignore[arg-type]  # tests know


def seen(*loads: Load, **values: object) -> CatchUp:
    read = CatchUpRead(loads, **{"rooms": ROOMY, "slots": 100, **values})  # type: ignore[arg-type]  # tests know
    return catch_up_at(NOON, 50.0, 10, read)


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (seen(load(100, starts=60)), 61),  # the budget's last start, and its run
        (seen(load(100, starts=5)), 10),  # 100 s of runs, 10 at once
        (seen(load(100, starts=5, slot=1)), 100),  # one at a time
        (seen(load(50, slot=1), load(50, slot=1), load(50, slot=2)), 100),  # jobs of one key
        (seen(load(100, slot=-7), sizes={-7: 4}), 25),
        (seen(load(100), rooms={"default": Room(2)}), 50),  # what its workers can take
        (seen(load(100), rooms={"default": Room(100, rate=0.5)}), 200),
        (seen(load(100), slots=4), 25),
        (seen(load(100), load(10, run=None)), 11),  # a job that has not run takes what the others take
        (seen(load(100, starts=-60, run=0)), 0),
    ],
)
def test_it_is_done_when_the_last_of_its_bounds_is_reached(found: CatchUp, seconds: float) -> None:
    assert found.done_in == seconds * SECOND


def test_it_is_not_told_where_no_run_tells_or_no_worker_serves() -> None:
    unknown, unserved = seen(load(100, starts=4, run=None)), seen(load(100, starts=4), rooms={})
    assert (unknown.done_in, unserved.done_in) == (None, None)
    assert catch_up_sentences(unknown)[0].endswith("the last may start in 4s; how long they run is not known yet")
    assert catch_up_sentences(unserved)[0].endswith("the last may start in 4s, but 100 are in queues without a worker")


def test_a_screen_says_how_many_wait_by_origin_the_budget_and_the_end() -> None:
    found = seen(load(4000, starts=80, run=0.1), load(312, origin=Origin.HELD, run=0.1, starts=86), running=3, parked=2)
    assert catch_up_sentences(found) == (
        "4,312 wait (4,000 missed, 312 held and approved): done in about 1m26s",
        "budget: 3 of 10 at once, 50/s; 2 wait for their job's slot",
    )
    assert catch_up_sentences(seen()) == ()
    assert catch_up_sentences(seen(running=1)) == ("the last of it runs (1 of 10 at once, 50/s)",)
    more = seen(load(), is_whole=False)
    assert catch_up_sentences(more)[0] == "more than 100 wait (100 missed): done not before 10s"
