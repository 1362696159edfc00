"""What all runs of a job's revision have in common, as bytes: argument vector and environment.

The worker packs it once a revision; the zygote unpacks it once, and knows it again by its bytes.
"""

from __future__ import annotations

import functools
import struct

_COUNTS = struct.Struct("=HH")
_PIECE = struct.Struct("=I")
_KNOWN = 1000
_LARGEST_KNOWN = 8 * 1024  # bytes

Program = tuple[list[bytes], dict[bytes, bytes]]


def packed(argv: list[bytes], env: dict[bytes, bytes]) -> bytes:
    """Raises ``struct.error`` for more than 65,535 arguments or variables."""
    parts = [_COUNTS.pack(len(argv), len(env))]
    for piece in (*argv, *(piece for item in env.items() for piece in item)):
        parts += (_PIECE.pack(len(piece)), piece)
    return b"".join(parts)


def unpacked(data: bytes) -> Program:
    """What was packed; others have the same objects."""
    return _unpacked(data) if len(data) > _LARGEST_KNOWN else _known(data)


def _unpacked(data: bytes) -> Program:
    arguments, variables = _COUNTS.unpack_from(data)
    found, at = [], _COUNTS.size
    for _ in range(arguments + 2 * variables):
        (length,) = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        found.append(data[at : at + length])
        at += length
    env = found[arguments:]
    return found[:arguments], dict(zip(env[::2], env[1::2], strict=True))


_known = functools.lru_cache(_KNOWN)(_unpacked)
