"""In which forms a secret may stand in what a run says; ``masking`` hides each of them.

As it is, line by line, and as JSON, an address (percent-encoded) and Base64 write it. One that the job changed in
another way is not found: masking is care, not proof.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def masked_forms(secrets: Iterable[bytes]) -> tuple[bytes, ...]:
    """All that is to be hidden of these, in a fixed order; too short ones are for ``masking`` to leave out."""
    return tuple(sorted({form for secret in secrets for form in _forms_of(secret)}))


def _forms_of(secret: bytes) -> set[bytes]:
    lines = {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}
    forms = set(lines)
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        for is_ascii in (True, False):
            quoted = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            forms.add(quoted.encode("utf-8", "surrogateescape"))
        forms |= {_percent_encoded(line, b""), _percent_encoded(line, b"/"), base64.b64encode(line)}
    return forms - {b""}


def _percent_encoded(data: bytes, kept: bytes) -> bytes:
    return b"".join(bytes((byte,)) if byte in _UNRESERVED or byte in kept else b"%%%02X" % byte for byte in data)
