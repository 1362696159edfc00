"""Elections on a real ZooKeeper server: won, waited for, suspended, lost, and found void (docs/architecture.md, 1)."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from kazoo.client import KazooClient

from sexton.errors import InvalidSetting
from sexton_scheduler.election.candidate import NodeIdentity, Standing
from sexton_scheduler.election.zookeeper import Ensemble, ZooKeeperCandidate
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

SESSION = timedelta(seconds=2)
LONG = 30.0  # a limit, not an expectation
Make = Callable[..., ZooKeeperCandidate]


@pytest.fixture
def path() -> str:
    return f"/tests/{uuid.uuid4().hex}"


@pytest.fixture
def candidate(path: str) -> Iterator[Make]:
    """Makes candidates of one election and closes them."""
    made: list[ZooKeeperCandidate] = []

    def make(server: ZooKeeperServer, name: str = "node-1") -> ZooKeeperCandidate:
        identity = NodeIdentity(name=name, address="host:1", version="1", pid=1)
        new = ZooKeeperCandidate(Ensemble(server.hosts, path), identity, SESSION, threading.Event())
        made.append(new)
        return new

    yield make
    for each in made:
        each.close()


def becomes(candidate: ZooKeeperCandidate, *wanted: Standing) -> Standing:
    seen = eventually(
        lambda: [standing for standing in [candidate.standing()] if standing in wanted],
        within=LONG,
        what=f"the candidate stands {' or '.join(wanted)}",
    )
    return seen[0]


def expire_session(server: ZooKeeperServer, candidate: ZooKeeperCandidate) -> None:
    """End a live session from outside: a second client takes it over and closes it."""
    thief = KazooClient(hosts=server.hosts, client_id=candidate._connection.client.client_id, timeout=SESSION.total_seconds())
    thief.start(timeout=LONG)
    thief.stop()
    thief.close()


def znodes(server: ZooKeeperServer, path: str) -> dict[str, str]:
    """Name and data of every znode in the line."""
    client = KazooClient(hosts=server.hosts)
    client.start(timeout=LONG)
    try:
        names = client.get_children(f"{path}/election")
        return {name: client.get(f"{path}/election/{name}")[0].decode() for name in names}
    finally:
        client.stop()
        client.close()


def test_the_first_is_elected_and_the_second_waits_until_it_resigns(
    zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    first, second = candidate(zookeeper_server), candidate(zookeeper_server, "node-2")
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
    zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    first, second = candidate(zookeeper_server), candidate(zookeeper_server, "node-2")
    first.campaign()
    becomes(first, Standing.ELECTED)
    second.campaign()
    becomes(second, Standing.WAITING)
    first.resign()
    first.campaign()
    becomes(second, Standing.ELECTED)
    second.resign()
    becomes(first, Standing.ELECTED)
    assert first.confirm()


def test_an_expired_session_loses_the_election_and_a_fresh_campaign_wins_again(
    zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    """kazoo has a new session at once and its old Lock still says it is acquired."""
    only = candidate(zookeeper_server)
    only.campaign()
    becomes(only, Standing.ELECTED)
    expire_session(zookeeper_server, only)
    becomes(only, Standing.LOST)
    assert not only.confirm()
    only.campaign()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_session_that_expires_while_waiting_does_not_end_the_campaign(
    zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    first, second = candidate(zookeeper_server), candidate(zookeeper_server, "node-2")
    first.campaign()
    becomes(first, Standing.ELECTED)
    second.campaign()
    becomes(second, Standing.WAITING)
    eventually(lambda: second._contender is not None and second._contender.node, LONG, "the second is in the line")
    expire_session(zookeeper_server, second)
    first.resign()
    becomes(second, Standing.ELECTED)
    assert second.confirm()


def test_an_election_whose_znode_was_deleted_is_found_void(
    zookeeper_server: ZooKeeperServer, candidate: Make, path: str
) -> None:
    only = candidate(zookeeper_server)
    only.campaign()
    becomes(only, Standing.ELECTED)
    client = KazooClient(hosts=zookeeper_server.hosts)
    client.start(timeout=LONG)
    for name in znodes(zookeeper_server, path):
        client.delete(f"{path}/election/{name}")
    client.stop()
    client.close()
    assert not only.confirm()
    assert only.standing() is Standing.LOST


def test_a_server_that_is_away_suspends_the_election_and_a_living_session_keeps_it(
    own_zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    only = candidate(own_zookeeper_server)
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
    own_zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    only = candidate(own_zookeeper_server)
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
    own_zookeeper_server: ZooKeeperServer, candidate: Make
) -> None:
    own_zookeeper_server.wipe()
    only = candidate(own_zookeeper_server)
    only.campaign()
    becomes(only, Standing.AWAY)
    own_zookeeper_server.start()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_the_znode_says_which_node_it_is(zookeeper_server: ZooKeeperServer, candidate: Make, path: str) -> None:
    only = candidate(zookeeper_server, "node-7")
    only.campaign()
    becomes(only, Standing.ELECTED)
    (data,) = znodes(zookeeper_server, path).values()
    assert json.loads(data)["name"] == "node-7"


def test_many_campaigns_leave_no_znode_and_no_thread(
    zookeeper_server: ZooKeeperServer, candidate: Make, path: str
) -> None:
    only = candidate(zookeeper_server)
    threads = None
    for _ in range(50):
        only.campaign()
        becomes(only, Standing.ELECTED)
        threads = threads or threading.active_count()
        assert threading.active_count() <= threads
        only.resign()
    only.close()
    assert znodes(zookeeper_server, path) == {}


@pytest.mark.parametrize("coordinator", ["zookeeper://", "zookeeper:///sexton", "zookeeper://a:1,,b:2", "etcd://a:1"])
def test_an_address_without_servers_is_refused(coordinator: str) -> None:
    with pytest.raises(InvalidSetting, match="names no ZooKeeper servers"):
        Ensemble.parse(coordinator)


def test_the_path_of_an_address_is_optional() -> None:
    assert Ensemble.parse("zookeeper://a:1,b:2") == Ensemble("a:1,b:2", "/sexton")
    assert Ensemble.parse("zookeeper://a:1/cron/prod/") == Ensemble("a:1", "/cron/prod")
