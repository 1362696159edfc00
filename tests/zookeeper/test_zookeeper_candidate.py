"""Elections on a real ZooKeeper server: won, waited for, suspended, lost, and found void (docs/architecture.md, 1)."""

from __future__ import annotations

import json

import pytest

from sexton.errors import InvalidSetting
from sexton_scheduler.election.candidate import Standing
from sexton_scheduler.election.ensemble import Ensemble
from tests.support.elections import Candidates, becomes, expire_session, is_lined_up, onlooker, znodes
from tests.support.zookeeper import ZooKeeperServer


def test_the_first_is_elected_and_the_second_waits_until_it_resigns(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    first, second = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    first.campaign()
    becomes(first, Standing.ELECTED)
    assert first.confirm()
    second.campaign()
    becomes(second, Standing.WAITING)
    assert not second.confirm()
    first.resign()
    assert first.standing() is Standing.OUT
    becomes(second, Standing.ELECTED)
    assert second.confirm()


def test_who_campaigns_again_after_resigning_queues_behind_the_others(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    first, second = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    first.campaign()
    becomes(first, Standing.ELECTED)
    second.campaign()
    becomes(second, Standing.WAITING)
    is_lined_up(second)  # waiting begins before its znode is there
    first.resign()
    first.campaign()
    becomes(second, Standing.ELECTED)
    second.resign()
    becomes(first, Standing.ELECTED)
    assert first.confirm()


def test_an_expired_session_loses_the_election_and_a_fresh_campaign_wins_again(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    """kazoo has a new session at once and its old Lock still says it is acquired."""
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    becomes(only, Standing.ELECTED)
    expire_session(zookeeper_server.hosts, only)
    becomes(only, Standing.LOST)
    assert not only.confirm()
    only.campaign()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_session_that_expires_while_waiting_does_not_end_the_campaign(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    first, second = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    first.campaign()
    becomes(first, Standing.ELECTED)
    second.campaign()
    becomes(second, Standing.WAITING)
    is_lined_up(second)
    expire_session(zookeeper_server.hosts, second)
    first.resign()
    becomes(second, Standing.ELECTED)
    assert second.confirm()


def test_an_election_whose_znode_was_deleted_is_found_void(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str
) -> None:
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    becomes(only, Standing.ELECTED)
    with onlooker(zookeeper_server.hosts) as client:
        for name in znodes(zookeeper_server.hosts, path):
            client.delete(f"{path}/election/{name}")
    assert not only.confirm()
    assert only.standing() is Standing.LOST


def test_a_server_that_is_away_suspends_the_election_and_a_living_session_keeps_it(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    only = candidate(own_zookeeper_server.hosts)
    only.campaign()
    becomes(only, Standing.ELECTED)
    own_zookeeper_server.kill()
    becomes(only, Standing.SUSPENDED)
    assert not only.confirm()
    own_zookeeper_server.start()
    if becomes(only, Standing.ELECTED, Standing.LOST) is Standing.LOST:  # a slow restart outlived the session
        only.campaign()
        becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_frozen_server_answers_no_question_and_blocks_nobody(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    only = candidate(own_zookeeper_server.hosts)
    only.campaign()
    becomes(only, Standing.ELECTED)
    own_zookeeper_server.freeze()
    try:
        assert not only.confirm()
        only.resign()
        assert only.standing() is Standing.OUT
        only.campaign()
        becomes(only, Standing.AWAY)
    finally:
        own_zookeeper_server.thaw()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_campaign_begun_while_the_server_is_away_is_won_when_it_comes_back_with_empty_data(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    own_zookeeper_server.wipe()
    only = candidate(own_zookeeper_server.hosts)
    only.campaign()
    becomes(only, Standing.AWAY)
    own_zookeeper_server.start()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_the_znode_says_which_node_it_is(zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str) -> None:
    only = candidate(zookeeper_server.hosts, "node-7")
    only.campaign()
    becomes(only, Standing.ELECTED)
    (data,) = znodes(zookeeper_server.hosts, path).values()
    assert json.loads(data)["name"] == "node-7"


@pytest.mark.parametrize(
    "coordinator", ["zookeeper://", "zookeeper:///sexton", "zookeeper://a:1,,b:2", "zookeeper://a:port", "etcd://a:1"]
)
def test_an_address_without_servers_is_refused(coordinator: str) -> None:
    with pytest.raises(InvalidSetting, match="names no ZooKeeper servers"):
        Ensemble.parse(coordinator)


def test_the_path_of_an_address_is_optional() -> None:
    assert Ensemble.parse("zookeeper://a:1,b:2") == Ensemble("a:1,b:2", "/sexton")
    assert Ensemble.parse("zookeeper://a:1/cron/prod/") == Ensemble("a:1", "/cron/prod")
