"""Claims and runs: pages by keyset, never by offset or a count of everything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal, select, text, true, tuple_

from sexton.claims import Origin, State
from sexton.decisions import SkipReason
from sexton.output_views import LiveOutput
from sexton.store import tables
from sexton.store.job_conditions import ids_of_jobs, is_named
from sexton.store.known_members import member_of
from sexton.views import ClaimView, RunFilter, RunKey, RunOutput, RunPage, RunView, SkipView

SEARCHED_RUNS = 10_000
"""How many runs a page with a filter that no index serves looks at."""

SEARCHED_CLAIMS = 1_000

_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})
_MILLISECOND = timedelta(milliseconds=1)


def select_runs(source: Any = tables.runs) -> Select[Any]:
    return (
        select(source, tables.jobs.c.name.label("job"), tables.workers.c.name.label("worker"))
        .select_from(source)
        .join(tables.jobs, tables.jobs.c.job_id == source.c.job_id)
        .outerjoin(tables.workers, tables.workers.c.worker_id == source.c.worker_id)
    )


def run_view(row: Row[Any]) -> RunView:
    return RunView(
        token=row.token,
        job_id=row.job_id,
        job=row.job,
        scheduled_at=row.scheduled_at,
        attempt=row.attempt,
        revision=row.revision,
        worker=row.worker or f"worker {row.worker_id}",
        outcome=member_of(State, row.outcome),
        exit_code=row.exit_code,
        error=row.error or "",
        started_at=row.started_at,
        finished_at=row.finished_at,
        lateness=None if row.lateness_ms is None else row.lateness_ms * _MILLISECOND,
        stdout_bytes=row.stdout_bytes,
        stderr_bytes=row.stderr_bytes,
        output_at=row.output_at or "",
    )


def read_runs(
    connection: Connection, which: RunFilter, before: RunKey | None, limit: int, *, oldest: bool = False
) -> RunPage:
    """Runs older than `before` (None: the newest), newest first; or the ``oldest`` there are, newest first, too."""
    table = tables.runs
    window = select(table)
    is_searched = False
    if before is not None:
        window = window.where(tuple_(table.c.finished_at, table.c.token) < _key(before))
    if which.states and not which.job:
        if which.states <= _FAILED:
            window = window.where(text("outcome IN (4, 5, 6)"))  # lets runs_failed serve it
        if which.states != _FAILED:
            is_searched = True
    order: tuple[Any, ...] = (table.c.finished_at, table.c.token)
    if which.job:
        job_ids = select(tables.jobs.c.job_id).where(is_named(which.job))
        ids = list(connection.execute(job_ids).scalars())
        window = window.where(table.c.job_id.in_(ids))
        # By its ticks, as runs_claim has them: by their ends, all runs of all jobs would be looked through.
        order = (table.c.scheduled_at,)
        if before is not None:
            window = window.where(table.c.scheduled_at <= before.finished_at)
        is_searched = True
    is_searched = is_searched or bool(which.queue or which.owner or which.tag or which.letters)
    size = SEARCHED_RUNS if is_searched else limit
    source = window.order_by(*(order if oldest else [by.desc() for by in order])).limit(size).subquery("found")
    query = select_runs(source)
    if which.states:
        query = query.where(source.c.outcome.in_([int(state) for state in which.states]))
    if which.queue:
        # A look by key for each run: joined, PostgreSQL reads all claims of the queue, which may be all there are.
        claims = tables.claims.c
        of_run = (claims.job_id == source.c.job_id) & (claims.scheduled_at == source.c.scheduled_at)
        query = query.where(select(claims.queue).where(of_run).scalar_subquery() == which.queue)
    if which.owner or which.tag:
        query = query.where(source.c.job_id.in_(ids_of_jobs(which.owner, which.tag)))
    if which.letters:
        query = query.where(has_letters(which.letters))
    by_end = (source.c.finished_at, source.c.token)
    rows = connection.execute(query.order_by(*(by_end if oldest else [by.desc() for by in by_end])).limit(limit))
    runs = tuple(run_view(row) for row in rows)
    if oldest:
        return RunPage(runs[::-1], None)
    if len(runs) == limit:
        return RunPage(runs, RunKey(runs[-1].finished_at, runs[-1].token))
    if not is_searched:
        return RunPage(runs, None)
    return RunPage(runs, _end_of_window(connection, source, size))


def has_letters(text: str) -> ColumnElement[bool]:
    """Whether a job's name holds these letters in their order, case and spaces aside."""
    letters = "%".join(f"/{letter}" if letter in "%_/" else letter for letter in text.lower() if not letter.isspace())
    return tables.jobs.c.name_key.like(f"%{letters}%", escape="/")


def _key(key: RunKey) -> Any:
    return tuple_(literal(key.finished_at, tables.Instant()), literal(key.token, tables.runs.c.token.type))


def read_key_after(connection: Connection, at: datetime, count: int) -> RunKey | None:
    """The run that is the `count`-th of those that ended after `at`, or the last of them; None where there is none."""
    table = tables.runs
    newer = select(table.c.finished_at, table.c.token).where(table.c.finished_at > at)
    found = newer.order_by(table.c.finished_at, table.c.token).limit(count).subquery("newer")
    last = select(found).order_by(found.c.finished_at.desc(), found.c.token.desc()).limit(1)
    row = connection.execute(last).one_or_none()
    return None if row is None else RunKey(row.finished_at, row.token)


def _end_of_window(connection: Connection, source: Any, size: int) -> RunKey | None:
    """Where a search that found too little stopped; None: it saw everything."""
    if connection.execute(select(func.count()).select_from(source)).scalar_one() < size:
        return None
    last = select(source.c.finished_at, source.c.token).order_by(source.c.finished_at, source.c.token).limit(1)
    row = connection.execute(last).one()
    return RunKey(row.finished_at, row.token)


def newest_runs(connection: Connection, job_ids: Sequence[int], count: int) -> dict[int, tuple[RunView, ...]]:
    """The `count` newest runs by tick of each job, newest first."""
    if not job_ids:
        return {}
    of_page = tables.jobs.alias("of_page")
    by_job = newest_by_job(of_page, count, has_lateral=connection.dialect.name == "postgresql")
    source: Any = by_job.where(of_page.c.job_id.in_(job_ids)).subquery("newest")
    rows = connection.execute(
        select_runs(source).order_by(source.c.job_id, source.c.scheduled_at.desc(), source.c.token.desc())
    )
    found: dict[int, list[RunView]] = {}
    for row in rows:
        found.setdefault(row.job_id, []).append(run_view(row))
    return {job_id: tuple(of_job) for job_id, of_job in found.items()}


def newest_by_job(of_page: Any, count: int, *, has_lateral: bool) -> Select[Any]:
    """One range of the index per job: asked for all jobs at once, PostgreSQL reads the whole table."""
    table = tables.runs
    one = table if has_lateral else table.alias("one")
    of_job = one.c.job_id == of_page.c.job_id
    if has_lateral:
        newest = select(one).where(of_job).order_by(one.c.scheduled_at.desc()).limit(count).lateral("of_job")
        return select(newest).select_from(of_page.join(newest, true()))
    tokens = select(one.c.token).where(of_job).order_by(one.c.scheduled_at.desc()).limit(count).correlate(of_page)
    return select(table).select_from(of_page.join(table, table.c.token.in_(tokens)))


def read_claim_runs(connection: Connection, job_id: int, scheduled_at: datetime) -> tuple[RunView, ...]:
    """The runs of one claim, oldest first."""
    table = tables.runs
    rows = connection.execute(
        select_runs().where(table.c.job_id == job_id, table.c.scheduled_at == scheduled_at).order_by(table.c.token)
    )
    return tuple(run_view(row) for row in rows)


def read_output(connection: Connection, token: int) -> RunOutput | None:
    """A run with the kept tails of its output; None: no such run (yet)."""
    row = connection.execute(select_runs().where(tables.runs.c.token == token)).one_or_none()
    if row is None:
        return None
    table = tables.outputs
    kept = connection.execute(select(table).where(table.c.token == token)).one_or_none()
    if kept is None:
        return RunOutput(run_view(row), None, None)
    return RunOutput(run_view(row), bytes(kept.stdout), bytes(kept.stderr))


def read_live_output(connection: Connection, token: int) -> LiveOutput | None:
    table = tables.live_outputs
    row = connection.execute(select(table).where(table.c.token == token)).one_or_none()
    if row is None:
        return None
    return LiveOutput(
        token, bytes(row.stdout), bytes(row.stderr), row.stdout_bytes, row.stderr_bytes, written_at=row.written_at
    )


# --- claims ---------------------------------------------------------------------------------------


def select_claims(source: Any = tables.claims) -> Select[Any]:
    return (
        select(source, tables.jobs.c.name.label("job"), tables.workers.c.name.label("worker"))
        .select_from(source)
        .join(tables.jobs, tables.jobs.c.job_id == source.c.job_id)
        .outerjoin(tables.workers, tables.workers.c.worker_id == source.c.worker_id)
    )


def claim_view(row: Row[Any]) -> ClaimView:
    return ClaimView(
        job_id=row.job_id,
        job=row.job,
        scheduled_at=row.scheduled_at,
        revision=row.revision,
        origin=member_of(Origin, row.origin),
        state=member_of(State, row.state),
        queue=row.queue,
        priority=row.priority,
        available_at=row.available_at,
        start_by=row.start_by,
        is_blocked=row.blocked,
        jitter=row.jitter_ms * _MILLISECOND,
        attempt=row.attempt,
        retries=row.retries,
        token=row.token,
        worker=row.worker or ("" if row.worker_id is None else f"worker {row.worker_id}"),
        granted_at=row.granted_at,
        lease_expires_at=row.lease_expires_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        reason=row.reason or "",
        term=row.term,
        written_at=row.written_at,
    )


def read_running(connection: Connection, limit: int, which: RunFilter) -> tuple[ClaimView, ...]:
    """Claims that run now, longest first among the `limit` whose lease ends first."""
    table = tables.claims
    query = select_claims().where(text("state = 1")).order_by(table.c.lease_expires_at)
    if which.job:
        named = select(tables.jobs.c.job_id).where(is_named(which.job))
        query = query.where(table.c.job_id.in_(named))
    if which.letters:
        query = query.where(has_letters(which.letters))
    if which.queue:
        query = query.where(table.c.queue == which.queue)
    if which.owner or which.tag:
        query = query.where(table.c.job_id.in_(ids_of_jobs(which.owner, which.tag)))
    rows = connection.execute(query.limit(limit))
    claims = [claim_view(row) for row in rows]
    return tuple(sorted(claims, key=lambda claim: (claim.granted_at or claim.scheduled_at, claim.job)))


def claims_by(connection: Connection, tokens: Sequence[int]) -> tuple[ClaimView, ...]:
    """The claims that run under these tokens, oldest tick first."""
    table = tables.claims
    if not tokens:
        return ()
    rows = connection.execute(
        select_claims().where(text("state = 1"), table.c.token.in_(list(tokens))).order_by(table.c.scheduled_at)
    )
    return tuple(claim_view(row) for row in rows)


def read_running_claim(connection: Connection, token: int) -> ClaimView | None:
    """The claim that runs under this token; the few that run are read by an index of their own."""
    row = connection.execute(select_claims().where(text("state = 1"), tables.claims.c.token == token)).one_or_none()
    return None if row is None else claim_view(row)


def read_current_claim(connection: Connection, job_id: int) -> ClaimView | None:
    """What runs, newest first; else what waits, oldest first, among the ``SEARCHED_CLAIMS`` newest."""
    table = tables.claims
    of_job = select_claims().where(table.c.job_id == job_id)
    newest = select(table.c.scheduled_at).where(table.c.job_id == job_id).order_by(table.c.scheduled_at.desc())
    first = newest.offset(SEARCHED_CLAIMS).limit(1).scalar_subquery()
    waits = table.c.state.in_((int(State.READY), int(State.PARKED)))
    for query in (
        of_job.where(text("state = 1")).order_by(table.c.scheduled_at.desc()),
        of_job.where(waits, func.coalesce(table.c.scheduled_at > first, literal(True))).order_by(table.c.scheduled_at),
    ):
        row = connection.execute(query.limit(1)).one_or_none()
        if row is not None:
            return claim_view(row)
    return None


def read_claim(connection: Connection, job_id: int, scheduled_at: datetime) -> ClaimView | None:
    table = tables.claims
    row = connection.execute(
        select_claims().where(table.c.job_id == job_id, table.c.scheduled_at == scheduled_at)
    ).one_or_none()
    return None if row is None else claim_view(row)


def read_job_claims(
    connection: Connection, job_id: int, before: datetime | None, limit: int, upto: datetime | None = None
) -> tuple[ClaimView, ...]:
    """A job's claims, newest tick first: those before `before`, and not after `upto`."""
    table = tables.claims
    query = select_claims().where(table.c.job_id == job_id)
    if before is not None:
        query = query.where(table.c.scheduled_at < before)
    if upto is not None:
        query = query.where(table.c.scheduled_at <= upto)
    rows = connection.execute(query.order_by(table.c.scheduled_at.desc()).limit(limit))
    return tuple(claim_view(row) for row in rows)


def read_claims_ahead(connection: Connection, job_id: int, now: datetime, limit: int) -> tuple[ClaimView, ...]:
    """A job's claims whose tick is still to come, nearest first."""
    table = tables.claims
    query = select_claims().where(table.c.job_id == job_id, table.c.scheduled_at > now)
    return tuple(claim_view(row) for row in connection.execute(query.order_by(table.c.scheduled_at).limit(limit)))


def read_job_skips(
    connection: Connection, job_id: int, before: datetime | None, limit: int, *, around: bool = False
) -> tuple[SkipView, ...]:
    """A job's skip records that end before `before`, newest first; with `around` those that begin before it."""
    table = tables.skips
    query = (
        select(table, tables.jobs.c.name.label("job"))
        .join(tables.jobs, tables.jobs.c.job_id == table.c.job_id)
        .where(table.c.job_id == job_id)
    )
    if before is not None:
        query = query.where((table.c.after if around else table.c.upto) < before)
    rows = connection.execute(query.order_by(table.c.after.desc()).limit(limit))
    return tuple(
        SkipView(
            job_id=row.job_id,
            job=row.job,
            after=row.after,
            upto=row.upto,
            count=row._mapping["count"],  # to the type checker `row.count` is the method of a tuple
            reason=member_of(SkipReason, row.reason),
            detail=row.detail,
            revision=row.revision,
            term=row.term,
            decided_at=row.decided_at,
            resolved_at=row.resolved_at,
            resolved_by=row.resolved_by,
        )
        for row in rows
    )
