"""A job opened, read for a screen once a second: each part in three statements at most, whatever the tables hold.

Runs and claims are read by job and tick, an index of each, so that a job of every second costs what a yearly one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal, select, text, union_all

from sexton.job_page_views import DayOfRuns, OpenedJob, OpenedRuns, OpenedTicks
from sexton.jobs import JobDefinition
from sexton.store import tables
from sexton.store.read_jobs import STRIP_RUNS, job_view, read_job_row, read_pauses, upcoming
from sexton.store.read_runs import claim_view, read_job_skips, run_view, select_claims, select_runs
from sexton.views import ClaimView

RUNS_A_DAY = 300
"""How many runs of a day are looked at."""

_PAUSES = 20
_RUNNING = 20
_MORE_TRIES = 100


def read_opened_job(connection: Connection, now: datetime, name: str, ticks: int, runs: int) -> OpenedJob:
    """The job with its next `ticks` ticks and newest `runs` runs. Raises ``NotFound``."""
    row = read_job_row(connection, name)
    table = tables.runs
    newest = table.select().where(table.c.job_id == row.job_id).order_by(table.c.scheduled_at.desc()).limit(runs)
    source = newest.subquery("newest")
    found = connection.execute(select_runs(source).order_by(source.c.scheduled_at.desc(), source.c.token.desc()))
    views = tuple(run_view(one) for one in found)
    return OpenedJob(
        job=job_view(row, now, views[:STRIP_RUNS], ticks),
        definition=JobDefinition.from_text(row.definition),
        hash_seed=row.hash_seed,
        cursor=row.cursor,
        runs=views,
        pauses=read_pauses(connection, row.job_id, _PAUSES),
    )


def read_opened_ticks(
    connection: Connection, now: datetime, name: str, before: datetime | None, limit: int, ahead: int, *, around: bool
) -> OpenedTicks:
    """Its ticks before `before`; None: those up to `now`, and `ahead` of those to come. Raises ``NotFound``.

    ``around``: with the skip record that goes beyond `before`, too.
    """
    row = read_job_row(connection, name)
    view = job_view(row, now, (), 0)
    claims = _claims_around(connection, row.job_id, now, before, limit + 1, 0 if before is not None else ahead)
    due = tuple(claim for claim in claims if claim.scheduled_at <= now)
    found = read_job_skips(connection, row.job_id, before, limit + 1, around=around)
    skips = tuple(skip for skip in found if before or skip.upto <= now)
    instants = sorted([c.scheduled_at for c in due] + [s.upto for s in skips], reverse=True)
    older = instants[limit - 1] if len(instants) > limit else None
    if older is not None:
        due = tuple(claim for claim in due if claim.scheduled_at >= older)
        skips = tuple(skip for skip in skips if skip.upto >= older)
    to_come: tuple[datetime, ...] = ()
    if view.state == "active" and before is None:
        to_come = upcoming(row.schedule_text, max(row.cursor or now, now), ahead)
    return OpenedTicks(
        job=view,
        definition=JobDefinition.from_text(row.definition),
        hash_seed=row.hash_seed,
        claims=due,
        skips=skips,
        ahead=tuple(reversed([claim for claim in claims if claim.scheduled_at > now])),
        upcoming=to_come,
        older=older,
    )


def _claims_around(
    connection: Connection, job_id: int, now: datetime, before: datetime | None, due: int, ahead: int
) -> list[ClaimView]:
    """The newest `due` of the job's claims up to `now`, and the nearest `ahead` after it; the latest tick first."""
    table = tables.claims
    of_job = select(table).where(table.c.job_id == job_id)
    past = of_job.where(table.c.scheduled_at <= now)
    if before is not None:
        past = past.where(table.c.scheduled_at < before)
    parts: list[Any] = [select(past.order_by(table.c.scheduled_at.desc()).limit(due).subquery("due"))]
    if ahead:
        to_come = of_job.where(table.c.scheduled_at > now).order_by(table.c.scheduled_at).limit(ahead)
        parts.append(select(to_come.subquery("ahead")))
    source = union_all(*parts).subquery("around")
    rows = connection.execute(select_claims(source).order_by(source.c.scheduled_at.desc()))
    return [claim_view(one) for one in rows]


def read_opened_runs(connection: Connection, name: str, before: datetime | None, limit: int) -> OpenedRuns:
    """Its runs whose tick is before `before`; None: the newest, and what runs now. Raises ``NotFound``.

    A tick's runs stay together, so a page may be longer by the tries of its last tick.
    """
    row = read_job_row(connection, name)
    table = tables.runs
    window = select(table.c.scheduled_at).where(table.c.job_id == row.job_id)
    if before is not None:
        window = window.where(table.c.scheduled_at < before)
    window = window.order_by(table.c.scheduled_at.desc())
    oldest = window.offset(limit - 1).limit(1).scalar_subquery()
    page = select(table).where(table.c.job_id == row.job_id)
    page = page.where(table.c.scheduled_at >= func.coalesce(oldest, literal(_BEGINNING, tables.Instant())))
    if before is not None:
        page = page.where(table.c.scheduled_at < before)
    # The limit says how few they are: without it the whole table may be read for a job that fires often.
    source = page.order_by(table.c.scheduled_at.desc()).limit(limit + _MORE_TRIES).subquery("page")
    found = connection.execute(select_runs(source).order_by(source.c.scheduled_at.desc(), source.c.token.desc()))
    runs = tuple(run_view(one) for one in found)
    running: list[ClaimView] = []
    if before is None:
        claims = tables.claims
        of_job = select_claims().where(text("state = 1"), claims.c.job_id == row.job_id)
        running = [claim_view(one) for one in connection.execute(of_job.order_by(claims.c.token).limit(_RUNNING))]
    return OpenedRuns(tuple(reversed(running)), runs, runs[-1].scheduled_at if len(runs) >= limit else None)


_BEGINNING = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


def read_days_of_runs(connection: Connection, name: str, bounds: Sequence[datetime]) -> tuple[DayOfRuns, ...]:
    """The runs of the ticks between each two neighbours of `bounds`, the first included. Raises ``NotFound``.

    Each day is a range of the index, of which the newest ``RUNS_A_DAY`` are looked at.
    """
    row = read_job_row(connection, name)
    days = ", ".join(f"({number}, :at_{number}, :at_{number + 1})" for number in range(len(bounds) - 1))
    if not days:
        return ()
    instants = [bindparam(f"at_{number}", at, tables.Instant()) for number, at in enumerate(bounds)]
    query = text(_DAYS.format(days=days)).bindparams(*instants, job_id=row.job_id, most=RUNS_A_DAY + 1)
    counted = {number: (runs, failed) for number, runs, failed in connection.execute(query)}
    return tuple(
        DayOfRuns(start, min(counted[number][0], RUNS_A_DAY), counted[number][1], counted[number][0] <= RUNS_A_DAY)
        for number, start in enumerate(bounds[:-1])
    )


_OF_DAY = """
    SELECT outcome FROM runs
    WHERE job_id = :job_id AND scheduled_at >= day.column2 AND scheduled_at < day.column3
    ORDER BY scheduled_at DESC LIMIT :most
"""
_DAYS = f"""
    SELECT day.column1,
           (SELECT count(*) FROM ({_OF_DAY}) AS newest),
           (SELECT count(*) FROM ({_OF_DAY}) AS newest WHERE outcome IN (4, 5, 6))
    FROM (VALUES {{days}}) AS day
"""  # noqa: S608 - made of this module's own texts
