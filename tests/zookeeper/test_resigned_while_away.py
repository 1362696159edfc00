"""Who resigns while ZooKeeper is away leaves no place in line that would live on with its session."""

from __future__ import annotations

import pytest

from sexton_scheduler.election.candidate import Standing
from tests.support.elections import LONG, SHORT_SESSION, Candidates, becomes, is_lined_up
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer


@pytest.mark.parametrize("who", ["elected", "waiting"])
def test_a_place_given_up_during_an_outage_keeps_nobody_waiting_after_it(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates, who: str
) -> None:
    """The one who resigned stands aside (another was forced): it cleans up by no further campaign."""
    first, second = (
        candidate(own_zookeeper_server.hosts, session=SHORT_SESSION),
        candidate(own_zookeeper_server.hosts, "node-2", SHORT_SESSION),
    )
    third = candidate(own_zookeeper_server.hosts, "node-3", SHORT_SESSION)
    first.campaign()
    becomes(first, Standing.ELECTED)
    for one in (second, third):
        one.campaign()
        becomes(one, Standing.WAITING)
        is_lined_up(one)
    own_zookeeper_server.kill()
    becomes(first, Standing.SUSPENDED, Standing.LOST)
    becomes(second, Standing.AWAY)
    first.resign()
    remaining = [third]
    if who == "waiting":
        second.resign()
    else:
        remaining.append(second)  # where its session ends before the server is back, the third is before it
    own_zookeeper_server.start()
    eventually(
        lambda: any(one.standing() is Standing.ELECTED and one.confirm() for one in remaining),
        within=LONG,
        what=lambda: f"one of those who remained is elected: {[one.describe() for one in remaining]}",
    )
