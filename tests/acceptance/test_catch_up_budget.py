"""What a leader whose commits are refused takes from the catch-up budget, on virtual time over a real ledger."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from sexton.decisions import CommitResult, LatePlan, TickBatch
from sexton.store.tables import from_micros
from sexton_scheduler.catch_up_budget import CatchUpBudget
from sexton_scheduler.housekeeping import decide_late_claims
from tests.support.leader_scene import lead
from tests.support.virtual_nodes import TWO, VirtualCluster, cron_job

SECOND = timedelta(seconds=1)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def budget_ahead(cluster: VirtualCluster) -> timedelta:
    ((next_at,),) = cluster.rows("SELECT next_at FROM budget")
    return from_micros(next_at) - cluster.clock.wall()


def test_a_batch_whose_commit_is_refused_for_a_while_is_reserved_for_once(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.set(catch_up__rate="1")
    (job,) = cluster.apply(cron_job("often", "* * * * *", "all", grace=timedelta(0)))
    leader = cluster.node("one")
    cluster.run(5)
    leader.is_alive = False
    cluster.run(600)
    successor = cluster.node("two")
    commit, refused = successor.store.ticks.commit, list[int]()

    def locked_for_a_while(batch: TickBatch) -> CommitResult:
        if len(refused) < 12:
            refused.append(len(batch.claims))
            return CommitResult(True, True, 0, 0, tuple(move.job_id for move in batch.moves))
        return commit(batch)

    monkeypatch.setattr(successor.store.ticks, "commit", locked_for_a_while)
    cluster.run(10)
    assert len(refused) == 12
    starts = [
        from_micros(at)
        for (at,) in cluster.rows(f"SELECT available_at FROM claims WHERE job_id = {job} AND origin = 1 ORDER BY 1")
    ]
    assert len(starts) >= 8
    assert all(later - earlier >= SECOND for earlier, later in pairwise(starts))
    # No more is reserved than what the ticks take and the time that the refusals took.
    assert budget_ahead(cluster) <= (len(starts) + 1) * SECOND


def test_late_claims_that_could_not_be_decided_are_reserved_for_once(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.set(catch_up__rate="1")
    cluster.apply(cron_job("often", "* * * * * *", "all", grace=timedelta(0)))
    node = cluster.node("one")
    cluster.run(10)
    node.duty_due["late claims"] = 1e9
    cluster.run(120, step=1.0)

    def locked(_: LatePlan) -> int:
        return 0

    with monkeypatch.context() as patched:
        patched.setattr(node.store.ticks, "decide_late", locked)
        assert decide_late_claims(node.keeper) == 0
        once = budget_ahead(cluster)
        assert once > 10 * SECOND
        for _ in range(5):
            assert decide_late_claims(node.keeper) == 0
    assert decide_late_claims(node.keeper) > 10
    assert budget_ahead(cluster) == once


def test_starts_that_passed_unused_are_drawn_anew(cluster: VirtualCluster) -> None:
    store, now = cluster.store, cluster.clock.wall
    budget = CatchUpBudget(store, lead(store))
    starts = budget.take(10, 1.0, now())
    assert starts is not None
    budget.give_back(starts)
    cluster.clock.seconds += 4.5
    again = budget.take(10, 1.0, now())
    assert again is not None
    assert again == [*starts[5:], *(starts[-1] + n * SECOND for n in range(1, 6))]


def test_a_term_that_is_over_takes_nothing(cluster: VirtualCluster) -> None:
    """Invariant 3."""
    budget = CatchUpBudget(cluster.store, lead(cluster.store))
    lead(cluster.store, "n2")
    before = budget_ahead(cluster)
    assert budget.take(10, 1.0, cluster.clock.wall()) is None
    assert budget_ahead(cluster) == before
