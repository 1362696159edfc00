"""Where a request may go: redirects, and the addresses that a worker allows.

    none        no redirect is followed
    same-host   those to the same host, port and scheme; from http to https of the same host too, never back
    all         any; but none of the job's own headers go to another host, and no body with a secret in it

A redirect never changes what is done: 307 and 308 repeat the request, 303 asks for the result by GET, and 301 and 302
are followed for GET and HEAD alone, for anything else would become a GET that does nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sexton_worker.targets.http_request import Request, shown

if TYPE_CHECKING:
    from httpx import URL

MOST_REDIRECTS = 10
STATUSES = frozenset((301, 302, 303, 307, 308))
NO_REDIRECTS, ALL_REDIRECTS = "none", "all"

# Of what the job wrote, what says nothing about who asks.
_HARMLESS = ("accept", "accept-language", "content-type")
_ABOUT_BODY = ("content-type", "content-encoding", "content-language")
_OF_SEXTON = ("user-agent", "idempotency-key")
_OF_SEXTON_BEGIN = "sexton-"
_PORTS = {"http": 80, "https": 443}


class RefusedRedirect(Exception):
    """It is not followed; the message says why, as the end of a sentence."""


def redirected(request: Request, status: int, location: str, rule: str) -> Request:
    """The request that follows. ``rule``: `same-host` or `all`. Raises ``RefusedRedirect``."""
    from httpx import URL, InvalidURL  # here: it takes long to load

    here = URL(request.url)
    try:
        there = here.join(location)
    except (InvalidURL, ValueError):
        raise RefusedRedirect("with a Location that is no address") from None
    where = shown(str(there))
    if there.scheme not in _PORTS or not there.host:
        raise RefusedRedirect(f"to {where}, which is no http or https address")
    is_read = request.method in ("GET", "HEAD")
    if status in (301, 302) and not is_read:
        advice = "write that address as the url, or the status into expect"
        raise RefusedRedirect(f"to {where}, which would make the {request.method} a GET; {advice}")
    headers, method, body = dict(request.headers), request.method, request.body
    if status == 303 and not is_read:
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() not in _ABOUT_BODY}
    if is_same_host(here, there):
        if not there.userinfo and here.userinfo:
            there = there.copy_with(userinfo=here.userinfo)
        return dataclasses.replace(request, method=method, url=str(there), headers=headers, body=body)
    if rule != ALL_REDIRECTS:
        raise RefusedRedirect(f"to another host, {where}; write that address, or redirects: all if it is meant")
    if body is not None and request.holds_secret:
        raise RefusedRedirect(f"to another host, {where}, and the body holds a secret; write that address as the url")
    headers = {name: value for name, value in headers.items() if _may_leave(name.lower())}
    return dataclasses.replace(request, method=method, url=str(there), headers=headers, body=body)


def is_same_host(here: URL, there: URL) -> bool:
    """Whether what is meant for the one may go to the other."""
    if here.host != there.host:
        return False
    if here.scheme == there.scheme:
        return _port(here) == _port(there)
    return (here.scheme, _port(here)) == ("http", 80) and (there.scheme, _port(there)) == ("https", 443)


def is_allowed(url: str, allow: Sequence[str]) -> bool:
    """Whether an entry such as ``https://billing.internal/jobs/`` is the beginning of the address, in whole parts of
    its path."""
    from httpx import URL, InvalidURL  # as above

    address = URL(url)
    path = address.raw_path.decode("ascii").partition("?")[0]
    for entry in allow:
        if "://" not in entry:
            continue
        try:
            allowed = URL(entry)
        except InvalidURL:
            continue
        if (allowed.scheme, allowed.host, _port(allowed)) != (address.scheme, address.host, _port(address)):
            continue
        begin = allowed.path.rstrip("/")
        is_plain = not any(
            odd in path.lower() for odd in ("%2e", "%2f", "%5c", "\\")
        )  # servers read these as they like
        if not begin or (is_plain and f"{path}/".startswith(f"{begin}/")):
            return True
    return False


def _may_leave(name: str) -> bool:
    return name in _HARMLESS or name in _OF_SEXTON or name.startswith(_OF_SEXTON_BEGIN)


def _port(url: URL) -> int | None:
    return url.port or _PORTS.get(url.scheme)
