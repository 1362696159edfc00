"""What is kept of an answer: the first ``KEPT`` bytes of its body, decoded in constant memory, shown as plain text."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

KEPT = 64 * 1024  # bytes

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EITHER = zlib.MAX_WBITS | 32  # gzip or deflate: the decoder finds out which
_ENDS_OF_LINES = re.compile(r"\r\n")


class BadEncoding(Exception):
    """The body cannot be decoded; the message says why."""


@dataclass(frozen=True, slots=True)
class Body:
    """The beginning of a body. ``is_cut``: there was more, which was not read."""

    data: bytes
    is_cut: bool = False

    def shown(self) -> str:
        """As text, with escapes for what is no text or would move a terminal's cursor."""
        text = _ENDS_OF_LINES.sub("\n", self.data.decode("utf-8", "backslashreplace"))
        return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def body_of(pieces: Iterable[bytes], encoding: str) -> Body:
    """Read no more than is kept. ``encoding``: its Content-Encoding. Raises ``BadEncoding``."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _plain(pieces)
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise BadEncoding(f"its body is encoded as {encoding[:40]!r}, which was not asked for")
    decoder = zlib.decompressobj(_EITHER)
    data = bytearray()
    is_whole = True  # nothing yet
    try:
        for piece in pieces:
            rest = _after_part(piece) if is_whole and data else piece
            while rest:
                data += decoder.decompress(rest, KEPT + 1 - len(data))
                if len(data) > KEPT:
                    return Body(bytes(data[:KEPT]), is_cut=True)
                rest, is_whole = decoder.unused_data, decoder.eof
                if is_whole:  # a gzip file may have several parts
                    rest = _after_part(rest)
                    decoder = zlib.decompressobj(_EITHER)
    except zlib.error as error:
        raise BadEncoding(f"its body is no {encoding}: {error}") from None
    if not is_whole:
        raise BadEncoding(f"its body ends in the midst of its {encoding}")
    return Body(bytes(data))


def _after_part(piece: bytes) -> bytes:
    """Without the zeros that may be behind a part."""
    return piece.lstrip(b"\0")


def _plain(pieces: Iterable[bytes]) -> Body:
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > KEPT:
            return Body(bytes(data[:KEPT]), is_cut=True)
    return Body(bytes(data))
