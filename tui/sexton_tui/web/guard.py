"""Who may open the console in a browser: the whole of that decision, as a pure function of a request's headers.

A browser sends requests for any page it shows, so being on loopback protects from nobody. Three checks, in this order:
the *host* that was asked for is one of ours (else a name of somebody else's was pointed at this address), the *origin*
is the page we served (else another page opened the socket), and the *token* was shown once, or the cookie it was
exchanged for. The cookie holds a ticket, not the token: it ends with the server.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from dataclasses import dataclass, field
from enum import Enum

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Nothing from elsewhere is loaded, sent or framed; xterm.js makes its styles at run time.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with "no-referrer" a form names no origin, be it its own server's
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}


class Verdict(Enum):
    ADMITTED = "admitted"
    ENTERED = "entered"  # showed the token just now: give it the cookie, and the address without the token
    FOREIGN_HOST = "this address is not served under that host"
    FOREIGN_ORIGIN = "another page asked for this"
    NO_TOKEN = "no token"  # noqa: S105 - what is told, no password
    WRONG_TOKEN = "wrong token"  # noqa: S105 - what is told, no password


@dataclass(frozen=True, slots=True)
class Visit:
    """What of a request is judged. ``changes``: it acts, as a socket or a form does, and a browser names its origin."""

    host: str | None
    origin: str | None = None
    changes: bool = False
    shown: str | None = field(default=None, repr=False)  # a token in the address or the form
    cookie: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """``hosts``: names and addresses we are reached by, without ports: a tunnel's end has another port. ``schemes``:
    those of the pages we serve. ``token`` None: whoever comes is admitted. ``ticket``: what the cookie must hold."""

    hosts: frozenset[str]
    schemes: frozenset[str]
    token: str | None = field(repr=False)
    ticket: str = field(repr=False)

    def verdict(self, visit: Visit) -> Verdict:
        """What becomes of the request."""
        if visit.host is None or host_name(visit.host) not in self.hosts:
            return Verdict.FOREIGN_HOST
        if visit.origin is None:
            if visit.changes:
                return Verdict.FOREIGN_ORIGIN
        elif not self._is_own(visit.origin, visit.host):
            return Verdict.FOREIGN_ORIGIN
        if self.token is None:
            return Verdict.ADMITTED
        if visit.shown is not None:
            return Verdict.ENTERED if is_same(visit.shown, self.token) else Verdict.WRONG_TOKEN
        if visit.cookie is not None and is_same(visit.cookie, self.ticket):
            return Verdict.ADMITTED
        return Verdict.NO_TOKEN

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether the page is the one that this host serves: the same name and the same port."""
        scheme, separator, rest = origin.partition("://")
        if not separator or scheme not in self.schemes:
            return False
        return _with_port(rest, scheme) == _with_port(host, scheme)


def host_name(host: str) -> str | None:
    """The name or address in a Host header, in small letters, without port and brackets; None where it is none."""
    found = _HOST.fullmatch(host)
    return None if found is None else found[1].strip("[]").lower()


def is_loopback(host: str) -> bool:
    """Whether this address, or the name ``localhost``, is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_same(given: str, right: str) -> bool:
    """Compare, in a time that tells nothing about how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode("utf-8", "replace"))


def _with_port(host: str, scheme: str) -> str | None:
    found = _HOST.fullmatch(host)
    return None if found is None else f"{found[1].lower()}:{found[2] or _PORTS[scheme]}"
