"""The http target against a real server, most of whose answers are wrong."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.targets import HttpTarget
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from tests.support.certificates import Authority
from tests.support.odd_server import GIGABYTE, OddServer, odd_server
from tests.support.runs import Runs
from tests.support.waiting import eventually

SECRET = 'hun"ter2 & co'  # noqa: S105 - a test's
TICK = "2026-03-29T01:00:00Z"


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with Runs(environment={"SEXTON_SECRET_API_KEY": SECRET}) as runs:
        yield runs


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server() as server:
        yield server


def get(url: str, **keys: Any) -> HttpTarget:
    return HttpTarget(url, "GET", **keys)


def assert_failed(ended: EndedRun, says: str, *names: str) -> None:
    assert says in ended.error
    assert "\n" not in ended.error
    assert (ended.ending, ended.exit_code) == (Ending.RAISED, None)
    assert set(names) <= set(ended.exceptions)


def test_a_request_carries_its_run_its_secrets_and_what_its_body_asks_for(runs: Runs, server: OddServer) -> None:
    target = HttpTarget(
        server.url("/echo?key=${secret:api-key}&at=${tick}"),
        "PUT",
        {"Authorization": "Bearer ${secret:api-key}"},
        '{"tick": "${tick}", "attempt": ${attempt}, "key": "${secret:api-key}", "literal": "$${tick}"}',
        expect_body=r'"method": "PUT"',
    )
    ended = runs.run(target, cwd="/nowhere", stdin="from defaults")
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 0, "")
    (request,) = server.requests
    assert request["path"] == f"/echo?key=hun%22ter2%20%26%20co&at={TICK}"
    assert json.loads(request["body"]) == {"tick": TICK, "attempt": 3, "key": SECRET, "literal": "${tick}"}
    told = {name: value for name, value in request["headers"].items() if name.startswith(("Sexton-", "Idem", "Auth"))}
    assert told == {
        "Authorization": f"Bearer {SECRET}",
        "Idempotency-Key": f"nightly@{TICK}",
        "Sexton-Job": "nightly",
        "Sexton-Tick": TICK,
        "Sexton-Attempt": "3",
        "Sexton-Token": str(ended.token),
        "Sexton-Deadline": "2026-03-30T01:00:00Z",
    }
    assert request["headers"]["Content-Type"] == "application/json"
    output = ended.stdout.decode()  # the server's answer is what it was asked
    assert '"method": "PUT", "path": "/echo?key=***&at=2026' in output
    assert "ter2" not in output


def test_connections_are_kept_and_cookies_are_not(runs: Runs, server: OddServer) -> None:
    for _ in range(20):
        assert runs.run(get(server.url("/to/303?/echo"))).exit_code == 0
    assert server.connections < 10  # one to a process would do, were none of them slow
    assert len(server.requests) == 40
    assert [one for one in server.requests if one["path"] != "/echo" and "Cookie" in one["headers"]] == []


@pytest.mark.parametrize(("method", "code"), [("POST", 200), ("POST", 204), ("HEAD", 200)])
def test_no_run_takes_what_was_left_of_another_s_answer_for_its_own(server: OddServer, method: str, code: int) -> None:
    with Runs(slots=1) as runs:  # in one process
        for number in (1, 2, 3):
            ended = runs.run(HttpTarget(server.url(f"/more/{code}"), method))
            assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 0, "")
            assert ended.stdout == (b"stray %d\n" % number if (method, code) == ("POST", 200) else b"")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("path", "keys", "says", "names"),
    [
        ("/status/503", {}, "answered 503 Service Unavailable; expected 200, 202 or 204", ["UnexpectedStatus503"]),
        ("/status/599", {"expect": (200,)}, "answered 599; expected 200", ["UnexpectedStatus5xx", "UnexpectedStatus"]),
        ("/echo", {"expect_body": "no such"}, "and its body does not match 'no such'", ["UnexpectedBody"]),
        ("/never", {"timeout": timedelta(seconds=0.3)}, "was not answered within its timeout", ["TimeoutException"]),
        ("/drip/headers", {"timeout": timedelta(seconds=0.3)}, "within its timeout of 300ms", ["TimeoutError"]),
        ("/drip/body", {"timeout": timedelta(seconds=0.3)}, "within its timeout of 300ms", ["HTTPError"]),
        ("/garbage", {}, "failed: RemoteProtocolError", ["httpx.TransportError"]),
        ("/reset", {}, "failed: Re", ["TransportError"]),
        ("/short", {}, "failed: RemoteProtocolError: peer closed connection", []),
        ("/to/302?/to/302?/to/302", {}, "redirects (302 Found) in a circle", ["RefusedRedirect"]),
        ("/to/307?http://localhost:1/x", {}, "to another host, http://localhost:1/x; write that address", []),
        ("/to/302?ftp://x/y", {"redirects": "all"}, "to ftp://x/y, which is no http or https address", []),
        ("/to/302?/echo", {"redirects": "none"}, "answered 302 Found; expected 200, 202 or 204", []),
        ("/to/302?/echo", {"method": "POST"}, "which would make the POST a GET; write that address as the url", []),
    ],
)  # fmt: skip
def test_what_is_no_answer_fails_the_run_in_a_sentence(
    runs: Runs, server: OddServer, path: str, keys: dict[str, Any], says: str, names: list[str]
) -> None:
    method = keys.pop("method", "GET")
    ended = runs.run(HttpTarget(server.url(path), method, **keys))
    assert_failed(ended, says, *names)
    assert ended.error.startswith(f"{method} {server.url('')}")


def test_a_circle_of_two_is_one(runs: Runs, server: OddServer) -> None:
    ended = runs.run(get(server.url("/to/302?/to/302/2?/to/302")))
    assert_failed(ended, "in a circle, back to")


def test_a_server_that_is_not_there_fails_the_run(runs: Runs) -> None:
    with odd_server() as server:
        url = server.url("/?token=hidden").replace("//", "//me:hidden@")
    ended = runs.run(get(url))
    assert_failed(ended, f"GET http://127.0.0.1:{server.port}/ failed: ConnectError", "ConnectError", "httpx.HTTPError")
    assert "hidden" not in ended.error


def test_a_gigabyte_is_not_read(runs: Runs, server: OddServer) -> None:
    ended = runs.run(get(server.url("/gigabyte"), expect_body="^x+$"))
    assert (ended.exit_code, ended.error) == (0, "")
    assert len(ended.stdout) <= KEPT_BYTES
    assert server.written < GIGABYTE / 4
    assert b"more than 64 KiB; the rest was not read" in ended.stderr


def test_a_compressed_bomb_is_not_unpacked(runs: Runs, server: OddServer) -> None:
    ended = runs.run(get(server.url("/bomb"), expect_body="^\0+$"))
    assert (ended.exit_code, ended.error) == (0, "")
    assert ended.stdout_bytes <= 5 * KEPT_BYTES
    assert ended.stdout.startswith(rb"\x00\x00")


def test_what_is_no_text_is_shown_escaped(runs: Runs, server: OddServer) -> None:
    assert runs.run(get(server.url("/binary"))).stdout == rb"a\x00\xff\x1b[2J" + b"\nb\n"


def test_a_status_that_is_expected_is_the_answer_be_it_a_redirect(runs: Runs, server: OddServer) -> None:
    ended = runs.run(HttpTarget(server.url("/to/302?/echo"), expect=(302,)))
    assert (ended.exit_code, len(server.requests)) == (0, 1)


def test_another_host_gets_no_credentials_even_if_it_is_asked(runs: Runs, server: OddServer) -> None:
    headers = {"Authorization": "Bearer ${secret:api-key}", "X-Api-Key": "k", "Accept": "text/plain"}
    away = server.url("/echo", host="localhost")
    target = HttpTarget(server.url(f"/to/307?{away}").replace("//", "//me:pw@", 1), headers=headers, body="x")
    assert_failed(runs.run(target), "to another host")
    ended = runs.run(HttpTarget(target.url, headers=headers, body="x", redirects="all"))
    assert ended.error == ""
    came = server.requests[-1]
    assert (came["method"], came["path"], came["body"]) == ("POST", "/echo", "x")
    assert {name for name in came["headers"] if name not in ("Host", "Connection", "Content-Length")} == {
        "Accept", "Accept-Encoding", "Content-Type", "User-Agent", "Idempotency-Key",
        "Sexton-Job", "Sexton-Tick", "Sexton-Attempt", "Sexton-Token", "Sexton-Deadline",
    }  # fmt: skip
    with_secret = HttpTarget(target.url, headers=headers, body="${secret:api-key}", redirects="all")
    assert_failed(runs.run(with_secret), "and the body holds a secret")


def test_a_request_can_be_cancelled_and_timed_out(runs: Runs, server: OddServer) -> None:
    token = runs.start(get(server.url("/never")))
    eventually(lambda: server.requests, 60, "the request came")
    runs.execution.stop(token, StopReason.CANCELLED)
    assert runs.end_of(token).ending is Ending.CANCELLED
    assert runs.run(get(server.url("/never")), max_runtime=0.5).ending is Ending.TIMED_OUT


def test_a_worker_that_allows_addresses_sends_to_no_others_redirects_included(server: OddServer) -> None:
    with Runs(allow=("billing", server.url("/to"))) as runs:
        ended = runs.run(get(server.url("/echo")))
        assert ended.ending is Ending.NOT_STARTED
        assert f"/echo is not among the addresses that this worker may use ({server.url('/to')})" in ended.error
        assert_failed(runs.run(get(server.url("/to/302?/echo"))), "/echo is not among the addresses")
        assert runs.run(get(server.url("/to/302?/nowhere"), expect=(302,))).exit_code == 0
    assert [one["path"] for one in server.requests] == ["/to/302?/echo", "/to/302?/nowhere"]


def test_a_server_must_prove_who_it_is_to_the_authorities_of_the_worker_s_machine(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("server", "IP:127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(signed.certificate, signed.key)
    with odd_server(tls) as server:
        target = get(server.url("/echo"))
        with Runs() as runs:
            assert_failed(runs.run(target), "failed: ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED]", "ConnectError")
        with Runs(environment={"SSL_CERT_FILE": str(authority.certificate)}) as runs:
            assert runs.run(target).error == ""
        with Runs(environment={"SSL_CERT_FILE": str(tmp_path / "none")}) as runs:
            assert "failed: " in runs.run(target).error
