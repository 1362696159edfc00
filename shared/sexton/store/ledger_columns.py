"""Claims and skip records of a range of jobs as columns of numbers, job by job: the audit's way to a million rows.

PostgreSQL packs a job's rows into one value, streamed job by job; SQLite keeps instants as numbers anyway. No row
becomes an object of its own. Both are read inside the caller's transaction, ordered by job and tick, and no more than a
job's rows (on SQLite one block more) are in memory.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Connection

from sexton.audited_ledger import ORIGIN_BITS, ClaimColumns, SkipColumns
from sexton.claims import Origin
from sexton.decisions import SkipReason

_BLOCK = 20_000  # rows
_MICROS_TO_2000 = 946_684_800_000_000  # PostgreSQL counts from there
_REASONS = tuple(SkipReason)
_WORDS = ("of another release", *(reason.value for reason in _REASONS))

_OF_JOBS = "job_id BETWEEN :first AND :last"
_CLAIMED = f"{_OF_JOBS} AND scheduled_at > :after AND scheduled_at <= :upto AND origin <> {Origin.MANUAL:d}"
_CLAIMS = f"""SELECT job_id, scheduled_at, revision << {ORIGIN_BITS} | origin FROM claims
WHERE {_CLAIMED} ORDER BY job_id, scheduled_at"""  # noqa: S608 - constants
_REASON = " ".join(f"WHEN '{reason.value}' THEN {place}" for place, reason in enumerate(_REASONS, start=1))
_SKIPPED = f"{_OF_JOBS} AND upto > :after"
_SKIPS = f"""SELECT job_id, after, upto, count, CASE reason {_REASON} ELSE 0 END,
  CASE WHEN resolved_at IS NULL THEN 0 ELSE 1 END FROM skips
WHERE {_SKIPPED} ORDER BY job_id, after"""  # noqa: S608 - constants


def _on_postgres(conditions: str) -> str:
    for name in ("after", "upto"):
        conditions = conditions.replace(f":{name}", f"'epoch'::timestamptz + %({name})s * interval '1 microsecond'")
    return conditions.replace(":first", "%(first)s").replace(":last", "%(last)s")


_PACKED_CLAIMS = f"""SELECT job_id, string_agg(
  timestamptz_send(scheduled_at) || int8send(revision::bigint << {ORIGIN_BITS} | origin), '' ORDER BY scheduled_at)
FROM claims WHERE {_on_postgres(_CLAIMED)} GROUP BY job_id ORDER BY job_id"""  # noqa: S608 - constants
_PACKED_SKIPS = f"""SELECT job_id, string_agg(timestamptz_send(after) || timestamptz_send(upto) || int8send(count)
  || int8send(CASE reason {_REASON} ELSE 0 END) || int8send(CASE WHEN resolved_at IS NULL THEN 0 ELSE 1 END),
  '' ORDER BY after)
FROM skips WHERE {_on_postgres(_SKIPPED)} GROUP BY job_id ORDER BY job_id"""  # noqa: S608 - constants


class JobRange(NamedTuple):
    """Jobs ``first`` to ``last``, rows after ``after``; claims up to ``upto``. Instants as microseconds since 1970."""

    first: int
    last: int
    after: int
    upto: int


def read_claims(connection: Connection, jobs: JobRange) -> Iterator[tuple[int, ClaimColumns]]:
    """The claims of each job that has some, by job; without those that were triggered."""
    if connection.dialect.name == "postgresql":
        for job_id, (ticks, kinds) in _streamed(connection, _PACKED_CLAIMS, jobs, 2):
            yield job_id, ClaimColumns(_since_1970(ticks), kinds)
        return
    for job_id, (ticks, kinds) in _fetched(connection, _CLAIMS, jobs, 2):
        yield job_id, ClaimColumns(ticks, kinds)


def read_skips(connection: Connection, jobs: JobRange) -> Iterator[tuple[int, SkipColumns]]:
    """The skip records of each job that has some and that end after ``after``, by job."""
    if connection.dialect.name == "postgresql":
        for job_id, (after, upto, counts, reasons, resolved) in _streamed(connection, _PACKED_SKIPS, jobs, 5):
            yield job_id, SkipColumns(_since_1970(after), _since_1970(upto), counts, _words(reasons), resolved)
        return
    for job_id, (after, upto, counts, reasons, resolved) in _fetched(connection, _SKIPS, jobs, 5):
        yield job_id, SkipColumns(after, upto, counts, _words(reasons), resolved)


def _words(reasons: array[int]) -> list[str]:
    return [_WORDS[place] for place in reasons]


def _since_1970(column: array[int]) -> array[int]:
    return array("q", [value + _MICROS_TO_2000 for value in column])


# --- PostgreSQL: a job's rows in one value -----------------------------------------------------------


def _streamed(connection: Connection, query: str, jobs: JobRange, width: int) -> Iterator[tuple[int, list[array[int]]]]:
    """The rows of each job, packed as numbers of eight bytes, most significant first."""
    driver: Any = connection.connection.driver_connection
    with closing(driver.cursor()) as cursor:
        for job_id, packed in cursor.stream(query.encode(), jobs._asdict(), binary=True):
            numbers = array("q", bytes(packed))
            if sys.byteorder == "little":
                numbers.byteswap()
            yield job_id, [numbers[place::width] for place in range(width)]


# --- SQLite: rows in blocks --------------------------------------------------------------------------


def _fetched(connection: Connection, query: str, jobs: JobRange, width: int) -> Iterator[tuple[int, list[array[int]]]]:
    """The rows of each job, out of blocks that know no jobs."""
    current: int | None = None
    columns = [array("q") for _ in range(width)]
    for ids, *block in _blocks(connection, query, jobs):
        position = 0
        while position < len(ids):
            if ids[position] != current:
                if current is not None:
                    yield current, columns
                current, columns = ids[position], [array("q") for _ in range(width)]
            end = bisect_right(ids, ids[position], position)
            for column, values in zip(columns, block, strict=True):
                column.extend(values[position:end])
            position = end
    if current is not None:
        yield current, columns


def _blocks(connection: Connection, query: str, jobs: JobRange) -> Iterator[list[tuple[int, ...]]]:
    """The rows as columns, the job's first."""
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(query, jobs._asdict())
        while rows := cursor.fetchmany(_BLOCK):
            yield list(zip(*rows, strict=True))
