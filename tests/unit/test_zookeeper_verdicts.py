"""When a client of ZooKeeper is past hope, who is first in line, and what an error is called."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import timedelta

import pytest
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from sexton.terms import CoordinatorServer
from sexton_scheduler.election.line import first_in_line
from sexton_scheduler.election.probe import ServerAnswer
from sexton_scheduler.election.troubles import of_answer, of_connecting, of_names
from sexton_scheduler.election.verdicts import hopeless


@dataclass(frozen=True, slots=True)
class Client:
    has_ended: bool = False
    lost_at: float | None = 100.0
    last_seen: int = 0x500000007
    session_wanted: timedelta = timedelta(seconds=6)


def answers(*states: str, zxid: int | None = 0x500000007) -> list[ServerAnswer]:
    return [ServerAnswer(CoordinatorServer(f"zk{n}:2181", state), zxid) for n, state in enumerate(states)]


def test_a_client_that_has_ended_is_past_hope_whatever_the_servers_say() -> None:
    assert hopeless(Client(has_ended=True), [], 0.0) == "the client has ended"


def test_a_connected_client_never_is() -> None:
    assert hopeless(Client(lost_at=None), answers("leader", zxid=1), 1e9) is None


def test_without_a_server_that_serves_waiting_is_all_there_is() -> None:
    assert hopeless(Client(), answers("not serving", "refused", "silent", zxid=None), 1e9) is None
    assert hopeless(Client(), [], 1e9) is None


def test_servers_that_all_hold_less_than_the_client_has_seen_refuse_it_for_ever() -> None:
    assert "older state" in str(hopeless(Client(), answers("leader", "follower", zxid=0x500000006), 100.0))
    lagging = [*answers("follower", zxid=1), *answers("leader")]
    assert hopeless(Client(), lagging, 100.0) is None  # the follower catches up


def test_not_served_by_servers_that_serve_is_borne_for_two_sessions() -> None:
    assert hopeless(Client(), answers("leader"), 112.0) is None
    assert "not served for 12 s" in str(hopeless(Client(), answers("leader"), 112.1))
    assert "not served for 12 s" in str(hopeless(Client(), answers("answers", zxid=None), 112.1))
    short = Client(session_wanted=timedelta(seconds=1))
    assert hopeless(short, answers("leader"), 110.0) is None


def test_the_first_in_line_is_the_lowest_number_of_the_recipe() -> None:
    line = ["bb__lock__0000000012", "aa__lock__0000000013", "!note", "cc__lock__1", "zz__lock__0000000009"]
    assert first_in_line(line) == "zz__lock__0000000009"
    assert first_in_line(["!note"]) is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "refused", "refuses connections"),
        (TimeoutError("timed out"), "silent", "does not answer in time"),
        (KazooTimeoutError(), "silent", "does not answer in time"),
        (OSError(113, "No route to host"), "unreachable", "cannot be reached (No route to host)"),
        (ConnectionDropped("socket connection broken"), "dropped", "speaks TLS only"),
        (ConnectionResetError(104, "Connection reset by peer"), "dropped", "hangs up"),
        (AuthFailedError(), "login", "refuses the login in coordinator_login"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "TLS", "TLS with zk1:2181 failed"),
    ],
)
def test_why_a_server_cannot_be_reached_is_a_sentence_that_names_it(error: Exception, kind: str, words: str) -> None:
    trouble = of_connecting("zk1:2181", error, is_tls=False)
    assert trouble.kind == kind
    assert words in trouble.sentence
    assert "zk1:2181" in trouble.sentence


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (62, "Hostname mismatch, certificate is not valid for 'zk1'.", "is for another name"),
        (10, "certificate has expired", "is not valid now (certificate has expired)"),
        (19, "self-signed certificate in certificate chain", "is not signed by the authority in coordinator_ca"),
    ],
)
def test_why_a_certificate_is_not_believed(code: int, message: str, words: str) -> None:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    trouble = of_connecting("zk1:2281", error, is_tls=True)
    assert words in trouble.sentence
    assert trouble.needs_operator


def test_a_refused_permission_is_told_from_a_lost_connection() -> None:
    refused = of_answer("/sexton/election", NoAuthError(), has_login=False)
    assert refused is not None
    assert "set coordinator_login" in refused.sentence
    for error, words in ((NoAuthError(), "is wrong"), (InvalidACLError(), "no digest logins")):
        trouble = of_answer("/sexton/election", error, has_login=True)
        assert trouble is not None
        assert words in trouble.sentence
    passing: list[KazooException | KazooTimeoutError] = [
        ConnectionLoss(),
        SessionExpiredError(),
        NoNodeError(),
        KazooTimeoutError(),
    ]
    assert [of_answer("/sexton/election", error, has_login=True) for error in passing] == [None] * 4
    fault = of_answer("/sexton/election", RuntimeError("planted"), has_login=True)
    assert fault is not None
    assert "planted" in fault.sentence


def test_names_that_do_not_resolve_are_named() -> None:
    assert of_names("zk1:2181,zk2:2181").sentence == "no name of zk1:2181,zk2:2181 resolves to an address"
