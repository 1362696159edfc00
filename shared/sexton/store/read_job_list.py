"""A window over a long list of jobs, for a screen: three statements, or four with the count.

By name the index gives the window. Other orders sort the jobs that pass, and look at no more than the newest failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, case, func, select, text

from sexton.claims import State
from sexton.store import tables
from sexton.store.known_members import member_of
from sexton.store.read_jobs import STRIP_RUNS, job_view, job_window, skipped_ticks
from sexton.store.read_runs import newest_by_job, run_view, select_runs
from sexton.views import JobFilter, JobOrder, JobPage, RunView

_FAILURES_LOOKED_AT = 1_000


def read_job_list(
    connection: Connection,
    now: datetime,
    which: JobFilter,
    order: JobOrder,
    offset: int,
    limit: int,
    total: int | None,
) -> JobPage:
    """Jobs from ``offset`` on; ``total`` of them, counted where it is None."""
    if total is None:
        total = connection.execute(select(func.count()).select_from(job_window(which).subquery())).scalar_one()
    window = _ordered(job_window(which), order).offset(offset).limit(limit)
    rows = connection.execute(window.add_columns(skipped_ticks())).all()
    strips, newest = _newest(connection, [row.job_id for row in rows])
    jobs = []
    for row in rows:
        view = job_view(row, now, (), 1)
        jobs.append(replace(view, last_run=newest.get(row.job_id), strip=strips.get(row.job_id, ())))
    return JobPage(tuple(jobs), total)


def _ordered(query: Select[Any], order: JobOrder) -> Select[Any]:
    jobs = tables.jobs.c
    if order is JobOrder.STATE:
        return query.order_by(
            case((jobs.quarantined_at.is_not(None), 0), (jobs.paused_at.is_not(None), 1), else_=2), jobs.name_key
        )
    if order is JobOrder.FAILED:
        runs = tables.runs.c
        newest = (
            select(runs.job_id, runs.finished_at)
            .where(text("outcome IN (4, 5, 6)"))
            .order_by(runs.finished_at.desc(), runs.token.desc())
            .limit(_FAILURES_LOOKED_AT)
            .subquery("failures")
        )
        failed = (
            select(newest.c.job_id, func.max(newest.c.finished_at).label("at"))
            .group_by(newest.c.job_id)
            .subquery("failed")
        )
        return query.outerjoin(failed, failed.c.job_id == jobs.job_id).order_by(
            failed.c.at.is_(None), failed.c.at.desc(), jobs.name_key
        )
    return query.order_by(jobs.name_key)


def _newest(connection: Connection, job_ids: Sequence[int]) -> tuple[dict[int, tuple[State, ...]], dict[int, RunView]]:
    """Outcomes of the newest runs, oldest first, and the newest run of each job."""
    if not job_ids:
        return {}, {}
    of_page = tables.jobs.alias("of_page")
    by_job = newest_by_job(of_page, STRIP_RUNS, has_lateral=connection.dialect.name == "postgresql")
    source = by_job.where(of_page.c.job_id.in_(job_ids)).subquery("newest")
    newest_first = (source.c.job_id, source.c.scheduled_at.desc(), source.c.token.desc())
    outcomes: dict[int, list[State]] = {}
    tokens: dict[int, int] = {}
    for row in connection.execute(select(source.c.job_id, source.c.token, source.c.outcome).order_by(*newest_first)):
        outcomes.setdefault(row.job_id, []).append(member_of(State, row.outcome))
        tokens.setdefault(row.job_id, row.token)
    rows = connection.execute(select_runs().where(tables.runs.c.token.in_(list(tokens.values()))))
    strips = {job_id: tuple(reversed(of_job)) for job_id, of_job in outcomes.items()}
    return strips, {row.job_id: run_view(row) for row in rows}
