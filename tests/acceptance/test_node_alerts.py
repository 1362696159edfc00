"""Who looks for what is wrong, on virtual time over a real ledger: any node, and so also where nobody leads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sexton.alert_settings import AlertSettings
from sexton_scheduler.alerting import watch
from tests.support.virtual_nodes import TWO, VirtualCluster, VirtualNode, cron_job

NEVER = float("inf")


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def open_kinds(cluster: VirtualCluster, node: VirtualNode, seconds: float) -> list[str]:
    """The open alerts after so long, in which this node looked."""
    for _ in range(round(seconds / 5)):
        cluster.run(5.0, step=1.0)
        watch(node.keeper, AlertSettings())
    return [one.kind for one in cluster.store.alerts.listed(only_open=True)]


def test_a_follower_tells_that_nobody_leads_until_somebody_does(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *", "skip"))
    leader, follower = cluster.node("one"), cluster.node("two")
    assert open_kinds(cluster, follower, 60) == []
    leader.is_alive = False
    follower.loop_due = NEVER  # it hangs
    assert open_kinds(cluster, follower, 30) == []
    assert open_kinds(cluster, follower, 10) == ["no_leader"]
    follower.loop_due = 0.0
    assert "no_leader" not in open_kinds(cluster, follower, 30)


def test_a_leader_that_beats_and_decides_nothing_is_told(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *", "skip"))
    leader = cluster.node("one")
    assert open_kinds(cluster, leader, 60) == []
    leader.loop_due = NEVER
    assert "undecided" in open_kinds(cluster, leader, 240)
    assert "no_leader" not in open_kinds(cluster, leader, 5)


def test_nobody_looks_by_a_clock_in_doubt(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("often", "* * * * *", "skip"))
    leader = cluster.node("one")
    assert open_kinds(cluster, leader, 60) == []
    cluster.clock.database_ahead = timedelta(hours=1)
    cluster.run(5.0, step=1.0)
    assert leader.state.view.clock_jump is not None
    assert open_kinds(cluster, leader, 10) == []
