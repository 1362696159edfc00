"""Claims and skip records of a range of jobs as columns of numbers, job by job: the audit's way to a million rows.

PostgreSQL gives them as binary COPY, whose rows of whole numbers have one length each; SQLite keeps instants as numbers
anyway. No row becomes an object of its own. Both are read inside the caller's transaction, ordered by job and tick, and
no more than a job's rows and one block are in memory.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Connection

from sexton.audited_ledger import ORIGIN_BITS, ClaimColumns, SkipColumns
from sexton.claims import Origin
from sexton.decisions import SkipReason

_BLOCK = 20_000  # rows
_MICROS_TO_2000 = 946_684_800_000_000  # PostgreSQL counts from there
_HEADER = 19  # of a binary COPY
_REASONS = tuple(SkipReason)


class JobRange(NamedTuple):
    """Jobs ``first`` to ``last``, rows after ``after``; claims up to ``upto``. Instants as microseconds since 1970."""

    first: int
    last: int
    after: int
    upto: int


def read_claims(connection: Connection, jobs: JobRange) -> Iterator[tuple[int, ClaimColumns]]:
    """The claims of each job that has some, by job; without those that were triggered."""
    kind = f"revision::bigint << {ORIGIN_BITS} | origin"
    if connection.dialect.name == "postgresql":
        query = f"""SELECT job_id, scheduled_at, {kind} FROM claims
            WHERE job_id BETWEEN {jobs.first} AND {jobs.last} AND origin <> {Origin.MANUAL:d}
             AND scheduled_at > {_postgres(jobs.after)} AND scheduled_at <= {_postgres(jobs.upto)}
            ORDER BY job_id, scheduled_at"""  # noqa: S608 - whole numbers
        blocks = _copied(connection, query, 3)
    else:
        query = f"""SELECT job_id, scheduled_at, {kind.replace("::bigint", "")} FROM claims
            WHERE job_id BETWEEN ? AND ? AND origin <> {Origin.MANUAL:d} AND scheduled_at > ? AND scheduled_at <= ?
            ORDER BY job_id, scheduled_at"""  # noqa: S608 - constants
        blocks = _fetched(connection, query, jobs)
    shift = _MICROS_TO_2000 if connection.dialect.name == "postgresql" else 0
    for job_id, (ticks, kinds) in _by_job(blocks, 2):
        yield job_id, ClaimColumns(_shifted(ticks, shift), kinds)


def read_skips(connection: Connection, jobs: JobRange) -> Iterator[tuple[int, SkipColumns]]:
    """The skip records of each job that has some and that end after ``after``, by job."""
    names = ", ".join(f"'{reason.value}'" for reason in _REASONS)
    if connection.dialect.name == "postgresql":
        query = f"""SELECT job_id, after, upto, count, coalesce(array_position(ARRAY[{names}], reason), 0)::bigint
            FROM skips WHERE job_id BETWEEN {jobs.first} AND {jobs.last} AND upto > {_postgres(jobs.after)}
            ORDER BY job_id, after"""  # noqa: S608 - whole numbers and the words of an enumeration
        blocks = _copied(connection, query, 5)
    else:
        places = " ".join(f"WHEN '{reason.value}' THEN {place}" for place, reason in enumerate(_REASONS, start=1))
        query = f"""SELECT job_id, after, upto, count, CASE reason {places} ELSE 0 END
            FROM skips WHERE job_id BETWEEN ? AND ? AND upto > ? AND ? ORDER BY job_id, after"""  # noqa: S608 - as above
        blocks = _fetched(connection, query, jobs._replace(upto=1))
    shift = _MICROS_TO_2000 if connection.dialect.name == "postgresql" else 0
    words = ("of another release", *(reason.value for reason in _REASONS))
    for job_id, (after, upto, counts, reasons) in _by_job(blocks, 4):
        yield (
            job_id,
            SkipColumns(_shifted(after, shift), _shifted(upto, shift), counts, [words[place] for place in reasons]),
        )


# --- blocks of columns -----------------------------------------------------------------------------

_Block = Sequence[tuple[int, ...]]  # one tuple a column, the job first


def _copied(connection: Connection, query: str, width: int) -> Iterator[_Block]:
    """The rows of a query of ``width`` columns of eight bytes, out of a binary COPY."""
    row = struct.Struct(">h" + "iq" * width)
    with closing(connection.connection.cursor()) as cursor:
        data, begin = bytearray(), _HEADER
        with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
            for piece in copy:
                data += piece
                if len(data) - begin >= row.size * _BLOCK:
                    end = begin + (len(data) - begin) // row.size * row.size  # the trailer of two bytes is no row
                    yield _columns(row, data, begin, end)
                    del data[:end]
                    begin = 0
        end = begin + (len(data) - begin) // row.size * row.size
        if end > begin:
            yield _columns(row, data, begin, end)


def _columns(row: struct.Struct, data: bytearray, begin: int, end: int) -> _Block:
    with memoryview(data) as view, view[begin:end] as rows:
        columns = list(zip(*row.iter_unpack(rows), strict=True))
    return columns[2::2]  # before each value its length


def _fetched(connection: Connection, query: str, jobs: JobRange) -> Iterator[_Block]:
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(query, tuple(jobs))
        while rows := cursor.fetchmany(_BLOCK):
            yield list(zip(*rows, strict=True))


def _by_job(blocks: Iterator[_Block], width: int) -> Iterator[tuple[int, list[array[int]]]]:
    """The columns after the job's, of each job."""
    current: int | None = None
    columns = [array("q") for _ in range(width)]
    for block in blocks:
        ids, position = block[0], 0
        while position < len(ids):
            job_id = ids[position]
            if job_id != current:
                if current is not None:
                    yield current, columns
                current, columns = job_id, [array("q") for _ in range(width)]
            end = _end_of(ids, position)
            for column, values in zip(columns, block[1:], strict=True):
                column.extend(values[position:end])
            position = end
    if current is not None:
        yield current, columns


def _end_of(ids: tuple[int, ...], position: int) -> int:
    """Where the rows of the job at this position end: by doubling steps, and then by halves."""
    job_id, step = ids[position], 1
    while position + step < len(ids) and ids[position + step] == job_id:
        step *= 2
    low, high = position + step // 2, min(position + step, len(ids))
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ids[middle] == job_id else (low, middle)
    return low


def _shifted(column: array[int], shift: int) -> array[int]:
    return array("q", [value + shift for value in column]) if shift else column


def _postgres(micros: int) -> Any:
    return f"'epoch'::timestamptz + {micros} * interval '1 microsecond'"
