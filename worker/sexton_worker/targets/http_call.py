"""The ``http`` target: one request and what its answer means, as a function called in a warm Python process.

    the status is in expect, the body matches      succeeded
    any other answer                               failed: UnexpectedStatus503, UnexpectedStatus, UnexpectedBody
    a redirect that is not followed                failed: RefusedRedirect
    no answer                                      failed: as httpx calls it; TimeoutException after its timeout
    nothing may be sent, or can be                 not started

These names are what ``retries.on`` may name. The beginning of the answer's body is the run's standard output. The
process keeps its connections for the next request, unless something of an answer may be left on one; cookies and all
else that a server says end with the run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

from sexton.run_context import context
from sexton.settings import format_duration
from sexton_worker.targets.http_answer import BadEncoding, Body, body_of
from sexton_worker.targets.http_leftovers import leaves_nothing
from sexton_worker.targets.http_redirects import (
    MOST_REDIRECTS,
    NO_REDIRECTS,
    STATUSES,
    RefusedRedirect,
    is_allowed,
    redirected,
)
from sexton_worker.targets.http_request import Request, Unsayable, request_of, shown
from sexton_worker.targets.python_call import LONGEST_ERROR, Ended
from sexton_worker.targets.time_limit import OutOfTime, TimeLimit

if TYPE_CHECKING:
    from httpx import Client, Response

REFERENCE = f"{__name__}:send"
# How the worker's machine reaches others; of its environment a request knows only these.
NETWORK_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip

KEEP_IDLE_SECONDS = 4.0  # servers close theirs after 5 s and more: what is sent into such a close is lost
MOST_IDLE = 10

_client: Client | None = None
_client_network: tuple[str | None, ...] = ()


class UnexpectedStatus(Exception):
    """The answer's status is not in `expect`."""


class UnexpectedBody(Exception):
    """The answer's body does not match `expect_body`, or cannot be read."""


class RequestFailed(Ended):
    """The run has failed, without an exit code. ``names``: for ``retries.on``, before those of the cause's kinds."""

    def __init__(self, error: str, cause: BaseException, names: Sequence[str] = ()) -> None:
        super().__init__("raised", error[:LONGEST_ERROR], cause)
        self.message["exit_code"] = None
        self.message["exceptions"] = [*names, *self.message["exceptions"]]


def send(
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: str | None,
    expect: Sequence[int],
    expect_body: str | None,
    timeout: float,
    redirects: str,
    allow: Sequence[str] | None,
    secrets: Mapping[str, str],
) -> None:
    """Send the run's request; print what came back. Raises ``Ended`` unless the run succeeded."""
    import httpx  # here: other runs do not need it, and it takes long to load

    try:
        request = request_of(context(), method=method, url=url, headers=headers, body=body, secrets=secrets)
        _check_allowed(request, allow)
    except (Unsayable, httpx.InvalidURL) as error:
        raise Ended("not started", str(error), error) from None
    exchange = _Exchange(request, expect, expect_body, redirects, allow)
    try:
        _present_client()
        with TimeLimit(timeout):
            exchange.run()
    except OutOfTime:
        _drop_client()  # whatever it was in the midst of
        limit = format_duration(timedelta(seconds=timeout))
        cause, names = httpx.TimeoutException(""), ("TimeoutError",)
        raise RequestFailed(f"{exchange.said()} within its timeout of {limit}", cause, names) from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise RequestFailed(f"{exchange.what()} failed: {_reason(error)}", error) from None
    except (OSError, ValueError) as error:  # such as a proxy's address or a file of certificates that are none
        _drop_client()
        raise RequestFailed(f"{exchange.what()} failed: {_reason(error)}", error) from None


class _Exchange:
    """The request, its redirects, and the last answer."""

    def __init__(
        self,
        request: Request,
        expect: Sequence[int],
        expect_body: str | None,
        redirects: str,
        allow: Sequence[str] | None,
    ) -> None:
        self._request = request
        self._expect = expect
        self._expect_body = expect_body
        self._redirects = redirects
        self._allow = allow
        self._seen: set[tuple[str, str]] = set()
        self._answered = ""

    def what(self) -> str:
        return f"{self._request.method} {shown(self._request.url)}"

    def said(self) -> str:
        """How far it came."""
        if self._answered:
            return f"{self.what()} answered {self._answered} and did not end"
        return f"{self.what()} was not answered"

    def run(self) -> None:
        """Raises ``Ended`` unless the answer is as it was meant to be."""
        while True:
            self._seen.add((self._request.method, self._request.url))
            self._answered = ""
            with _answer_to(self._request) as response:
                status = response.status_code
                self._answered = _named(status)
                body = self._read(response)
                following = self._following(response)
            if following is None:
                self._judge(status, body)
                return
            self._request = following

    def _read(self, response: Response) -> Body:
        try:
            return body_of(response.iter_raw(), response.headers.get("content-encoding", ""))
        except BadEncoding as error:
            raise RequestFailed(f"{self.what()} answered {self._answered}, and {error}", UnexpectedBody()) from None

    def _following(self, response: Response) -> Request | None:
        """The request to which the answer leads, None if it is the last."""
        status, location = response.status_code, response.headers.get("location")
        if status not in STATUSES or location is None or status in self._expect or self._redirects == NO_REDIRECTS:
            return None
        try:
            following = redirected(self._request, status, location, self._redirects)
            if (following.method, following.url) in self._seen:
                raise RefusedRedirect(f"in a circle, back to {shown(following.url)}")
            if len(self._seen) > MOST_REDIRECTS:
                raise RefusedRedirect(f"more than {MOST_REDIRECTS} times, at last to {shown(following.url)}")
        except RefusedRedirect as error:
            raise RequestFailed(f"{self.what()} redirects ({self._answered}) {error}", error) from None
        try:
            _check_allowed(following, self._allow)
        except Ended as error:
            raise RequestFailed(
                f"{self.what()} redirects ({self._answered}): {error.message['error']}", error
            ) from None
        return following

    def _judge(self, status: int, body: Body) -> None:
        _print(body)
        if status not in self._expect:
            wanted = " or ".join(filter(None, (", ".join(map(str, self._expect[:-1])), str(self._expect[-1]))))
            names = (f"UnexpectedStatus{status}", f"UnexpectedStatus{status // 100}xx")
            error = f"{self.what()} answered {self._answered}; expected {wanted}"
            raise RequestFailed(error, UnexpectedStatus(), names)
        if self._expect_body is not None and not _matches(self._expect_body, body):
            where = "the first 64 KiB of its body do" if body.is_cut else "its body does"
            error = f"{self.what()} answered {self._answered}, and {where} not match {self._expect_body!r}"
            raise RequestFailed(error, UnexpectedBody())


def _matches(pattern: str, body: Body) -> bool:
    return re.search(pattern, body.data.decode("utf-8", "replace")) is not None


def _print(body: Body) -> None:
    text = body.shown()
    if text:
        sys.stdout.write(text if text.endswith("\n") or body.is_cut else f"{text}\n")
    if body.is_cut:
        sys.stderr.write("[... the answer has more than 64 KiB; the rest was not read ...]\n")


def _named(status: int) -> str:
    with contextlib.suppress(ValueError):
        return f"{status} {HTTPStatus(status).phrase}"
    return str(status)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _check_allowed(request: Request, allow: Sequence[str] | None) -> None:
    if allow is not None and not is_allowed(request.url, allow):
        may = ", ".join(entry for entry in allow if "://" in entry) or "none"
        advice = "add it to `allow` in the worker's settings, or give the job the queue of another worker"
        why = f"{shown(request.url)} is not among the addresses that this worker may use ({may}); {advice}"
        raise Ended("not started", why, PermissionError())


# --- connections ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _answer_to(request: Request) -> Iterator[Response]:
    client = _present_client()
    made = client.build_request(
        request.method, request.url, headers=list(request.headers.items()), content=request.body
    )
    response = client.send(made, stream=True)
    may_stay = False
    try:
        yield response
    finally:
        response.close()
        with contextlib.suppress(AttributeError):  # another httpx, which keeps its connections in another way
            may_stay = leaves_nothing(client, response)
        if not may_stay:
            _drop_client()


def _present_client() -> Client:
    """This process's, with the connections that it has kept; no cookies of an earlier run."""
    global _client, _client_network
    import httpx

    network = tuple(os.environ.get(name) for name in NETWORK_VARIABLES)
    if _client is None or network != _client_network:
        _drop_client()
        _client = httpx.Client(
            verify=_authorities(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            timeout=None,  # noqa: S113 - the whole has one: see TimeLimit
            limits=httpx.Limits(max_keepalive_connections=MOST_IDLE, keepalive_expiry=KEEP_IDLE_SECONDS),
            headers={"Accept": "*/*", "Accept-Encoding": "identity"},
        )
        _client_network = network
    _client.cookies.clear()
    return _client


@functools.lru_cache(maxsize=1)
def _authorities(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The machine's own, or those that were named; where none were, certifi's too."""
    trusted = ssl.create_default_context()
    if not file and not folder:
        import certifi

        trusted.load_verify_locations(certifi.where())
    return trusted


def _drop_client() -> None:
    global _client
    client, _client = _client, None
    if client is not None:
        with contextlib.suppress(Exception):
            client.close()
