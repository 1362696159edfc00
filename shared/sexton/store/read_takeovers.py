"""Takeovers with what they decided, and the audit log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from sexton.decisions import Cause
from sexton.job_rules import MissedPolicy
from sexton.store import tables
from sexton.store.known_members import member_of
from sexton.store.read_gaps import is_about, is_about_gap, passes_of, read_gaps
from sexton.terms import ElectedBy, EndedBy
from sexton.views import DecisionTotals, DecisionView, EventView, GapView, TakeoverDetail, TakeoverView


def read_takeovers(
    connection: Connection, limit: int, term: int | None = None, known: Sequence[TakeoverView] = ()
) -> tuple[TakeoverView, ...]:
    """The newest takeovers, or the one of `term`; newest first, with their gaps and the sums of their decisions.

    Gaps and sums of a term that was over when it was read before, as one of `known`, are taken from there.
    """
    table = tables.takeovers
    query = select(table).order_by(table.c.term.desc()).limit(limit)
    if term is not None:
        query = query.where(table.c.term == term)
    rows = connection.execute(query).all()
    if not rows:
        return ()
    newer = None if term is None else _next_takeover(connection, term)
    summed = {one.term: one for one in known if one.until is not None and one.term < rows[0].term}
    to_sum = [row for row in rows if row.term not in summed]
    gaps = read_gaps(connection, to_sum[-1].taken_at, None if newer is None else newer.taken_at)
    totals = _totals(connection, [row.term for row in to_sum], gaps)
    views = []
    for row in rows:
        view = _takeover(row, newer, totals.get(row.term, _NO_TOTALS), gaps)
        if before := summed.get(row.term):
            view = replace(view, totals=before.totals, not_started=before.not_started, gaps=before.gaps)
        views.append(view)
        newer = row
    return tuple(views)


def _next_takeover(connection: Connection, term: int) -> Any:
    table = tables.takeovers
    return connection.execute(
        select(table.c.term, table.c.taken_at, table.c.predecessor_ended, table.c.gap_from)
        .where(table.c.term > term)
        .order_by(table.c.term)
        .limit(1)
    ).one_or_none()


def _takeover(row: Row[Any], newer: Any, totals: _Totals, gaps: Sequence[GapView]) -> TakeoverView:
    return TakeoverView(
        term=row.term,
        node=row.node,
        elected_by=member_of(ElectedBy, row.elected_by),
        taken_at=row.taken_at,
        until=None if newer is None else _until(newer),
        ended_by=None if newer is None else member_of(EndedBy, newer.predecessor_ended),
        predecessor=row.predecessor,
        predecessor_ended=member_of(EndedBy, row.predecessor_ended),
        gap_from=row.gap_from,
        gap_until=row.gap_until,
        planning=None if row.planning_ms is None else timedelta(milliseconds=row.planning_ms),
        jobs=row.jobs,
        blockers_terminated=row.blockers_terminated,
        totals=totals.undecided,
        not_started=totals.not_started,
        gaps=tuple(
            replace(gap, totals=totals.in_gaps.get(gap.gap_until, gap.totals)) for gap in gaps if gap.term == row.term
        ),
    )


def _until(newer: Any) -> datetime:
    """When the term before `newer` ended: at its hand-over, else when the next one was taken."""
    handed_over = member_of(EndedBy, newer.predecessor_ended) is EndedBy.RESIGNED and newer.gap_from is not None
    ended: datetime = newer.gap_from if handed_over else newer.taken_at
    return ended


def _totals(connection: Connection, terms: Sequence[int], gaps: Sequence[GapView]) -> dict[int, _Totals]:
    """Of each term, what was decided about undecided ticks: in each gap within it, and otherwise; and apart from them
    about claims that nobody started. What fell due in a pause was decided for whoever resumed it: no takeover's."""
    table, passes = tables.decisions, passes_of(gaps)
    is_late = (table.c.cause == Cause.NOT_STARTED.value).label("is_late")
    rows = connection.execute(
        select(
            table.c.term,
            is_late,
            passes.c.gap_until,
            func.count(table.c.job_id.distinct()).label("jobs"),
            *(func.sum(table.c[name]).label(name) for name in COUNTED),
        )
        .select_from(table.outerjoin(passes, is_about(passes)))
        .where(table.c.term.in_(list(terms)), table.c.cause != Cause.RESUMED.value)
        .group_by(table.c.term, is_late, passes.c.gap_until)
    )
    found: dict[int, _Totals] = {}
    for row in rows:
        totals = DecisionTotals(jobs=row.jobs, **{name: int(getattr(row, name)) for name in COUNTED})
        known = found.get(row.term, _NO_TOTALS)
        if row.is_late:
            found[row.term] = known._replace(not_started=totals)
        elif row.gap_until is None:
            found[row.term] = known._replace(undecided=totals)
        else:
            found[row.term] = known._replace(in_gaps={**known.in_gaps, row.gap_until: totals})
    return found


class _Totals(NamedTuple):
    undecided: DecisionTotals
    not_started: DecisionTotals
    in_gaps: Mapping[datetime, DecisionTotals]


_NO_TOTALS = _Totals(DecisionTotals(), DecisionTotals(), {})
COUNTED = ("missed", "fired", "merged", "skipped", "expired", "held")


def read_opened(connection: Connection, takeover: TakeoverView, gap: GapView | None, limit: int) -> TakeoverDetail:
    """What was decided under the takeover's term, or about one of its gaps; by job name and stretch."""
    table, jobs = tables.decisions, tables.jobs
    query = (
        select(table, jobs.c.name.label("job"))
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(table.c.term == takeover.term, table.c.cause != Cause.RESUMED.value)
        .order_by(jobs.c.name_key, table.c.job_id, table.c.after, table.c.cause)
        .limit(limit + 1)
    )
    if gap is not None:
        query = query.where(is_about_gap(gap, takeover.gaps))
    rows = connection.execute(query).all()
    decisions = tuple(decision_view(row, row.job) for row in rows[:limit])
    return TakeoverDetail(takeover, decisions, is_whole=len(rows) <= limit, gap=gap)


def decision_view(row: Row[Any], job: str) -> DecisionView:
    """A row of ``decisions``, of the job of this name."""
    return DecisionView(
        term=row.term,
        job_id=row.job_id,
        job=job,
        after=row.after,
        upto=row.upto,
        cause=member_of(Cause, row.cause),
        revision=row.revision,
        policy=member_of(MissedPolicy, row.policy).value,
        **{name: getattr(row, name) for name in COUNTED},
        reason=row.reason,
        decided_at=row.decided_at,
    )


def read_events(
    connection: Connection, before: int | None, limit: int, job: str = "", action: str = ""
) -> tuple[EventView, ...]:
    """The audit log, newest first, older than event `before`; `action` is the beginning of the action's name."""
    table, jobs = tables.events, tables.jobs
    query = select(table, jobs.c.name.label("job")).outerjoin(jobs, jobs.c.job_id == table.c.job_id)
    if before is not None:
        query = query.where(table.c.event_id < before)
    if job:
        query = query.where(jobs.c.name_key == job.lower())
    if action:
        query = query.where(table.c.action.startswith(action, autoescape=True))
    rows = connection.execute(query.order_by(table.c.event_id.desc()).limit(limit))
    return tuple(event_view(row, row.job) for row in rows)


def event_view(row: Row[Any], job: str | None) -> EventView:
    return EventView(row.event_id, row.at, row.actor, row.action, job, json.loads(row.detail))
