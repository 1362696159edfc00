"""What a job's request is, put together from its texts and from what the run is told. Nothing is sent here.

A secret in the address is percent-encoded there, and in a body as its kind of text wants it: escaped in JSON, encoded
in a form, unchanged in anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, urlsplit

import sexton
from sexton.run_context import RunContext
from sexton.text_templates import SECRET, filled

IDEMPOTENCY_KEY = "Idempotency-Key"

_CONTENT_TYPE = "content-type"
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")
_ADDRESS = re.compile(r"https?://[^\s/?#]+(?:[/?#]\S*)?", re.ASCII)


class Unsayable(Exception):
    """A secret does not fit where the job wants it; the message says where, and nothing of the secret."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``holds_secret``: its body does. ``headers``: no name comes twice, whatever its case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    holds_secret: bool = False


def request_of(
    run: RunContext,
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: str | None,
    secrets: Mapping[str, str],
) -> Request:
    """The request of this run. Raises ``Unsayable``."""
    gap = _gap(run, secrets)
    address = full_url(run, url, secrets)
    if not _ADDRESS.fullmatch(address):
        raise Unsayable(
            "the url is no http or https address once its secrets are in it; correct them, or the job's url"
        )
    sent: dict[str, str] = {}
    for name, text in headers.items():
        value = gap(text, lambda secret, _: secret)
        if not _HEADER_VALUE.fullmatch(value):
            raise Unsayable(
                f"the header {name!r} would hold a line end or a character that is not ASCII; correct the secret"
            )
        sent[name] = value
    content_type = next((value for name, value in sent.items() if name.lower() == _CONTENT_TYPE), None)
    full_body = None
    if body is not None:
        content_type = content_type or kind_of(body)
        if all(name.lower() != _CONTENT_TYPE for name in sent):
            sent = {"Content-Type": content_type, **sent}
        full_body = gap(body, quoting_in(content_type)).encode()
    own = {name.lower() for name in sent}
    told_too = {name: value for name, value in identity_of(run).items() if name.lower() not in own}
    return Request(method, address, {**sent, **told_too}, full_body, f"${{{SECRET}" in (body or ""))


def told_of(run: RunContext) -> dict[str, str]:
    """What fills the gaps that are no secrets."""
    return {
        "job": run.job,
        "tick": run.claim.rpartition("@")[2],
        "attempt": str(run.attempt),
        "token": str(run.token),
        "deadline": f"{run.deadline.replace(tzinfo=None).isoformat()}Z",
        "claim": run.claim,
    }


def identity_of(run: RunContext) -> dict[str, str]:
    """The headers by which a server knows the run: the key is the same for each attempt at the claim."""
    told = told_of(run)
    return {
        "User-Agent": f"sexton/{sexton.__version__}",
        IDEMPOTENCY_KEY: run.claim,
        "Sexton-Job": run.job,
        "Sexton-Tick": told["tick"],
        "Sexton-Attempt": told["attempt"],
        "Sexton-Token": told["token"],
        "Sexton-Deadline": told["deadline"],
    }


def kind_of(body: str) -> str:
    """The content type of a body whose job names none."""
    return "application/json" if body.lstrip()[:1] in ("{", "[") else "text/plain; charset=utf-8"


def quoting_in(content_type: str) -> Callable[[str, int], str]:
    """How a secret is written into a body of this type."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return lambda secret, _: json.dumps(secret)[1:-1]
    if kind == "application/x-www-form-urlencoded":
        return lambda secret, _: quote_plus(secret)
    return lambda secret, _: secret


_Quoted = Callable[[str, int], str]


def _gap(run: RunContext, secrets: Mapping[str, str]) -> Callable[[str, _Quoted], str]:
    """Fills a text, its secrets as they are to be quoted at their places."""
    told = told_of(run)

    def gap(text: str, quoted: _Quoted) -> str:
        def value(name: str, position: int) -> str:
            return quoted(secrets[name[len(SECRET) :]], position) if name.startswith(SECRET) else told[name]

        return filled(text, value, is_template=True)

    return gap


def begins_secretly(address: str) -> bool:
    """Whether the whole of it, or its beginning, is a secret."""
    return "://" not in address.partition("${")[0]


def full_url(run: RunContext, url: str, secrets: Mapping[str, str]) -> str:
    """The url of this run's request; it may be none."""
    gap = _gap(run, secrets)
    if begins_secretly(url):
        return gap(url, lambda secret, _: secret)
    scheme = url.find("://")
    end = min((place for mark in "/?#" if (place := url.find(mark, scheme + 3)) >= 0), default=len(url))
    return gap(url, lambda secret, position: quote(secret, safe="/" if position >= end else ""))


def shown(url: str) -> str:
    """An address without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an address)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
