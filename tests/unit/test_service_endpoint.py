"""The endpoint of metrics and health: what it answers, and that nobody who asks can hold it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from sexton import service_endpoint
from sexton.errors import InvalidSetting
from sexton.http_addresses import HttpAddress
from sexton.service_endpoint import MOST_OPEN, OPENMETRICS, Answer, Endpoint, listen, ready, serving

HERE = HttpAddress("127.0.0.1", 0)


def asked(endpoint: Endpoint, path: str, method: str = "GET", accept: str = "*/*") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.address.port, timeout=60)
    try:
        connection.request(method, path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(HERE) as serves:
        yield serves


def test_until_the_process_knows_its_cluster_it_is_alive_and_not_ready(endpoint: Endpoint) -> None:
    assert asked(endpoint, "/healthz") == (200, "alive\n")
    assert asked(endpoint, "/readyz?verbose") == (
        503,
        "not ready: the database has not answered since this process began\n",
    )
    assert asked(endpoint, "/metrics")[0] == 503
    endpoint.paths = {"/readyz": lambda _: ready([])}
    assert asked(endpoint, "/readyz") == (200, "ready\n")
    assert asked(endpoint, "/metrics") == (404, "there is /readyz\n")


def test_only_reading_is_allowed_and_a_head_has_no_body(endpoint: Endpoint) -> None:
    assert asked(endpoint, "/healthz", "POST") == (405, "only GET and HEAD\n")
    assert asked(endpoint, "/healthz", "HEAD") == (200, "")


def test_a_fault_in_one_answer_is_logged_and_ends_nothing(endpoint: Endpoint) -> None:
    def fail(_: str) -> Answer:
        raise RuntimeError("broken")

    endpoint.paths = {"/metrics": fail, "/healthz": lambda _: Answer(200, b"alive\n")}
    with capture_logs() as logs:
        assert asked(endpoint, "/metrics")[0] == 500
    assert [entry["event"] for entry in logs] == ["http.answer_failed"]
    assert asked(endpoint, "/healthz") == (200, "alive\n")


def test_a_text_is_made_once_a_second_at_most_however_many_ask(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def text(accept: str) -> Answer:
        made.append(accept)
        return Answer(200, b"1\n")

    endpoint.paths = {"/metrics": text}
    monkeypatch.setattr(endpoint, "_clock", _Still())
    for number in range(5):
        assert asked(endpoint, "/metrics", accept=f"text/plain;q=0.{number}") == (200, "1\n")
    asked(endpoint, "/metrics", accept=f"{OPENMETRICS};version=1.0.0,text/plain;q=0.1")
    assert made == ["", OPENMETRICS]


class _Still:
    """A clock that stands."""

    def elapsed(self) -> float:
        return 1000.0


def test_callers_that_hang_hold_nobody_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than may be open at once: the oldest are dropped."""
    monkeypatch.setattr(service_endpoint, "ANSWER_WITHIN", 600.0)
    with ExitStack() as stack:
        held: list[socket.socket] = []
        for _ in range(MOST_OPEN + 1):
            hung = stack.enter_context(socket.create_connection(("127.0.0.1", endpoint.address.port), timeout=60))
            hung.sendall(b"GET /healthz HT")
            held.append(hung)
        assert asked(endpoint, "/healthz") == (200, "alive\n")
        assert held[0].recv(1) == b""  # closed


def test_a_caller_that_is_silent_is_dropped(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_endpoint, "ANSWER_WITHIN", 0.05)
    with socket.create_connection(("127.0.0.1", endpoint.address.port), timeout=60) as silent:
        assert silent.recv(1) == b""


def test_what_is_no_request_is_dropped(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.address.port), timeout=60) as odd:
        odd.sendall(b"\xff\xfe\x00\r\n\r\n")
        assert odd.makefile("rb").read().startswith(b"HTTP/1.1 400 ")


def test_a_port_that_is_taken_is_one_sentence_with_what_to_do(endpoint: Endpoint) -> None:
    with pytest.raises(InvalidSetting) as refused:
        serving(endpoint.address)
    assert str(refused.value) == (
        f"another process listens on {endpoint.address} already, so metrics cannot be served there; "
        "choose another port for http (each process needs its own), or stop the other"
    )
    assert refused.value.exit_code == 1


def test_a_host_that_is_not_here_is_named() -> None:
    with pytest.raises(InvalidSetting, match=r"metrics cannot be served on http = 192\.0\.2\.1:9464"):
        listen(HttpAddress("192.0.2.1", 9464))
    with pytest.raises(InvalidSetting, match="is not known here"):
        listen(HttpAddress("nobody.invalid", 9464))


def test_its_port_is_free_once_it_is_closed() -> None:
    with Endpoint(HERE) as first:
        assert asked(first, "/healthz")[0] == 200
    with Endpoint(first.address) as second:
        assert asked(second, "/healthz")[0] == 200
