"""Held ticks from the outage to the run, on virtual time over a real ledger: what nodes make, an operator answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.claims import Origin, Overlap
from sexton.hold_views import HoldView
from sexton.holds import Part, ProposalState
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import Grant, StepRequest
from tests.support.held_scene import approval, approve
from tests.support.virtual_nodes import TWO, VirtualCluster, cron_job

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def away(cluster: VirtualCluster, name: str, gap: timedelta) -> None:
    """Every node ends; after the gap one of this name leads."""
    for node in cluster.nodes:
        node.is_alive = False
    cluster.clock.seconds += gap.total_seconds()
    cluster.node(name)
    cluster.run(12)


def grants(cluster: VirtualCluster) -> list[Grant]:
    """What a new worker with much room is granted now."""
    worker = cluster.store.grants.register("w", "here", "0", 1, ["default"], 100)
    granted = cluster.store.grants.step(StepRequest(worker, ("default",), 100, timedelta(seconds=30), 100)).grants
    return list(granted)


def holds(cluster: VirtualCluster) -> list[HoldView]:
    return list(cluster.store.reads.holds())


def assert_clean(cluster: VirtualCluster) -> None:
    """Invariant 2."""
    assert audit_ledger(cluster.store, TWO - DAY).is_clean


def test_a_hold_is_approved_after_thirty_hours_and_no_tick_has_grown_too_old(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("hourly", "0 * * * *", "hold", within=DAY))
    cluster.node("one")
    cluster.run(5)
    away(cluster, "two", timedelta(hours=3))
    (hold,) = holds(cluster)
    assert (hold.count, hold.first, hold.last) == (3, TWO, TWO + 2 * HOUR)
    assert hold.reason == "policy hold: older than grace 1m"
    cluster.clock.seconds += 30 * 3600
    cluster.run(12)
    first, second = holds(cluster)  # the second gap made its own: the first waits with its own ticks
    assert (first.proposal_id, first.count) == (hold.proposal_id, 3)
    assert second.first > first.last
    done = cluster.store.holds.approve(approval(cluster.store, first.proposal_id), "ana")
    assert (done.is_done, done.approved) == (True, 3)
    assert [tick for tick in cluster.claims(job) if tick <= TWO + 2 * HOUR] == [TWO, TWO + HOUR, TWO + 2 * HOUR]
    cluster.clock.seconds += 1
    assert [grant.origin for grant in grants(cluster)] == [Origin.HELD]  # one at a time, whatever `overlap` says
    cluster.store.holds.reject(second.proposal_id, "ana")
    assert_clean(cluster)


@pytest.mark.parametrize("policy", ["all", "latest"])
def test_a_pass_above_the_limit_is_held_whatever_the_policy_says_why_and_can_be_approved(
    cluster: VirtualCluster, policy: str
) -> None:
    jobs = cluster.apply(*(cron_job(f"job-{number}", "* * * * *", policy, start_within=DAY) for number in range(4)))
    cluster.set(catch_up__hold_above="3")
    cluster.node("one")
    cluster.run(5)
    away(cluster, "two", timedelta(minutes=20))
    held = holds(cluster)
    assert {one.job_id for one in held} == set(jobs)
    assert {one.reason for one in held} == {"held: the pass would fire more ticks than catch_up.hold_above"}
    assert {one.count for one in held} == ({1} if policy == "latest" else {one.count for one in held if one.count > 10})
    for one in held:
        assert cluster.store.holds.approve(approval(cluster.store, one.proposal_id), "ana").is_done
    ((claims,),) = cluster.rows(f"SELECT count(*) FROM claims WHERE origin = {Origin.HELD}")
    assert claims == sum(one.count for one in held)
    assert_clean(cluster)


def test_claims_that_no_worker_took_are_held_with_their_reason_and_run_once_approved(cluster: VirtualCluster) -> None:
    cluster.apply(replace(cron_job("often", "* * * * *", "hold"), overlap=Overlap.ALLOW))
    cluster.node("one")
    cluster.run(600, step=1.0)
    (hold,) = holds(cluster)
    assert hold.count >= 7
    assert hold.reason == "claimed but not started; policy hold: older than grace 1m"
    assert approve(cluster.store, Part(newest=2)).approved == 2
    cluster.clock.seconds += 1
    assert Origin.HELD in {grant.origin for grant in grants(cluster)}
    assert_clean(cluster)


def test_any_node_closes_what_nobody_answered_within_hold_for(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("hourly", "0 * * * *", "hold", hold_for=2 * HOUR, start_within=DAY))
    cluster.node("one")
    cluster.run(5)
    away(cluster, "two", timedelta(hours=1))
    (hold,) = holds(cluster)
    assert hold.lapses_at - hold.made_at < 2 * HOUR + timedelta(seconds=1)
    cluster.run(7210, step=5.0)
    (lapsed,) = cluster.store.reads.holds(answered=True)
    assert (lapsed.state, lapsed.answered_by) == (ProposalState.LAPSED, "sexton")
    assert_clean(cluster)
