"""Servers that refuse, names that do not resolve, servers that hang: the way back stays short and is told."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.protocol.connection import ConnectionHandler
from structlog.testing import capture_logs

from sexton_scheduler.election.candidate import Standing
from sexton_scheduler.election.connection import LONGEST_PAUSE
from sexton_scheduler.election.probe import ask_servers, read_answer
from tests.support.elections import LONG, Candidates, becomes, client_of, elected_again, says
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pause that kazoo makes after each round of attempts, as it grows."""
    seen: list[float] = []
    original: Callable[..., Any] = ConnectionHandler._connect_loop

    def connect_loop(self: ConnectionHandler, retry: Any) -> Any:
        seen.append(retry._cur_delay)
        return original(self, retry)

    monkeypatch.setattr(ConnectionHandler, "_connect_loop", connect_loop)
    return seen


def test_while_connections_are_refused_the_pauses_stay_short_and_one_line_says_why(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates, pauses: list[float]
) -> None:
    own_zookeeper_server.kill()
    with capture_logs() as logs:
        only = candidate(own_zookeeper_server.hosts)
        only.campaign()
        says(only, f"{own_zookeeper_server.hosts} refuses connections")
        eventually(lambda: len(pauses) >= 10, LONG, "ten rounds of attempts")
        assert max(pauses) <= LONGEST_PAUSE  # doubling would be at a minute by now
        assert only.standing() is Standing.AWAY
        own_zookeeper_server.start()
        becomes(only, Standing.ELECTED)
        assert only.confirm()
        eventually(lambda: [e for e in logs if e["event"] == "zookeeper.reached"], LONG, "its return is said")
    said = [entry["reason"] for entry in logs if entry["event"] == "zookeeper.trouble"]
    assert len([reason for reason in said if "refuses connections" in reason]) == 1
    assert "refuses" not in only.describe()


def test_a_name_that_does_not_resolve_is_tried_again_until_it_does(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolves = False
    original = socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: Any, **named: Any) -> Any:
        if host == "zk.test" and not resolves:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return original("127.0.0.1" if host == "zk.test" else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    only = candidate(f"zk.test:{zookeeper_server.port}")
    only.campaign()
    says(only, f"no name of zk.test:{zookeeper_server.port} resolves to an address")
    eventually(lambda: len(pauses) >= 6, LONG, "six rounds of attempts")
    assert max(pauses) <= LONGEST_PAUSE
    resolves = True
    elected_again(only)
    says(only, f"connected to zk.test:{zookeeper_server.port}")


@pytest.mark.parametrize("wrong", ["no-such-host.invalid:2181", "x" * 70 + ".test:2181", "a..b:2181"])
def test_one_name_that_means_nothing_does_not_hide_the_others(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, wrong: str
) -> None:
    only = candidate(f"{wrong},{zookeeper_server.hosts}")
    elected_again(only)
    eventually(
        lambda: [seen.state for seen in candidate.servers.get("node-1", ())] == ["refused", "standalone"],
        within=LONG,
        what="both are asked",
    )


def test_a_client_that_ends_by_a_fault_of_its_own_is_replaced(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        only = candidate(zookeeper_server.hosts)
        elected_again(only)
        before = client_of(only)

        def fails(*_: object) -> None:
            raise RuntimeError("planted")

        monkeypatch.setattr(before._connection, "_read_socket", fails)  # at the next ping at the latest
        becomes(only, Standing.LOST)
        elected_again(only)
        assert client_of(only) is not before
        only.close()
    assert "the client has ended" in [entry.get("reason") for entry in logs]


def test_servers_are_seen_as_they_are(ensemble: ZooKeeperEnsemble, own_zookeeper_server: ZooKeeperServer) -> None:
    leader, (frozen, killed) = ensemble.leader(), ensemble.followers()
    targets = [("127.0.0.1", server.port) for server in (leader, frozen, killed, own_zookeeper_server)]

    def states() -> list[str]:
        return [answer.server.state for answer in ask_servers(targets, None)]

    eventually(lambda: states() == ["leader", "follower", "follower", "standalone"], LONG, "all four answer")
    killed.kill()
    frozen.freeze()
    try:
        eventually(lambda: states() == ["not serving", "silent", "refused", "standalone"], LONG, "each tells its own")
    finally:
        frozen.thaw()


def test_what_servers_answer_is_read() -> None:
    leads = read_answer("zk1:2181", "Zookeeper version: 3.8.0\nZxid: 0x1f00000002\nMode: leader\nNode count: 5\n")
    assert (leads.server.state, leads.zxid) == ("leader", 0x1F00000002)
    lost = read_answer("zk1:2181", "This ZooKeeper instance is not currently serving requests\n")
    assert (lost.server.state, lost.server.serves) == ("not serving", False)
    assert read_answer("zk1:2181", "").server.state == "silent"
    untold = read_answer("zk1:2181", "srvr is not executed because it is not in the whitelist.\n").server
    assert (untold.state, untold.serves) == ("answers", True)
