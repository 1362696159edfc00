"""Jobs, batches and rows for tests that write as a leader does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Engine, NullPool, create_engine, select

from sexton.claims import Origin
from sexton.decisions import CursorMove, NewClaim, TickBatch
from sexton.job_rules import FiringRules
from sexton.jobs import JobDefinition
from sexton.store import tables
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from sexton.targets import CommandTarget
from sexton.terms import ElectedBy

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def definition(name: str, every: timedelta = SECOND, **keys: Any) -> JobDefinition:
    """A job that fires every so often."""
    part = {"every_ms": every // timedelta(milliseconds=1), "anchor": "1970-01-01T00:00:00Z"}
    return JobDefinition(name, (part,), CommandTarget(("true",)), **keys)


def lead(store: Store, node: str = "n1") -> int:
    """Take the term, whatever it is; the new one."""
    taken = store.terms.take(store.terms.cluster().term, node, ElectedBy.DATABASE)
    assert taken is not None
    return taken.term


def create(store: Store, *definitions: JobDefinition) -> list[JobRow]:
    """The jobs as the leader reads them, in the order given."""
    done = store.edits.edit([JobChange(ChangeKind.CREATE, definition=one) for one in definitions], "test")
    by_id = {job.job_id: job for job in store.ticks.read_jobs([one.job_id for one in done])}
    return [by_id[one.job_id] for one in done]


def read(store: Store, job_id: int) -> JobRow:
    (job,) = store.ticks.read_jobs([job_id])
    return job


def move(job: JobRow, upto: datetime) -> CursorMove:
    return CursorMove(job.job_id, job.seq, job.at, upto)


def claim(job: JobRow, at: datetime, **values: Any) -> NewClaim:
    """A live claim of the job's newest revision, available at its tick."""
    known: dict[str, Any] = {
        "job_id": job.job_id,
        "scheduled_at": at,
        "revision": job.revisions[-1].revision,
        "origin": Origin.SCHEDULE,
        "available_at": at,
        "start_by": at + MINUTE,
        "jitter": timedelta(0),
        "firing": FiringRules(),
    }
    return NewClaim(**(known | values))


def ticks_after(job: JobRow, count: int, step: timedelta = SECOND) -> list[datetime]:
    """The next instants after the cursor, on whole seconds of the test's own grid."""
    first = job.at.replace(microsecond=0) + SECOND
    return [first + number * step for number in range(count)]


def batch(store: Store, term: int, jobs: Sequence[tuple[JobRow, Sequence[datetime]]], **values: Any) -> TickBatch:
    """The ticks as live claims, each job's cursor moved to its last."""
    known: dict[str, Any] = {
        "term": term,
        "planned_at": store.now(),
        "moves": tuple(move(job, ticks[-1]) for job, ticks in jobs),
        "claims": tuple(claim(job, at) for job, ticks in jobs for at in ticks),
    }
    return TickBatch(**(known | values))


def rows(url: str, table: str, **where: Any) -> list[Any]:
    """The rows of a table as they stand, in the order of its primary key; instants are UTC datetimes."""
    found = tables.metadata.tables[table]
    with _engine(url).connect() as connection:
        query = select(found).order_by(*found.primary_key.columns)
        for column, value in where.items():
            query = query.where(found.c[column] == value)
        return list(connection.execute(query).all())


def set_columns(url: str, table: str, where: dict[str, Any], **values: Any) -> int:
    """Change rows behind the store's back; how many."""
    found = tables.metadata.tables[table]
    with _engine(url).begin() as connection:
        statement = found.update().values(**values)
        for column, value in where.items():
            statement = statement.where(found.c[column] == value)
        return connection.execute(statement).rowcount


@lru_cache(maxsize=8)
def _engine(url: str) -> Engine:
    """Keeps no connection, so nothing of it is left in the database; what it has learnt of that is asked once."""
    return create_engine(url, poolclass=NullPool)
