"""Jobs as lists and pages show them: by name, with what they fire next and how their newest runs ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Label, Row, Select, Text, cast, func, select

from sexton.claims import State
from sexton.cluster_views import Undecided
from sexton.errors import NotFound, SextonError
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.schedule_words import schedule_summary
from sexton.schedules import Schedule
from sexton.store import tables
from sexton.store.job_conditions import definition_conditions, is_named
from sexton.store.known_members import member_of
from sexton.store.read_runs import has_letters, newest_runs
from sexton.views import EarlierJob, JobFilter, JobPage, JobView, PauseView, RevisionView, RunView

STRIP_RUNS = 30
_NO_RUNS: tuple[RunView, ...] = ()


@lru_cache(maxsize=4096)
def _schedule(schedule_text: str) -> Schedule | None:
    try:
        return schedule_from_spec(json.loads(schedule_text))
    except SextonError:
        return None  # its job is quarantined, which says why


def upcoming(schedule_text: str, after: datetime, count: int) -> tuple[datetime, ...]:
    """The next `count` ticks strictly after `after`; fewer where the schedule ends."""
    schedule = _schedule(schedule_text)
    if schedule is None:
        return ()
    ticks: list[datetime] = []
    tick = schedule.next_after(after)
    while tick is not None and len(ticks) < count:
        ticks.append(tick)
        tick = schedule.next_after(tick) if len(ticks) < count else None
    return tuple(ticks)


def schedule_words(parts: Sequence[Mapping[str, Any]]) -> str:
    """A schedule on one short line: `0 2 * * *`, `every 15m`, `at 3 instants`."""
    return " + ".join(_part_words(part) for part in parts)


def _part_words(part: Mapping[str, Any]) -> str:
    if "cron" in part or "every_ms" in part or "calendar" in part:
        return schedule_summary([part])
    instants = part["at"]
    return f"at {instants[0]}" if len(instants) == 1 else f"at {len(instants)} instants"


def _jobs() -> Select[Any]:
    jobs, revisions = tables.jobs, tables.revisions
    return select(
        jobs, revisions.c.definition, revisions.c.schedule.label("schedule_text"), revisions.c.in_force_since
    ).join(revisions, (revisions.c.job_id == jobs.c.job_id) & (revisions.c.revision == jobs.c.revision))


def skipped_ticks() -> Label[Any]:
    """For a query that reads ``jobs``: the ticks that are named not to run, those of the past too, as one text."""
    jobs, skips = tables.jobs, tables.skips
    named = select(func.aggregate_strings(cast(skips.c.upto, Text), ","))
    return (
        named.where(skips.c.job_id == jobs.c.job_id, skips.c.named_by.is_not(None)).scalar_subquery().label("skipped")
    )


def _skipped_after(row: Row[Any], now: datetime) -> tuple[datetime, ...]:
    """Those after ``now``; a row read without them has none."""
    texts = (getattr(row, "skipped", None) or "").split(",")
    ticks = (
        tables.from_micros(int(one)) if one.isdecimal() else datetime.fromisoformat(one).astimezone(UTC)
        for one in texts
        if one
    )
    return tuple(sorted(tick for tick in ticks if tick > now))


def _filtered(query: Select[Any], which: JobFilter) -> Select[Any]:
    jobs = tables.jobs.c
    if not which.include_retired:
        query = query.where(jobs.retired_at.is_(None))
    if which.text:
        query = query.where(jobs.name_key.contains(which.text.lower(), autoescape=True))
    if which.letters:
        query = query.where(has_letters(which.letters))
    if which.state == "paused":
        query = query.where(jobs.paused_at.is_not(None))
    elif which.state == "quarantined":
        query = query.where(jobs.quarantined_at.is_not(None))
    elif which.state == "active":
        query = query.where(jobs.paused_at.is_(None), jobs.quarantined_at.is_(None))
    return query.where(*definition_conditions(which.queue, which.owner, which.tag))


def job_state(row: Row[Any]) -> tuple[str, str]:
    """State and its reason."""
    if row.retired_at is not None:
        return "retired", ""
    if row.quarantined_at is not None:
        return "quarantined", row.quarantine_reason or ""
    if row.paused_at is not None:
        return "paused", ": ".join(part for part in (row.paused_by, row.pause_reason) if part)
    return "active", ""


def job_view(row: Row[Any], now: datetime, runs: tuple[RunView, ...], ticks: int) -> JobView:
    definition = json.loads(row.definition)
    state, detail = job_state(row)
    skipped = _skipped_after(row, now)
    next_ticks = upcoming(row.schedule_text, now, ticks + len(skipped)) if state == "active" and ticks else ()
    return JobView(
        job_id=row.job_id,
        name=row.name,
        revision=row.revision,
        state=state,
        detail=detail,
        schedule=schedule_words(definition["schedule"]),
        timezone=definition["timezone"],
        queue=definition["queue"],
        owner=definition["owner"],
        tags=tuple(definition["tags"]),
        description=definition["description"],
        next_ticks=tuple(tick for tick in next_ticks if tick not in skipped)[:ticks],
        last_run=runs[0] if runs else None,
        strip=tuple(member_of(State, run.outcome) for run in reversed(runs)),
        skipped=skipped,
    )


def read_names(connection: Connection, text: str, limit: int) -> tuple[str, ...]:
    """Names of jobs, not retired, that hold the letters of `text` in their order, case aside: the shortest first."""
    jobs = tables.jobs.c
    found = select(jobs.name).where(jobs.retired_at.is_(None), has_letters(text))
    ordered = found.order_by(func.length(jobs.name), jobs.name_key).limit(limit)
    return tuple(connection.execute(ordered).scalars())


def job_window(which: JobFilter) -> Select[Any]:
    """The jobs that pass, as ``job_view`` takes them; in no order."""
    return _filtered(_jobs(), which)


def read_job_page(connection: Connection, now: datetime, which: JobFilter, offset: int, limit: int) -> JobPage:
    """Jobs by name from `offset` on, and how many there are."""
    jobs = tables.jobs
    has_join = bool(which.queue or which.owner or which.tag)
    total_from = _jobs().with_only_columns(jobs.c.job_id) if has_join else select(jobs.c.job_id)
    total = connection.execute(select(func.count()).select_from(_filtered(total_from, which).subquery())).scalar_one()
    # Names are unique but among retired jobs; ordered by the name alone, the index gives the page.
    order = (jobs.c.name_key, jobs.c.job_id) if which.include_retired else (jobs.c.name_key,)
    page = _filtered(total_from, which).order_by(*order).offset(offset).limit(limit)
    job_ids = list(connection.execute(page).scalars())
    query = (
        _jobs().add_columns(skipped_ticks()).where(jobs.c.job_id.in_(job_ids)).order_by(jobs.c.name_key, jobs.c.job_id)
    )
    rows = connection.execute(query).all()
    runs = newest_runs(connection, [row.job_id for row in rows], STRIP_RUNS)
    return JobPage(tuple(job_view(row, now, runs.get(row.job_id, _NO_RUNS), 3) for row in rows), total)


def _renamed_to(connection: Connection, name: str) -> str | None:
    """The name that a job has now which had this one; a job that is not retired goes first."""
    jobs, table = tables.jobs, tables.revisions
    had = f'"name":{json.dumps(name.lower(), ensure_ascii=False)}'
    now: str | None = connection.execute(
        select(jobs.c.name)
        .join(table, table.c.job_id == jobs.c.job_id)
        .where(func.lower(table.c.definition).contains(had, autoescape=True))
        .order_by(jobs.c.retired_at.is_not(None), table.c.applied_at.desc())
        .limit(1)
    ).scalar()
    return now


def read_job_row(connection: Connection, name: str) -> Row[Any]:
    """The job of this name (case does not count), a retired one only where no other has the name; or ``NAME#ID``.

    Its ``cursor`` is with it, and what is ``skipped``.
    """
    jobs, cursors = tables.jobs, tables.cursors
    cursor = select(cursors.c.at).where(cursors.c.job_id == jobs.c.job_id).scalar_subquery().label("cursor")
    found = _jobs().add_columns(cursor, skipped_ticks()).where(is_named(name))
    row = connection.execute(
        found.order_by(jobs.c.retired_at.is_not(None), jobs.c.retired_at.desc()).limit(1)
    ).one_or_none()
    if row is None:
        if (now := _renamed_to(connection, name)) is not None:
            raise NotFound(f"no job is named {name!r} any more", hint=f"it was renamed to {now}, and has it all")
        near = connection.execute(
            select(jobs.c.name)
            .where(jobs.c.retired_at.is_(None), jobs.c.name_key.contains(name.lower()[:3], autoescape=True))
            .order_by(jobs.c.name_key)
            .limit(3)
        ).scalars()
        names = ", ".join(near)
        raise NotFound(f"there is no job {name!r}", hint=f"near it: {names}" if names else "`sexton jobs` lists them")
    return row


def read_earlier_job(connection: Connection, job_id: int) -> EarlierJob | None:
    """The newest job that had this one's name before, and was retired."""
    jobs = tables.jobs
    of_name = select(jobs.c.name_key).where(jobs.c.job_id == job_id).scalar_subquery()
    query = select(jobs.c.job_id, jobs.c.name, jobs.c.retired_at).where(
        jobs.c.name_key == of_name, jobs.c.job_id < job_id, jobs.c.retired_at.is_not(None)
    )
    row = connection.execute(query.order_by(jobs.c.job_id.desc()).limit(1)).one_or_none()
    return None if row is None else EarlierJob(f"{row.name}#{row.job_id}", row.retired_at)


def read_job(connection: Connection, now: datetime, name: str, ticks: int) -> tuple[JobView, JobDefinition]:
    """One job with its next `ticks` ticks."""
    row = read_job_row(connection, name)
    runs = newest_runs(connection, [row.job_id], STRIP_RUNS)
    definition = JobDefinition.from_text(row.definition)
    return job_view(row, now, runs.get(row.job_id, _NO_RUNS), ticks), definition


def read_cursor(connection: Connection, job_id: int) -> datetime | None:
    table = tables.cursors
    at: datetime | None = connection.execute(select(table.c.at).where(table.c.job_id == job_id)).scalar_one_or_none()
    return at


def read_schedule_text(connection: Connection, job_id: int, revision: int) -> str:
    table = tables.revisions
    found: str = connection.execute(
        select(table.c.schedule).where(table.c.job_id == job_id, table.c.revision == revision)
    ).scalar_one()
    return found


def read_revisions(connection: Connection, job_id: int, limit: int) -> tuple[RevisionView, ...]:
    """Newest first."""
    table = tables.revisions
    rows = connection.execute(
        select(table).where(table.c.job_id == job_id).order_by(table.c.revision.desc()).limit(limit)
    )
    return tuple(
        RevisionView(r.revision, r.in_force_since, r.in_force_until, r.applied_at, r.applied_by, r.definition)
        for r in rows
    )


def read_pauses(connection: Connection, job_id: int, limit: int) -> tuple[PauseView, ...]:
    """Newest first."""
    table = tables.pauses
    rows = connection.execute(select(table).where(table.c.job_id == job_id).order_by(table.c.since.desc()).limit(limit))
    return tuple(PauseView(row.since, row.until, row.who, row.why) for row in rows)


def read_undecided(connection: Connection, now: datetime, limit: int) -> Undecided:
    """Active jobs with a tick due and undecided, among the `limit` whose cursor lies furthest back.

    It computes next ticks: for a command, not for every second.
    """
    jobs, cursors = tables.jobs, tables.cursors
    rows = connection.execute(
        _jobs()
        .join(cursors, cursors.c.job_id == jobs.c.job_id)
        .with_only_columns(jobs.c.name, cursors.c.at, tables.revisions.c.schedule, tables.revisions.c.in_force_since)
        .where(jobs.c.retired_at.is_(None), jobs.c.paused_at.is_(None), jobs.c.quarantined_at.is_(None))
        .where(cursors.c.at < now)
        .order_by(cursors.c.at)
        .limit(limit)
    ).all()
    overdue: list[tuple[datetime, str]] = []
    for row in rows:
        tick = next(islice(upcoming(row.schedule, max(row.at, row.in_force_since), 1), 1), None)
        if tick is not None and tick <= now:
            overdue.append((tick, row.name))
    oldest, name = min(overdue, default=(None, None))
    return Undecided(jobs=len(overdue), oldest=oldest, oldest_job=name, looked_at=len(rows))
