"""Elections on a real three-server ensemble whose servers, sessions, paths and data go away (invariant 1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sexton_scheduler.election.candidate import Standing
from tests.support.elections import (
    LONG,
    SHORT_SESSION,
    CandidateProcess,
    Candidates,
    becomes,
    elected_again,
    expire_session,
    is_lined_up,
    onlooker,
    says,
    session_of,
    znodes,
)
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

LONG_SESSION = timedelta(seconds=50)  # outlives whatever a slow machine takes to start servers


def test_a_frozen_leader_finds_its_election_lost_and_queues_behind_its_successor(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str, tmp_path: Path
) -> None:
    with CandidateProcess(ensemble.hosts, path, "frozen", tmp_path) as frozen:
        frozen.says("elected", "confirmed")
        successor = candidate(ensemble.hosts, "successor")
        successor.campaign()
        becomes(successor, Standing.WAITING)
        frozen.process.freeze()
        elected_again(successor)
        before = len(frozen.said())
        frozen.process.thaw()
        frozen.says("lost", "waiting", after=before)
        assert "elected" not in frozen.said()[before:]
        assert successor.confirm()
        successor.resign()
        frozen.says("elected", "confirmed", after=before)


def test_an_expired_session_that_nobody_superseded_is_followed_by_a_confirmed_election(
    ensemble: ZooKeeperEnsemble, candidate: Candidates
) -> None:
    only = candidate(ensemble.hosts)
    elected_again(only)
    before = session_of(only)
    expire_session(ensemble.hosts, only)
    becomes(only, Standing.LOST)
    assert not only.confirm()
    elected_again(only)
    assert session_of(only) != before


def connected_server(ensemble: ZooKeeperEnsemble, status: str) -> ZooKeeperServer:
    return next(server for server in ensemble.servers if status.endswith(f"connected to {server.hosts}"))


def leading_server(ensemble: ZooKeeperEnsemble, _: str) -> ZooKeeperServer:
    return ensemble.leader()


@pytest.mark.parametrize("which", [connected_server, leading_server])
def test_the_election_outlives_one_server(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, which: Callable[[ZooKeeperEnsemble, str], ZooKeeperServer]
) -> None:
    only = candidate(ensemble.hosts, session=LONG_SESSION)
    elected_again(only)
    session = session_of(only)
    killed = which(ensemble, says(only, "connected to 127.0.0.1:"))
    killed.kill()
    ensemble.wait_until_serving(2)
    elected_again(only)
    assert session_of(only) == session
    assert killed.hosts not in says(only, "connected to 127.0.0.1:")


def test_a_lost_quorum_suspends_the_election_and_its_return_brings_it_back(
    ensemble: ZooKeeperEnsemble, candidate: Candidates
) -> None:
    only = candidate(ensemble.hosts, session=LONG_SESSION)
    elected_again(only)
    session = session_of(only)
    left = ensemble.servers[0]
    for server in ensemble.servers[1:]:
        server.kill()
    becomes(only, Standing.SUSPENDED)
    assert not only.confirm()
    eventually(
        lambda: [seen.state for seen in candidate.servers["node-1"]] == ["not serving", "refused", "refused"],
        within=LONG,
        what=f"the servers are seen as they are, {left.hosts} without a quorum: {candidate.servers}",
    )
    ensemble.start()
    elected_again(only)
    assert session_of(only) == session


def test_who_waits_through_a_lost_quorum_wins_once_the_leader_resigns(
    ensemble: ZooKeeperEnsemble, candidate: Candidates
) -> None:
    first, second = candidate(ensemble.hosts, session=LONG_SESSION), candidate(ensemble.hosts, "2", LONG_SESSION)
    elected_again(first)
    second.campaign()
    is_lined_up(second)
    for server in ensemble.servers[1:]:
        server.kill()
    becomes(first, Standing.SUSPENDED)
    becomes(second, Standing.AWAY)
    ensemble.start()
    elected_again(first)
    becomes(second, Standing.WAITING)
    first.resign()
    becomes(second, Standing.ELECTED)


def test_a_wiped_ensemble_elects_whoever_led_again(ensemble: ZooKeeperEnsemble, candidate: Candidates) -> None:
    """Its servers refuse a client that has seen more than they hold, for ever: only a fresh one is let in."""
    only, waiting = candidate(ensemble.hosts), candidate(ensemble.hosts, "node-2")
    elected_again(only)
    waiting.campaign()
    is_lined_up(waiting)
    ensemble.wipe()
    ensemble.start()
    becomes(only, Standing.LOST)
    eventually(lambda: Standing.ELECTED in (waiting.standing(), only.standing()), LONG, "one of the two is elected")
    elected_again(waiting)
    only.campaign()
    waiting.resign()
    elected_again(only)


def test_an_ensemble_restored_from_an_older_state_elects_again_once_its_dead_sessions_have_lapsed(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str
) -> None:
    ghost = candidate(ensemble.hosts, "ghost", SHORT_SESSION)
    elected_again(ghost)
    saved = ensemble.save()
    (dead,) = znodes(ensemble.hosts, path)
    ghost.close()
    ensemble.restart()  # later epochs, so that the state that comes back is older by any count
    ensemble.restart()
    only = candidate(ensemble.hosts)
    elected_again(only)
    ensemble.restore(saved)
    ensemble.start()
    becomes(only, Standing.LOST)
    elected_again(only)
    assert dead not in znodes(ensemble.hosts, path)


def test_a_path_removed_from_under_the_elected_and_the_waiting_is_made_again(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str
) -> None:
    first, second = candidate(ensemble.hosts), candidate(ensemble.hosts, "node-2")
    elected_again(first)
    second.campaign()
    is_lined_up(second)
    with onlooker(ensemble.hosts) as client:
        while client.exists(path):
            client.delete(path, recursive=True)
    becomes(first, Standing.LOST)  # found by its watch, without a question of the node's
    elected_again(second)  # it may have won a moment before its own znode went
    first.campaign()
    second.resign()
    elected_again(first)


def test_two_candidates_alternate_and_are_never_both_confirmed(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str
) -> None:
    one, other = candidate(ensemble.hosts), candidate(ensemble.hosts, "node-2")
    elected_again(one)
    for _ in range(20):
        other.campaign()
        is_lined_up(other)
        assert one.confirm()
        assert not other.confirm()
        one.resign()
        becomes(other, Standing.ELECTED)
        assert other.confirm()
        assert not one.confirm()
        one, other = other, one
    assert len(znodes(ensemble.hosts, path)) == 1


def test_the_session_that_the_servers_give_is_the_one_that_is_shown(
    ensemble: ZooKeeperEnsemble, candidate: Candidates
) -> None:
    asked = candidate(ensemble.hosts, session=SHORT_SESSION)
    elected_again(asked)
    says(asked, ", 2s, connected to 127.0.0.1:")
    bounded = candidate(ensemble.hosts, "node-2", timedelta(seconds=90))  # maxSessionTimeout is 60 s
    bounded.campaign()
    becomes(bounded, Standing.WAITING)
    status = says(bounded, ", 1m, connected to 127.0.0.1:")
    held = connected_server(ensemble, status).ask("cons")
    assert f"sid={session_of(bounded):#x}" in held
    assert "to=60000" in held
