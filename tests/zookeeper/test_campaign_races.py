"""Wins that arrive late, sessions that end at the wrong moment, closing against a wall: every race in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import AsyncResult

from sexton_scheduler.election.candidate import Standing
from sexton_scheduler.election.connection import LONGEST_PAUSE, Connection, Contender
from sexton_scheduler.election.zookeeper import ZooKeeperCandidate
from tests.support.elections import (
    LONG,
    SESSION,
    Candidates,
    becomes,
    client_of,
    elected_again,
    expire_session,
    is_lined_up,
    says,
    session_of,
    znodes,
)
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer


class HeldWin:
    """Holds the first win between ZooKeeper's yes and the candidate's hearing of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._won, self._go_on = threading.Event(), threading.Event()
        self._is_first = True
        original: Callable[..., bool] = Contender.acquire

        def acquire(contender: Contender) -> bool:
            won = original(contender)
            if won and self._is_first:
                self._is_first = False
                self._won.set()
                assert self._go_on.wait(LONG)
            return won

        monkeypatch.setattr(Contender, "acquire", acquire)

    def wait(self) -> None:
        assert self._won.wait(LONG)

    def release(self) -> None:
        self._go_on.set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldWin:
    return HeldWin(monkeypatch)


def line_is_empty(server: ZooKeeperServer, path: str) -> None:
    eventually(lambda: znodes(server.hosts, path) == {}, LONG, "nobody is in the line")


def test_a_win_that_arrives_after_the_resignation_is_taken_back(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str, held: HeldWin
) -> None:
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    held.wait()
    only.resign()
    held.release()
    line_is_empty(zookeeper_server, path)
    assert only.standing() is Standing.OUT
    assert not only.confirm()


def test_a_win_of_an_earlier_campaign_does_not_count_for_the_next(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, held: HeldWin
) -> None:
    only, other = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    only.campaign()
    held.wait()
    other.campaign()
    is_lined_up(other)
    only.resign()
    only.campaign()
    held.release()
    becomes(other, Standing.ELECTED)
    assert other.confirm()
    assert only.standing() is Standing.WAITING
    other.resign()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_win_in_a_session_that_expired_meanwhile_is_no_election(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, held: HeldWin
) -> None:
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    held.wait()
    dead = session_of(only)
    expire_session(zookeeper_server.hosts, only)
    eventually(lambda: session_of(only) not in (None, dead), LONG, "it has another session")
    assert only.standing() in (Standing.AWAY, Standing.WAITING)
    held.release()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_a_win_that_arrives_while_the_server_is_away_is_suspended_until_it_is_back(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates, held: HeldWin
) -> None:
    only = candidate(own_zookeeper_server.hosts, session=timedelta(seconds=50))
    only.campaign()
    held.wait()
    own_zookeeper_server.kill()
    becomes(only, Standing.AWAY)
    held.release()
    becomes(only, Standing.SUSPENDED)
    assert not only.confirm()
    own_zookeeper_server.start()
    becomes(only, Standing.ELECTED)
    assert only.confirm()


def test_closing_while_a_win_is_on_its_way_leaves_nobody_in_the_line(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str, held: HeldWin
) -> None:
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    held.wait()
    only.close()
    held.release()
    line_is_empty(zookeeper_server, path)


def test_a_session_lost_while_the_questions_of_confirm_are_on_their_way_confirms_nothing(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = candidate(zookeeper_server.hosts)
    elected_again(only)
    original: Callable[..., AsyncResult] = KazooClient.exists_async
    client = client_of(only)

    def exists_async(*arguments: Any, **named: Any) -> AsyncResult:
        answer = original(client, *arguments, **named)
        answer.wait(LONG)
        expire_session(zookeeper_server.hosts, only)
        becomes(only, Standing.LOST)
        return answer

    monkeypatch.setattr(client, "exists_async", exists_async)
    assert not only.confirm()
    monkeypatch.undo()
    elected_again(only)


def test_a_session_of_another_length_is_for_who_waits_at_once_and_for_who_leads_at_the_next_campaign(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    leader, follower = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    elected_again(leader)
    follower.campaign()
    is_lined_up(follower)
    before = session_of(leader)
    for each in (leader, follower):
        each.adopt(timedelta(seconds=5))
    says(follower, ", 5s, connected to")
    is_lined_up(follower)
    assert leader.confirm()
    assert session_of(leader) == before
    leader.resign()
    becomes(follower, Standing.ELECTED)
    assert follower.confirm()
    leader.campaign()
    says(leader, ", 5s, connected to")
    follower.resign()
    elected_again(leader)


def test_lengths_adopted_in_a_row_end_in_the_last_one(zookeeper_server: ZooKeeperServer, candidate: Candidates) -> None:
    only = candidate(zookeeper_server.hosts)
    only.campaign()
    for seconds in (3, 4, 5, 6):
        only.adopt(timedelta(seconds=seconds))
    elected_again(only)
    only.resign()
    elected_again(only)
    says(only, ", 6s, connected to")


def test_closing_returns_though_the_server_hangs(own_zookeeper_server: ZooKeeperServer, candidate: Candidates) -> None:
    elected, waiting = candidate(own_zookeeper_server.hosts), candidate(own_zookeeper_server.hosts, "node-2")
    elected_again(elected)
    waiting.campaign()
    is_lined_up(waiting)
    own_zookeeper_server.freeze()
    try:
        closing = [threading.Thread(target=each.close, daemon=True) for each in (elected, waiting)]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(LONG)
            assert not thread.is_alive()
    finally:
        own_zookeeper_server.thaw()


def test_a_request_that_kazoo_forgets_is_not_waited_for_without_end(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kazoo throws its queue away when a session ends; what was put there in that moment is never answered."""
    monkeypatch.setattr("sexton_scheduler.election.connection.ANSWER_WITHIN", 0.5)
    forgotten = threading.Event()
    original = KazooClient._call

    def call(client: KazooClient, request: Any, result: Any) -> Any:
        if type(request).__name__ == "Create" and "__lock__" in request.path and not forgotten.is_set():
            forgotten.set()
            return None
        return original(client, request, result)

    monkeypatch.setattr(KazooClient, "_call", call)
    elected_again(candidate(zookeeper_server.hosts))
    assert forgotten.is_set()


def test_the_lock_pauses_briefly_however_many_connections_were_dropped(
    zookeeper_server: ZooKeeperServer, candidate: Candidates
) -> None:
    only, other = candidate(zookeeper_server.hosts), candidate(zookeeper_server.hosts, "node-2")
    elected_again(other)
    only.campaign()
    is_lined_up(only)
    contender = only._contender
    assert contender is not None
    assert contender._retry.copy().max_delay == LONGEST_PAUSE
    assert contender._retry.copy().interrupt is not None


# --- what may happen in kazoo's threads ---------------------------------------------------------------


class Callbacks:
    """Every call to ZooKeeper, and every wait for an answer, made from a listener or a watch, or under the lock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard = 0
        self.found: list[str] = []
        self._here = threading.local()
        self._candidates: list[ZooKeeperCandidate] = []
        self._wrap_listener(monkeypatch)
        for owner, name in ((KazooClient, "_call"), (AsyncResult, "get"), (AsyncResult, "wait"), (KazooClient, "stop")):
            self._wrap_call(monkeypatch, owner, name)

    def watch(self, candidate: ZooKeeperCandidate) -> ZooKeeperCandidate:
        self._candidates.append(candidate)
        return candidate

    def _wrap_listener(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Connection._listen

        def listen(connection: Connection, state: str) -> None:
            self.heard += 1
            self._here.is_callback = True
            try:
                original(connection, state)
            finally:
                self._here.is_callback = False

        monkeypatch.setattr(Connection, "_listen", listen)

    def _wrap_call(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(target: Any, *arguments: Any, **named: Any) -> Any:
            if getattr(self._here, "is_callback", False):
                self.found.append(f"{owner.__name__}.{name} in a callback")
            if any(each._changed._is_owned() for each in self._candidates):  # type: ignore[attr-defined]  # RLock's
                self.found.append(f"{owner.__name__}.{name} under the lock that callbacks wait for")
            return original(target, *arguments, **named)

        monkeypatch.setattr(owner, name, call)


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> Callbacks:
    return Callbacks(monkeypatch)


def test_no_callback_of_kazoo_calls_zookeeper_and_nobody_does_under_the_lock(
    own_zookeeper_server: ZooKeeperServer, candidate: Candidates, callbacks: Callbacks
) -> None:
    hosts = own_zookeeper_server.hosts
    first, second = (callbacks.watch(candidate(hosts, name)) for name in ("1", "2"))
    elected_again(first)
    second.campaign()
    is_lined_up(second)
    expire_session(hosts, first)
    becomes(second, Standing.ELECTED)
    assert second.confirm()
    own_zookeeper_server.restart()
    second.adopt(SESSION * 2)
    elected_again(second)
    own_zookeeper_server.wipe()
    own_zookeeper_server.start()
    elected_again(second)
    second.resign()
    elected_again(first)
    first.close()
    assert callbacks.heard >= 8
    assert callbacks.found == []
