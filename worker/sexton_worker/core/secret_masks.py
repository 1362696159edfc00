"""What a run's secrets look like in its output, and the mark that stands there instead.

A secret is found as it is, line by line, and as JSON, an address (percent-encoded), a form and Base64 write it; of one
that is an address its password too. It is not found where the job changed it in another way: masking is care, not
proof. One shorter than ``SHORTEST`` would hide half of any text, and is left alone. How a stream is masked piece by
piece is in ``masking``, which the zygote loads too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote_plus

from sexton_worker.core.address_masks import logins_of_address
from sexton_worker.core.masking import MASK, SHORTEST, Masker, masked, masked_text

MARK = MASK

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class SecretMask:
    """Hides these secrets. ``hide`` takes whole texts, ``feed`` a stream piece by piece.

    ``longest``: how long, in bytes, the longest thing that is hidden is; 0: nothing is.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self.forms = forms_of_all(secrets)
        self.longest = max(map(len, self.forms), default=0)
        self._masker = Masker(self.forms)

    def hide(self, data: bytes) -> bytes:
        """``data`` with the mark in place of every secret."""
        return masked(data, self.forms)

    def hide_in_text(self, text: str) -> str:
        """The same for a text; halves of characters stay."""
        return masked_text(text, self.forms)

    def feed(self, piece: bytes) -> bytes:
        """The next piece of a stream, masked, without an end that may be the beginning of a secret: that is held back
        until it is known."""
        return self._masker.feed(piece)

    def rest(self) -> bytes:
        """What is held back; the stream has ended."""
        return self._masker.finish()


def forms_of_all(secrets: Iterable[bytes]) -> tuple[bytes, ...]:
    """How any of them may stand in an output."""
    return tuple(sorted({form for secret in secrets for form in forms_of(secret)}))


def forms_of(secret: bytes) -> set[bytes]:
    """How a secret may stand in an output."""
    lines = {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}
    if b"://" in secret:
        logins = logins_of_address(secret.decode("utf-8", "surrogateescape").strip())
        lines |= {one.encode("utf-8", "surrogateescape") for one in logins}
    forms = set(lines)
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        for is_ascii in (True, False):
            quoted = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            again = json.dumps(quoted, ensure_ascii=is_ascii)[1:-1]  # JSON within JSON, as logs have it
            forms |= {one.encode("utf-8", "surrogateescape") for one in (quoted, again)}
        forms |= {_percent_encoded(line, b""), _percent_encoded(line, b"/"), quote_plus(line).encode()}
        forms.add(base64.b64encode(line))
    return {form for form in forms if len(form) >= SHORTEST}


def _percent_encoded(data: bytes, kept: bytes) -> bytes:
    return b"".join(bytes((byte,)) if byte in _UNRESERVED or byte in kept else b"%%%02X" % byte for byte in data)
