"""What the ledger tells of the catch-up: by origin, under which budget, and until when; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.store.protocol import RunResult, StepRequest, Store
from tests.support.claim_rows import ClaimRows, now

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=30)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    yield scene
    scene.close()


def test_what_waits_is_told_by_origin_with_the_budget_and_what_is_in_use(store: Store, rows: ClaimRows) -> None:
    assert store.reads.catch_up().is_idle
    store.edits.set_setting("catch_up.rate", "20", "tests")
    store.edits.set_setting("catch_up.concurrency", "2", "tests")
    worker = store.grants.register("worker", "here", "0", 1, ["default"], 8)
    missed = [rows.add(1, origin=int(Origin.CATCH_UP), overlap=int(Overlap.ALLOW)) for _ in range(4)]
    rows.add(1)  # of the schedule
    rows.add(2, origin=int(Origin.HELD), available_at=now() + 100 * SECOND)
    rows.add(3, origin=int(Origin.BACKFILL), blocked=True)
    rows.add(3, origin=int(Origin.BACKFILL), state=int(State.PARKED))
    rows.add(3, state=int(State.PARKED))
    found = store.reads.catch_up()
    assert (found.waiting, found.parked, found.unserved) == ({"catch_up": 4, "held": 1, "backfill": 1}, 1, 0)
    assert (found.rate, found.concurrency, found.running) == (20.0, 2, 0)
    assert found.last_start_in is not None
    assert 95 * SECOND < found.last_start_in < 100 * SECOND
    assert (found.usual_run, found.done_in) == (None, None)

    step = StepRequest(worker, ("default",), 8, LEASE, 2)
    grants = {grant.scheduled_at: grant for grant in store.grants.step(step).grants if grant.origin is Origin.CATCH_UP}
    assert store.reads.catch_up().running == len(grants) == 2
    one = grants[missed[0]]
    ended = now()
    result = RunResult(
        one.job_id, one.scheduled_at, one.token, 1, State.SUCCEEDED, ended, started_at=ended - 90 * SECOND
    )
    store.grants.step(StepRequest(worker, ("default",), 0, LEASE, 2, (result,)))
    found = store.reads.catch_up()
    assert (found.waiting["catch_up"], found.running, found.usual_run) == (2, 1, 90 * SECOND)
    assert found.done_in is not None
    assert 185 * SECOND < found.done_in < 190 * SECOND  # the last starts in 100 s

    store.grants.unregister(worker)
    assert (store.reads.catch_up().unserved, store.reads.catch_up().done_in) == (4, None)
