"""What of an address that is a secret may stand by itself where the whole does not: in an error that leaves out its
query, in an answer that repeats its path, in the header that its user and password become.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

LEAST = 8  # characters of a path or query: of a shorter one nothing would be secret, and much would be hidden
LONG_PIECE = 16  # a single name or value in them that is a key by itself

_KEPT = "/?!$&'()*+,;=:@%~"  # what clients leave as it is when they tidy an address


def parts_of_address(address: str) -> tuple[str, ...]:
    """Of an address all of which is secret. Empty for what is none."""
    parts = _split(address)
    if parts is None:
        return ()
    host = parts.netloc.rpartition("@")[2]
    found = set(logins_of_address(address))
    for authority in (host, host.lower()):
        place = f"{parts.scheme}://{authority}"
        found |= {place, place + parts.path}
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    for text in (parts.path, parts.query, target, parts.fragment):
        pieces = re.split(r"[/?&=;]", text)
        long = {piece for piece in pieces if len(piece) >= LONG_PIECE} | ({text} if len(text) >= LEAST else set())
        for one in long:
            found |= {one, unquote(one), quote(one, safe=_KEPT)}
    return tuple(sorted(found))


def logins_of_address(address: str) -> tuple[str, ...]:
    """The password of an address, or the user without one, and both as HTTP sends them. Empty for one without."""
    parts = _split(address)
    if parts is None or "@" not in parts.netloc:
        return ()
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    login = f"{unquote(user)}:{unquote(password)}".encode("utf-8", "surrogateescape")
    key = password or user
    return tuple(sorted({key, unquote(key), base64.b64encode(login).decode()}))


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return parts if parts.scheme and parts.netloc else None
