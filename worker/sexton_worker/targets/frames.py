"""Messages between a worker and its Python children: a length, then JSON."""

from __future__ import annotations

import json
import struct
from typing import Any

_LENGTH = struct.Struct("!I")


def encode(message: dict[str, Any]) -> bytes:
    """The frame of a message. Raises TypeError or ValueError for what JSON cannot say."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


class FrameBuffer:
    """Frames out of a stream that comes in pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> None:
        self._bytes += piece

    def take(self) -> dict[str, Any] | None:
        """The next whole message, or None."""
        if len(self._bytes) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes)
        end = _LENGTH.size + length
        if len(self._bytes) < end:
            return None
        message: dict[str, Any] = json.loads(bytes(self._bytes[_LENGTH.size : end]))
        del self._bytes[:end]
        return message
