"""Who resigns while ZooKeeper is away leaves no place in line that would live on with its session."""

from __future__ import annotations

import pytest

from sexton_scheduler.election.candidate import Standing
from tests.support.elections import SHORT_SESSION, Candidates, becomes, is_lined_up
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
    if who == "waiting":
        second.resign()
        own_zookeeper_server.start()
        becomes(third, Standing.ELECTED)
        assert third.confirm()
    else:
        own_zookeeper_server.start()
        becomes(second, Standing.ELECTED)
        assert second.confirm()
