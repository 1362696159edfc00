"""Lists as PostgreSQL's binary arrays, packed in one call each.

psycopg packs item by item and chooses the integer type by the largest one, so that a statement is prepared anew for
each mix of types. Here the type is the caller's, and a list costs a tenth.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # from which PostgreSQL counts
_MICROSECOND = timedelta(microseconds=1)
_HEADER = struct.Struct("!iiIii")  # dimensions, whether there are nulls, the items' type, their number, the first index
_LENGTH = struct.Struct("!i")


class Packed(bytes):
    """An array as it goes over the wire; the subclass says of what."""

    __slots__ = ()


class SmallInts(Packed):
    """smallint[]"""


class Ints(Packed):
    """integer[]"""


class BigInts(Packed):
    """bigint[]"""


class Instants(Packed):
    """timestamptz[]"""


class Booleans(Packed):
    """boolean[]"""


class Texts(Packed):
    """text[]"""


class Blobs(Packed):
    """bytea[]"""


# class: (oid of the array, oid of an item)
_OIDS: dict[type[Packed], tuple[int, int]] = {
    SmallInts: (1005, 21),
    Ints: (1007, 23),
    BigInts: (1016, 20),
    Instants: (1185, 1184),
    Booleans: (1000, 16),
    Texts: (1009, 25),
    Blobs: (1001, 17),
}


def small_ints(values: Sequence[int]) -> SmallInts:
    return SmallInts(_packed(SmallInts, "h", 2, values))


def ints(values: Sequence[int]) -> Ints:
    return Ints(_packed(Ints, "i", 4, values))


def big_ints(values: Sequence[int]) -> BigInts:
    return BigInts(_packed(BigInts, "q", 8, values))


def booleans(values: Sequence[bool]) -> Booleans:
    return Booleans(_packed(Booleans, "?", 1, values))


def instants(values: Sequence[datetime]) -> Instants:
    """Aware datetimes of any zone."""
    return Instants(_packed(Instants, "q", 8, [(value - _EPOCH) // _MICROSECOND for value in values]))


def texts(values: Sequence[str]) -> Texts:
    """What is not valid UTF-8 (lone surrogates) becomes a question mark, NUL a replacement character."""
    encoded = [value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace") for value in values]
    return Texts(_joined(Texts, encoded))


def blobs(values: Sequence[bytes]) -> Blobs:
    return Blobs(_joined(Blobs, values))


def register(connection: psycopg.Connection[Any]) -> None:
    """Have the connection take these arrays as parameters."""
    for kind in _OIDS:
        connection.adapters.register_dumper(kind, _DUMPERS[kind])


def _header(kind: type[Packed], count: int) -> bytes:
    if count == 0:
        return _HEADER.pack(0, 0, _OIDS[kind][1], 0, 0)[:12]
    return _HEADER.pack(1, 0, _OIDS[kind][1], count, 1)


def _packed(kind: type[Packed], code: str, size: int, values: Sequence[int]) -> bytes:
    flat: list[int] = [size] * (2 * len(values))
    flat[1::2] = values
    return _header(kind, len(values)) + _layout(code, len(values)).pack(*flat)


@lru_cache(maxsize=2048)
def _layout(code: str, count: int) -> struct.Struct:
    return struct.Struct("!" + f"i{code}" * count)


def _joined(kind: type[Packed], values: Sequence[bytes]) -> bytes:
    parts = [_header(kind, len(values))]
    for value in values:
        parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _dumper(kind: type[Packed]) -> type[Dumper]:
    class PackedDumper(Dumper):
        format = Format.BINARY
        oid = _OIDS[kind][0]

        def dump(self, obj: Packed) -> Buffer | None:
            return obj

    return PackedDumper


_DUMPERS = {kind: _dumper(kind) for kind in _OIDS}
