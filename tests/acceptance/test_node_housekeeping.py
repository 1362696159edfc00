"""Late claims, expired leases and reports, by nodes on virtual time over a real ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.claims import Origin, State
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import ChangeKind, JobChange, StepRequest
from sexton_scheduler.core.reach import Reach
from sexton_scheduler.housekeeping import decide_late_claims
from tests.support.virtual_nodes import TWO, VirtualCluster, cron_job


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def states(cluster: VirtualCluster) -> dict[tuple[str, str], int]:
    found = cluster.rows("SELECT state, origin, count(*) FROM claims GROUP BY 1, 2")
    return {(State(state).word, Origin(origin).word): count for state, origin, count in found}


def pull(cluster: VirtualCluster, worker: int, room: int = 10) -> int:
    request = StepRequest(worker, ("default",), room, timedelta(seconds=30), 10)
    return len(cluster.store.grants.step(request).grants)


def test_a_minutely_latest_job_without_a_worker_for_an_hour_runs_once_when_one_comes(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *"))
    cluster.node("one")
    cluster.run(3605, step=1.0)
    found = states(cluster)
    assert found["ready", "catch_up"] == 1
    assert found.get(("merged", "schedule"), 0) + found.get(("merged", "catch_up"), 0) >= 57
    assert found["ready", "schedule"] <= 3  # ahead, or within start_within
    reasons = cluster.rows("SELECT DISTINCT cause FROM decisions")
    assert reasons == [("claimed but not started",)]
    worker = cluster.store.grants.register("w", "here", "0", 1, ["default"], 4)
    assert pull(cluster, worker) <= 2


def test_late_claims_under_hold_extend_one_open_proposal(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "* * * * *", "hold"))
    cluster.node("one")
    cluster.run(600, step=1.0)
    ((count, state),) = cluster.rows(f"SELECT count, state FROM proposals WHERE job_id = {job}")
    assert state == "open"
    assert count == states(cluster)["held", "schedule"] >= 7


@pytest.mark.parametrize("strategy", ["leader", "race"])
def test_a_queue_without_workers_never_lets_more_wait_to_fire_than_one_pass_may_fire(
    cluster: VirtualCluster, strategy: str
) -> None:
    """`catch_up.hold_above`: each look at the late claims fires a few, and the outage of the workers is many looks."""
    cluster.set(catch_up__hold_above="10", strategy=strategy)
    cluster.apply(*(cron_job(f"job-{number}", "* * * * *", "all") for number in range(3)))
    cluster.apply(cron_job("newest", "* * * * *", "latest"))
    cluster.node("one")
    cluster.run(200, step=1.0)
    before = states(cluster)
    assert 5 <= before["ready", "catch_up"] <= 10
    assert ("held", "schedule") not in before
    cluster.run(500, step=1.0)
    found = states(cluster)
    assert found["ready", "catch_up"] <= 10
    assert sum(count for (state, _), count in found.items() if state == "held") >= 15
    assert {hold.reason for hold in cluster.store.reads.holds()} == {
        "claimed but not started; held: the pass would fire more ticks than catch_up.hold_above"
    }


def test_late_claims_under_skip_are_skipped_on_record(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *", "skip"))
    cluster.node("one")
    cluster.run(600, step=1.0)
    assert states(cluster)["skipped", "schedule"] >= 7
    assert set(states(cluster)) == {("skipped", "schedule"), ("ready", "schedule")}


def test_late_claims_of_a_retired_job_are_decided_too(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "* * * * *", "skip"))
    cluster.node("one")
    cluster.run(130, step=1.0)
    cluster.store.edits.edit([JobChange(ChangeKind.RETIRE, job_id=job)], "ops")
    cluster.run(120, step=1.0)
    assert set(states(cluster)) == {("skipped", "schedule")}


def test_only_the_leader_decides_late_claims(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *", "skip"))
    leader, follower = cluster.node("one"), cluster.node("two")
    cluster.run(10)
    leader.is_alive = False
    follower.state.settings = leader.state.settings
    cluster.clock.seconds += 200
    assert follower.keeper.state.leading is None
    assert decide_late_claims(follower.keeper) == 0
    assert ("skipped", "schedule") not in states(cluster)


def test_an_expired_lease_is_requeued_by_a_node_that_reached_the_database_for_one_lease(
    cluster: VirtualCluster,
) -> None:
    cluster.apply(cron_job("often", "* * * * *"))
    cluster.node("one")
    cluster.run(70)
    worker = cluster.store.grants.register("w", "here", "0", 1, ["default"], 4)
    assert pull(cluster, worker) == 1
    cluster.run(29)
    assert states(cluster)["running", "schedule"] == 1
    cluster.run(5)
    assert ("running", "schedule") not in states(cluster)
    assert cluster.rows("SELECT sum(losses) FROM claims") == [(1,)]


def test_after_an_outage_no_lease_is_taken_away_for_the_length_of_one(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply(cron_job("often", "* * * * *"))
    node = cluster.node("one")
    cluster.run(70)
    worker = cluster.store.grants.register("w", "here", "0", 1, ["default"], 4)
    assert pull(cluster, worker) == 1
    with monkeypatch.context() as patched:  # nobody reached the database: no worker could renew
        for owner, name in ((node.store.terms, "report"), (node.store.terms, "cluster"), (node.store.grants, "sweep")):
            patched.setattr(owner, name, _away)
        cluster.run(60)
    assert states(cluster)["running", "schedule"] == 1
    cluster.run(25)
    assert states(cluster)["running", "schedule"] == 1
    cluster.run(10)
    assert ("running", "schedule") not in states(cluster)


def test_two_living_nodes_of_one_name_warn_and_one_that_was_started_again_does_not(cluster: VirtualCluster) -> None:
    told = "SELECT detail FROM events WHERE action = 'node.same_name' ORDER BY event_id"
    first = cluster.node("one")
    cluster.run(5)
    first.is_alive = False
    again = cluster.node("one")
    again.keeper.identity = replace(again.keeper.identity, pid=2)
    cluster.run(20)
    assert cluster.rows(told) == []
    second = cluster.node("one")
    second.keeper.identity = replace(second.keeper.identity, pid=3)
    cluster.run(20)
    others = {json.loads(detail)["pid"]: json.loads(detail)["other"] for (detail,) in cluster.rows(told)}
    assert others == {2: "process 3 on here", 3: "process 2 on here"}
    assert len(cluster.rows(told)) == 2


def _away(*_: object) -> None:
    raise DatabaseUnreachable("the database does not answer")


def test_a_silence_of_the_node_itself_is_a_break_too() -> None:
    reach = Reach(longest_break=5.0)
    for second in range(40):
        reach.succeeded(float(second))
    assert reach.unbroken_for() == 39.0
    reach.succeeded(100.0)  # it was frozen
    assert reach.unbroken_for() == 0.0


def test_nodes_report_their_roles_and_how_far_claims_are_written(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * * *"))
    cluster.node("one")
    cluster.node("two")
    cluster.run(10)
    found = {node.name: node for node in cluster.store.reads.nodes()}
    assert (found["one"].role, found["two"].role) == ("leader", "follower")
    assert found["one"].claims_upto is not None
    assert found["one"].claims_upto > cluster.clock.database_now() + timedelta(seconds=59)
    assert found["two"].jobs_warm == 1
