"""Secrets in a stream of bytes become ``***``, however the stream is cut into pieces.

    held: the end of what came, as far as it may be the beginning of a secret ──▶ decided by what comes next

What is masked is every byte of every occurrence, also where occurrences overlap; each stretch of them is one ``***``.
So the result does not depend on the pieces, and what is cut out of it later (the kept beginning and end of an output)
cannot show a part of a secret. Exact bytes only; in which other forms a secret may stand is ``secret_masks``' to say.
A value shorter than ``SHORTEST`` is no secret here: masking ``1`` or ``on`` would hide
nothing and spoil every output. A stream that ends in the midst of a secret shows that part only if it is as short.
"""

from __future__ import annotations

from collections.abc import Iterable

MASK = b"***"
SHORTEST = 4  # bytes


class Masker:
    """One stream's. Without secrets it costs nothing and holds nothing."""

    __slots__ = ("_covered", "_held", "_longest", "_secrets")

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        self._secrets: tuple[bytes, ...] = ()
        self._longest = 0
        self._held = b""
        self._covered = 0  # bytes of what is held that belong to a secret which has been masked already
        self.add(secrets)

    def add(self, secrets: Iterable[bytes]) -> None:
        """Mask these too from now on."""
        known = {secret for secret in secrets if len(secret) >= SHORTEST} | set(self._secrets)
        if len(known) > len(self._secrets):
            self._secrets = tuple(sorted(known))
            self._longest = max(map(len, known))

    def feed(self, data: bytes) -> bytes:
        """What can be shown of the stream now."""
        if not self._secrets:
            return data
        data = self._held + data
        undecided = self._undecided_from(data)
        shown, covered_to = self._masked(data, undecided)
        self._held, self._covered = data[undecided:], max(0, covered_to - undecided)
        return shown

    def finish(self) -> bytes:
        """The rest, for the stream has ended; the next may begin."""
        held, covered = self._held, self._covered
        self._held, self._covered = b"", 0
        if len(held) >= SHORTEST and covered < len(held):
            return b"" if covered else MASK
        return held[covered:]

    def _undecided_from(self, data: bytes) -> int:
        """Where the longest end of the data begins with which a secret may begin."""
        first = max(0, len(data) - self._longest + 1)
        best = len(data)
        for secret in self._secrets:
            at = data.find(secret[:1], max(first, len(data) - len(secret) + 1))
            while 0 <= at < best:
                if secret.startswith(data[at:]):
                    best = at
                    break
                at = data.find(secret[:1], at + 1)
        return best

    def _masked(self, data: bytes, upto: int) -> tuple[bytes, int]:
        """The data before ``upto``, masked; up to where it belongs to masked secrets, which may be behind that."""
        found = sorted(self._occurrences(data, upto))
        parts: list[bytes] = []
        covered_to = self._covered
        for at, end in found:
            if at >= covered_to:
                parts += (data[covered_to:at], MASK)
            covered_to = max(covered_to, end)
        parts.append(data[covered_to:upto])
        return b"".join(parts), covered_to

    def _occurrences(self, data: bytes, upto: int) -> Iterable[tuple[int, int]]:
        """Of all secrets, those that begin before ``upto``."""
        for secret in self._secrets:
            at = data.find(secret)
            while 0 <= at < upto:
                yield at, at + len(secret)
                at = data.find(secret, at + 1)


def masked(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """A whole stream, masked."""
    masker = Masker(secrets)
    return masker.feed(data) + masker.finish()


def masked_text(text: str, secrets: Iterable[bytes]) -> str:
    """The same of a text."""
    secrets = tuple(secrets)
    if not secrets or not text:
        return text
    shown = masked(text.encode("utf-8", "surrogatepass"), secrets)
    try:
        return shown.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a secret that is no text ended within a character
        return shown.decode("utf-8", "replace")
