"""What a run's secrets look like in its output, and the mark that stands there instead.

A secret is found as it is, line by line, and as JSON, an address (percent-encoded) and Base64 write it. It is not found
where the job changed it in another way: masking is care, not proof. One shorter than ``SHORTEST`` would hide half of
any text, and is left alone.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable

MARK = b"(secret)"
SHORTEST = 4  # bytes

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class SecretMask:
    """Hides these secrets. ``hide`` takes whole texts, ``feed`` a stream piece by piece.

    ``longest``: how long, in bytes, the longest thing that is hidden is; 0: nothing is.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        forms = sorted({form for secret in secrets for form in forms_of(secret)}, key=lambda form: (-len(form), form))
        self.longest = len(forms[0]) if forms else 0
        self._pattern = re.compile(b"|".join(map(re.escape, forms))) if forms else None
        self._forms = forms
        self._held = b""

    def hide(self, data: bytes) -> bytes:
        """``data`` with the mark in place of every secret."""
        return data if self._pattern is None else self._pattern.sub(MARK, data)

    def hide_in_text(self, text: str) -> str:
        """The same for a text; halves of characters stay."""
        if self._pattern is None:
            return text
        return self.hide(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def feed(self, piece: bytes) -> bytes:
        """The next piece of a stream, masked, without an end that may be the beginning of a secret: that is held back
        until it is known."""
        if self._pattern is None:
            return piece
        data = self.hide(self._held + piece)
        keep = next((n for n in range(min(self.longest - 1, len(data)), 0, -1) if self._begins_with(data[-n:])), 0)
        self._held = data[len(data) - keep :] if keep else b""
        return data[: len(data) - keep]

    def _begins_with(self, end: bytes) -> bool:
        return any(form.startswith(end) for form in self._forms)

    def rest(self) -> bytes:
        """What is held back; the stream has ended."""
        held, self._held = self._held, b""
        return held


def forms_of(secret: bytes) -> set[bytes]:
    """How a secret may stand in an output."""
    lines = {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}
    forms = set(lines)
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        for is_ascii in (True, False):
            quoted = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            forms.add(quoted.encode("utf-8", "surrogateescape"))
        forms |= {_percent_encoded(line, b""), _percent_encoded(line, b"/")}
        forms.add(base64.b64encode(line))
    return {form for form in forms if len(form) >= SHORTEST}


def _percent_encoded(data: bytes, kept: bytes) -> bytes:
    return b"".join(bytes((byte,)) if byte in _UNRESERVED or byte in kept else b"%%%02X" % byte for byte in data)
