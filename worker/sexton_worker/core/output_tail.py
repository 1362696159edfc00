"""The kept part of an output stream: its beginning and its end, in constant memory."""

from __future__ import annotations

KEPT_BYTES = 64 * 1024
MARK_BYTES = 64  # room for the line that stands for what was dropped


class OutputTail:
    """Takes a stream piece by piece; keeps its first half and its last, and counts the rest.

    ``total`` is the number of bytes taken. ``kept()`` is never longer than ``limit``, and is the stream itself
    if that is not longer either.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self.total = 0
        self._limit = limit
        self._head_size = limit // 2
        self._head = bytearray()
        self._rest = bytearray()  # the newest bytes after the head; at most two limits long

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        missing = self._head_size - len(self._head)
        if missing > 0:
            self._head += data[:missing]
            data = data[missing:]
        self._rest += data[-self._limit :]
        if len(self._rest) > 2 * self._limit:
            del self._rest[: -self._limit]

    def held_bytes(self) -> int:
        """How much memory the stream takes up now."""
        return len(self._head) + len(self._rest)

    def newest(self) -> bytes:
        """The end of the stream as it is now, without a gap; all of it, if it is not longer than ``limit``."""
        newest = self._rest[-self._limit :]
        return bytes(newest if len(newest) == self._limit else (self._head + newest)[-self._limit :])

    def kept(self) -> bytes:
        """The stream, or its beginning and end around a line that says how many bytes are missing there."""
        if self.total <= self._limit:
            return bytes(self._head + self._rest)
        tail = bytes(self._rest[-(self._limit - self._head_size - MARK_BYTES) :])
        dropped = self.total - len(self._head) - len(tail)
        return bytes(self._head) + f"\n[... {dropped} bytes not kept ...]\n".encode() + tail
