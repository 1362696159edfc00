"""Proposals read: what waits for an answer, how long it would take, and what was answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, select

from sexton.claims import State
from sexton.decisions import SkipReason
from sexton.hold_views import HoldDetail, HoldView
from sexton.holds import HeldTick, HeldTicks, Pace, ProposalState, runs_at_once
from sexton.job_rules import firing_rules
from sexton.schedule_specs import schedule_from_spec
from sexton.settings import ClusterSettings, settings_from_rows
from sexton.store import tables
from sexton.store.hold_rules import no_proposal
from sexton.store.known_members import member_of
from sexton.store.read_standing import read_durations

_RUNS = 20  # the newest of a job, which tell how long one takes
_MICROSECOND = timedelta(microseconds=1)


def read_holds(
    connection: Connection, now: datetime, job_id: int | None, limit: int, *, answered: bool
) -> tuple[HoldView, ...]:
    """Proposals, of one job or of all: open ones, oldest first; with ``answered`` those too, the newest first."""
    table = tables.proposals.c
    query = _query()
    if job_id is not None:
        query = query.where(table.job_id == job_id)
    if answered:
        query = query.order_by(table.made_at.desc(), table.proposal_id.desc())
    else:
        query = query.where(table.state == ProposalState.OPEN.value).order_by(table.made_at, table.proposal_id)
    rows = connection.execute(query.limit(limit)).all()
    settings, pace = _settings(connection), read_pace(connection, now)
    usual = _usual_runs(connection, now, rows)
    return tuple(_view(row, settings, pace, usual.get(row.job_id)) for row in rows)


def read_hold(connection: Connection, now: datetime, proposal_id: int) -> HoldDetail:
    """One proposal opened. Raises ``NotFound``."""
    row = connection.execute(_query().where(tables.proposals.c.proposal_id == proposal_id)).one_or_none()
    if row is None:
        raise no_proposal(proposal_id)
    settings, pace = _settings(connection), read_pace(connection, now)
    usual = _usual_runs(connection, now, [row])
    view = _view(row, settings, pace, usual.get(row.job_id))
    ticks = _held_ticks(connection, row) if view.state is ProposalState.OPEN else None
    return HoldDetail(view, (row.stored_count, row.upto), ticks, pace)


def read_pace(connection: Connection, now: datetime) -> Pace:
    """The catch-up budget as it stands."""
    next_at = connection.execute(select(tables.budget.c.next_at).where(tables.budget.c.id == 1)).scalar()
    return Pace(now, now if next_at is None else next_at, _settings(connection).catch_up_rate)


def _query() -> Select[Any]:
    """A proposal with its job, its revision, and the skip record of its gap, if it is a gap's."""
    proposal, skip = tables.proposals, tables.skips
    of_gap = and_(
        skip.c.job_id == proposal.c.job_id, skip.c.after == proposal.c.after, skip.c.reason == SkipReason.HELD.value
    )
    of_revision = and_(
        tables.revisions.c.job_id == proposal.c.job_id, tables.revisions.c.revision == proposal.c.revision
    )
    columns = [column for column in proposal.c if column.name != "count"]
    return (
        select(
            *columns,
            proposal.c.count.label("stored_count"),
            tables.jobs.c.name,
            tables.jobs.c.paused_at,
            skip.c.count.label("gap_count"),
            skip.c.upto.label("gap_upto"),
            skip.c.detail.label("gap_detail"),
            tables.revisions.c.schedule,
            tables.revisions.c.firing,
            tables.revisions.c.in_force_since,
            tables.revisions.c.in_force_until,
        )
        .join(tables.jobs, tables.jobs.c.job_id == proposal.c.job_id)
        .join(tables.revisions, of_revision)
        .outerjoin(skip, of_gap)
    )


def _view(row: Row[Any], settings: ClusterSettings, pace: Pace, usual_run: timedelta | None) -> HoldView:
    firing = firing_rules(row.firing)
    is_gap, state = row.gap_count is not None, member_of(ProposalState, row.state)
    is_open = state is ProposalState.OPEN  # once it is answered, its record may be in parts
    count = row.gap_count if is_gap and is_open else row.stored_count
    first = row.after + _MICROSECOND
    if is_gap:
        first = _schedule(row).next_after(max(row.after, row.in_force_since)) or first
    at_once = runs_at_once(firing, settings.catch_up_concurrency)
    return HoldView(
        proposal_id=row.proposal_id,
        job_id=row.job_id,
        job=row.name,
        state=state,
        count=count,
        first=first,
        last=row.gap_upto if is_gap and is_open else row.upto,
        order=firing.missed.order,
        reason=row.reason or (row.gap_detail or "").partition("; ")[0],
        revision=row.revision,
        term=row.term,
        made_at=row.made_at,
        lapses_at=row.lapses_at,
        is_paused=row.paused_at is not None,
        answered_at=row.answered_at,
        answered_by=row.answered_by,
        note=row.note,
        approved=row.approved,
        usual_run=usual_run,
        drain=pace.drain(count, at_once, usual_run) if is_open else None,
    )


def _held_ticks(connection: Connection, row: Row[Any]) -> HeldTicks:
    firing = firing_rules(row.firing)
    if row.gap_count is not None:
        after, upto = max(row.after, row.in_force_since), row.gap_upto
        if row.in_force_until is not None:
            upto = min(upto, row.in_force_until)
        return HeldTicks(firing, row.gap_count, after, upto, schedule=_schedule(row))
    claim = tables.claims.c
    found = connection.execute(
        select(claim.scheduled_at, claim.jitter_ms)
        .where(claim.job_id == row.job_id, claim.state == int(State.HELD))
        .order_by(claim.scheduled_at)
    )
    held = tuple(HeldTick(one.scheduled_at, timedelta(milliseconds=one.jitter_ms)) for one in found)
    return HeldTicks(firing, len(held), row.after, row.upto, claims=held)


def _schedule(row: Row[Any]) -> Any:
    return schedule_from_spec(json.loads(row.schedule))


def _usual_runs(connection: Connection, now: datetime, rows: Sequence[Row[Any]]) -> dict[int, timedelta]:
    """The mean of each job's newest runs, where it has any."""
    jobs = sorted({row.job_id for row in rows})
    found = read_durations(connection, now, jobs, _RUNS)
    return {job_id: sum(lasted, timedelta(0)) / len(lasted) for job_id, lasted in found.items() if lasted}


def _settings(connection: Connection) -> ClusterSettings:
    return settings_from_rows({row.key: row.value for row in connection.execute(select(tables.settings))})
