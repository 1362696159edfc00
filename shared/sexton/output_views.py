"""Output of runs as readers see it: what is kept of one that has ended, and the end of one that goes on.

A kept output that is longer than ``KEPT_BYTES`` is its first ``HEAD_BYTES``, a line that says how many are missing, and
its last ``TAIL_BYTES``; the worker's side is ``sexton_worker/core/output_tail.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

KEPT_BYTES = 64 * 1024
HEAD_BYTES = 32 * 1024
TAIL_BYTES = 32 * 1024 - 64


@dataclass(frozen=True, slots=True)
class LiveOutput:
    """What a run that goes on has written: the newest part of both outputs, without gaps, and how many bytes each has
    come to. ``written_at`` (UTC, database time): when its worker wrote this down."""

    token: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    written_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an output, and at which byte of it that begins."""

    at: int
    data: bytes


def live_pieces(data: bytes, total: int) -> tuple[Piece, ...]:
    """The newest part of an output that has come to ``total`` bytes."""
    return (Piece(total - len(data), data),)


def kept_pieces(data: bytes | None, total: int) -> tuple[Piece, ...]:
    """What was kept of an output of ``total`` bytes, without the line between its beginning and its end."""
    if data is None:
        return ()
    if total <= KEPT_BYTES:
        return (Piece(0, data),)
    return (Piece(0, data[:HEAD_BYTES]), Piece(total - TAIL_BYTES, data[-TAIL_BYTES:]))


def after(pieces: tuple[Piece, ...], position: int) -> tuple[Piece, ...]:
    """What of the pieces lies behind the first ``position`` bytes."""
    found = []
    for piece in pieces:
        end = piece.at + len(piece.data)
        if end > position:
            begin = max(piece.at, position)
            found.append(Piece(begin, piece.data[begin - piece.at :]))
    return tuple(found)
