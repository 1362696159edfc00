"""What is left in the ledger of a job whose own row is lost: nobody decides or lists it, and the audit names it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Connection, func, select

from sexton.audit_findings import Difference, Verdict
from sexton.store.tables import claims, cursors, jobs, revisions, skips

_TOLD = 100
_NAMES = ((claims, "claim"), (skips, "skip record"), (revisions, "revision"), (cursors, "cursor"))
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def orphans(connection: Connection) -> Iterator[Difference]:
    """One finding for each such job, by number, at the oldest of its ticks that are left; the first hundred of them."""
    lost: set[int] = set()
    for table, _ in _NAMES:
        lost.update(_without_job(connection, table.c.job_id))
    for job_id in sorted(lost)[:_TOLD]:
        left = {what: _rows(connection, table.c.job_id, job_id) for table, what in _NAMES}
        told = ", ".join(f"{number} {what}{'' if number == 1 else 's'}" for what, number in left.items() if number)
        oldest = connection.execute(select(func.min(claims.c.scheduled_at)).where(claims.c.job_id == job_id)).scalar()
        detail = f"the row of the job with this number is lost; left are {told}"
        yield Difference(f"#{job_id}", Verdict.BROKEN, oldest or _BEGINNING, sum(left.values()), detail)


def _without_job(connection: Connection, column: Column[Any]) -> list[int]:
    """The numbers in a column of an index, found by a step of the index each, that are no job's."""
    numbers = select(func.min(column).label("job_id")).cte("numbers", recursive=True)
    following = select(func.min(column)).where(column > numbers.c.job_id).scalar_subquery()
    numbers = numbers.union_all(select(following).where(numbers.c.job_id.is_not(None)))
    is_job = select(jobs.c.job_id).where(jobs.c.job_id == numbers.c.job_id).exists()
    found = connection.execute(
        select(numbers.c.job_id).where(numbers.c.job_id.is_not(None), ~is_job).order_by(numbers.c.job_id).limit(_TOLD)
    )
    return list(found.scalars())


def _rows(connection: Connection, column: Column[Any], job_id: int) -> int:
    return int(connection.execute(select(func.count()).where(column == job_id)).scalar_one())
