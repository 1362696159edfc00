"""Arrays packed by hand arrive as they were meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from sexton.store.postgres import arrays

SUMMER = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (arrays.small_ints([-32768, 0, 32767]), [-32768, 0, 32767]),
        (arrays.ints([-(2**31), 7]), [-(2**31), 7]),
        (arrays.big_ints([-1, 2**63 - 1]), [-1, 2**63 - 1]),
        (arrays.booleans([True, False]), [True, False]),
        (arrays.instants([SUMMER, datetime(1969, 12, 31, tzinfo=UTC)]), [SUMMER, datetime(1969, 12, 31, tzinfo=UTC)]),
        (arrays.texts(["", "größer", "nul \0", "lone \ud800"]), ["", "größer", "nul \ufffd", "lone ?"]),
        (arrays.blobs([b"", b"\x00\xff"]), [b"", b"\x00\xff"]),
        (arrays.big_ints([]), []),
        (arrays.texts([]), []),
        (arrays.big_ints(range(5000)), list(range(5000))),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_an_array_arrives_as_it_was_meant(postgres_ledger: str, packed: arrays.Packed, expected: list[Any]) -> None:
    with psycopg.connect(postgres_ledger.replace("+psycopg", "")) as connection:
        arrays.register(connection)
        row = connection.execute("SELECT %s", (packed,)).fetchone()
    assert row == (expected,)
