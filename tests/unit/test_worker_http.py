"""The parts of the http target that send nothing: the request, where a redirect may lead, what is kept of an answer."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from datetime import UTC, datetime
from typing import Any

import pytest
from httpx import URL

from sexton.run_context import RunContext
from sexton_worker.targets.celery_call import is_allowed as is_broker_allowed
from sexton_worker.targets.http_answer import KEPT, BadEncoding, Body, body_of
from sexton_worker.targets.http_redirects import RefusedRedirect, is_allowed, is_same_host, redirected
from sexton_worker.targets.http_request import Request, Unsayable, request_of, shown

RUN = RunContext("nightly", datetime(2026, 3, 29, 1, tzinfo=UTC), 2, 77, datetime(2026, 3, 30, 1, tzinfo=UTC))
HEADERS = {"Authorization": "Bearer x", "Content-Type": "text/plain", "Sexton-Token": "77", "X-Own": "1"}


def made(url: str = "https://h/", body: str | None = None, value: str = "", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request_of(RUN, method="POST", url=url, headers=named, body=body, secrets={"s": value})


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "secret", "full"),
    [
        ("https://me:${secret:s}@h/", "p@ss/w:rd", "https://me:p%40ss%2Fw%3Ard@h/"),
        ("https://h/services/${secret:s}", "T1/B2/x?y", "https://h/services/T1/B2/x%3Fy"),
        ("https://h/?key=${secret:s}&at=${tick}", "a&b=c", "https://h/?key=a%26b%3Dc&at=2026-03-29T01:00:00Z"),
        ("${secret:s}", "https://hooks.example/a?b=c", "https://hooks.example/a?b=c"),
    ],
)
def test_a_secret_cannot_change_what_an_address_means(url: str, secret: str, full: str) -> None:
    assert made(url, value=secret).url == full


@pytest.mark.parametrize("secret", ["file:///etc/passwd", "h/", "https://a b/", ""])
def test_a_secret_that_is_a_whole_address_must_be_one(secret: str) -> None:
    with pytest.raises(Unsayable, match="no http or https address") as caught:
        made("${secret:s}", value=secret)
    assert secret == "" or secret not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "body", "full"),
    [
        ({}, '{"k": "${secret:s}"}', '{"k": "a\\"b&\\n"}'),
        ({"content_type": "application/vnd.x+json"}, '"${secret:s}"', '"a\\"b&\\n"'),
        ({"Content_Type": "application/x-www-form-urlencoded"}, "k=${secret:s}", "k=a%22b%26%0A"),
        ({}, "plain ${secret:s}", 'plain a"b&\n'),
    ],
)
def test_a_secret_is_written_as_the_body_s_type_wants_it(headers: dict[str, str], body: str, full: str) -> None:
    request = made(body=body, value='a"b&\n', **headers)
    assert request.body == full.encode()
    assert request.holds_secret


def test_a_header_takes_no_second_line() -> None:
    with pytest.raises(Unsayable, match="'X-Key' would hold a line end"):
        made(value="a\r\nX-Evil: 1", X_Key="${secret:s}")


def test_the_job_s_own_key_and_agent_stand_whatever_their_case() -> None:
    headers = made(idempotency_key="own ${claim}", user_agent="curl").headers
    assert headers["idempotency-key"] == "own nightly@2026-03-29T01:00:00Z"
    assert {"Idempotency-Key", "User-Agent"}.isdisjoint(headers)
    assert (headers["Sexton-Attempt"], headers["Sexton-Token"]) == ("2", "77")


def test_a_content_type_of_the_job_s_own_is_sent_once_whatever_its_case() -> None:
    headers = made(body="{}", content_type="application/x-own").headers
    assert [(name, value) for name, value in headers.items() if name.lower() == "content-type"] == [
        ("content-type", "application/x-own")
    ]


def test_an_address_that_begins_with_a_secret_may_name_another_in_its_query() -> None:
    url = "${secret:s}?next=http://other/"
    assert made(url, value="https://h/a").url == "https://h/a?next=http://other/"


def test_no_message_shows_what_may_be_secret_in_an_address() -> None:
    assert shown("https://me:pw@h:8443/a?token=x#y") == "https://h:8443/a"


# --- redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "there", "is_same"),
    [
        ("https://h/a", "https://h:443/b", True),
        ("http://h/", "https://h/", True),
        ("https://h/", "http://h/", False),
        ("http://h:8080/", "https://h/", False),
        ("https://h/", "https://h:8443/", False),
        ("https://h/", "https://other/", False),
        ("https://h/", "https://h.evil/", False),
        ("https://H/", "https://h/", True),
    ],
)
def test_a_host_is_the_same_with_its_port_and_never_less_safe(here: str, there: str, is_same: bool) -> None:
    assert is_same_host(URL(here), URL(there)) is is_same


def go(status: int, location: str, rule: str = "same-host", **keys: Any) -> Request:
    request = Request(**{"method": "POST", "url": "https://h/a", "headers": HEADERS, "body": b"x", **keys})
    return redirected(request, status, location, rule)


def test_the_same_host_gets_the_same_request() -> None:
    following = go(307, "/b?c")
    assert (following.method, following.url, following.headers, following.body) == (
        "POST",
        "https://h/b?c",
        HEADERS,
        b"x",
    )
    assert go(308, "/b", url="https://me:pw@h/a").url == "https://me:pw@h/b"


def test_a_303_asks_for_the_result() -> None:
    following = go(303, "b")
    assert (following.method, following.url, following.body) == ("GET", "https://h/b", None)
    assert "Content-Type" not in following.headers
    assert following.headers["Authorization"] == "Bearer x"


@pytest.mark.parametrize("status", [301, 302])
def test_nothing_is_made_a_get_on_the_way(status: int) -> None:
    with pytest.raises(RefusedRedirect, match="would make the POST a GET"):
        go(status, "/b", "all")
    assert go(status, "/b", method="GET", body=None).url == "https://h/b"


@pytest.mark.parametrize("location", ["//other/", "https://h:8443/", "http://h/", "https://me:pw@other/"])
def test_another_host_must_be_asked_for_and_gets_no_credentials(location: str) -> None:
    with pytest.raises(RefusedRedirect, match="to another host"):
        go(307, location)
    following = go(307, location, "all")
    assert set(following.headers) == {"Content-Type", "Sexton-Token"}
    assert following.body == b"x"
    with pytest.raises(RefusedRedirect, match="holds a secret"):
        go(307, location, "all", holds_secret=True)
    assert go(303, location, "all", holds_secret=True).body is None


@pytest.mark.parametrize("location", ["ftp://h/", "javascript:alert(1)", "http://[::1", "file:///etc/passwd"])
def test_what_is_no_address_is_not_followed(location: str) -> None:
    with pytest.raises(RefusedRedirect):
        go(307, location, "all")


@pytest.mark.parametrize(
    ("url", "is_admitted"),
    [
        ("https://billing.internal/jobs/run", True),
        ("https://BILLING.internal:443/jobs", True),
        ("https://billing.internal/jobsuite", False),
        ("https://billing.internal/jobs/../admin", False),
        ("https://billing.internal/jobs/%2e%2e/admin", False),
        ("https://billing.internal/jobs/..%2fadmin", False),
        ("https://billing.internal/", False),
        ("http://billing.internal/jobs/", False),
        ("https://billing.internal:8443/jobs/", False),
        ("https://billing.internal.evil/jobs/", False),
        ("https://billing.internal@evil/jobs/", False),
        ("https://me:pw@billing.internal/jobs/", True),
        ("https://open.internal/any/%2e%2e/thing", True),
    ],
)
def test_an_allowed_address_is_a_beginning_in_whole_parts(url: str, is_admitted: bool) -> None:
    allow = ("billing", "https://billing.internal/jobs/", "https://open.internal")
    assert is_allowed(url, allow) is is_admitted


def test_of_a_broker_with_several_addresses_each_must_be_allowed() -> None:
    allow = ("redis://broker/",)
    assert is_broker_allowed("redis://:pw@broker/0", allow)
    assert is_broker_allowed("redis://broker/0;redis://broker/1", allow)
    assert not is_broker_allowed("redis://broker/0;redis://evil/0", allow)
    assert not is_broker_allowed("redis://broker:6380/0", allow)
    assert not is_broker_allowed("redis://broker@evil/0", allow)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_no_more_is_read_than_is_kept() -> None:
    pieces = iter([b"x" * 1000] * 1000)
    assert body_of(pieces, "") == Body(b"x" * KEPT, is_cut=True)
    assert sum(1 for _ in pieces) > 900


def test_what_is_packed_is_unpacked_no_further_than_is_kept() -> None:
    packed = zlib.compress(b"\0" * 50_000_000, 9)
    tracemalloc.start()
    try:
        assert body_of([packed[:100], packed[100:]], "deflate") == Body(b"\0" * KEPT, is_cut=True)
        assert tracemalloc.get_traced_memory()[1] < 20 * KEPT
    finally:
        tracemalloc.stop()
    assert body_of([zlib.compress(b"small")], "Deflate") == Body(b"small")
    with pytest.raises(BadEncoding, match="no gzip"):
        body_of([b"plain"], "gzip")
    with pytest.raises(BadEncoding, match="'br', which was not asked for"):
        body_of([b"x"], "br")


def test_what_would_move_a_cursor_is_escaped() -> None:
    assert Body("\x1b[2J\r\n\rÄ\t\x9b\xff".encode() + b"\xff\n").shown() == "\\x1b[2J\n\\x0dÄ\t\\x9bÿ\\xff\n"


def test_a_body_whose_encoding_ends_early_is_no_whole_one_and_one_of_several_parts_is() -> None:
    whole = gzip.compress(b"paid: yes " * 100, mtime=0)
    for cut in (whole[:15], whole[:-1], whole + whole[:15]):
        with pytest.raises(BadEncoding, match="ends in the midst of its gzip"):
            body_of([cut], "gzip")
    parts = whole + gzip.compress(b"!") + b"\0" * 9
    for pieces in ([parts], [parts[at : at + 1] for at in range(len(parts))]):
        assert body_of(pieces, "gzip").data == b"paid: yes " * 100 + b"!"
    assert body_of([], "gzip") == Body(b"")
