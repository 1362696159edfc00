"""Gaps within a term that went on, and which decisions are about them.

The store records each as an event, in the statement with which the pass over its missed ticks begins; that pass commits
later, and is over before the next one begins. So the decisions about a gap are those of its term's passes that were
made from its end on, and before the end of the next gap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, literal, select, union_all

from sexton.decisions import Cause
from sexton.store import tables
from sexton.terms import GAP_EVENT
from sexton.views import GapView

MOST_GAPS = 100
_EVENTS_LOOKED_AT = 5_000  # of the newest that are about no job: a handful a day, and one for each gap
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_CAUSES = (Cause.LATE_LEADER.value, Cause.RACE.value)


def read_gaps(connection: Connection, since: datetime, until: datetime | None) -> tuple[GapView, ...]:
    """The newest gaps that ended from `since` on, until `until` if given; newest first, 100 at most, without sums."""
    table = tables.events
    newest = (
        select(table.c.event_id, table.c.at, table.c.actor, table.c.action, table.c.detail)
        .where(table.c.job_id.is_(None))
        .order_by(table.c.event_id.desc())
        .limit(_EVENTS_LOOKED_AT)
        .subquery()
    )
    query = select(newest.c.at, newest.c.actor, newest.c.detail).where(newest.c.action == GAP_EVENT)
    query = query.where(newest.c.at >= since)
    if until is not None:
        query = query.where(newest.c.at <= until)
    rows = connection.execute(query.order_by(newest.c.event_id.desc()).limit(MOST_GAPS))
    return tuple(_gap(row.at, row.actor, json.loads(row.detail)) for row in rows)


def _gap(at: datetime, node: str, detail: dict[str, Any]) -> GapView:
    return GapView(detail["term"], node, datetime.fromisoformat(detail["gap_from"]), at)


def passes_of(gaps: Sequence[GapView]) -> FromClause:
    """Each gap's `term` and `gap_until`, and `before`: where the next pass of its term began."""
    columns = tables.decisions.c
    rows = [
        select(
            literal(gap.term, columns.term.type).label("term"),
            literal(gap.gap_until, columns.decided_at.type).label("gap_until"),
            literal(before, columns.decided_at.type).label("before"),
        )
        for gap, before in _with_ends(gaps)
    ]
    return union_all(*rows).subquery("passes")


def _with_ends(gaps: Sequence[GapView]) -> Iterator[tuple[GapView, datetime]]:
    """Each gap, newest first, with the end of the next one in its term. Of no gap: one of no term."""
    ends: dict[int, datetime] = {}
    for gap in gaps or [GapView(-1, "", _NEVER, _NEVER)]:
        yield gap, ends.get(gap.term, _NEVER)
        ends[gap.term] = gap.gap_until


def is_about(passes: FromClause) -> ColumnElement[bool]:
    """Whether a decision was made by the pass of a row of ``passes_of``."""
    table = tables.decisions
    return and_(
        table.c.term == passes.c.term,
        table.c.cause.in_(_CAUSES),
        table.c.decided_at >= passes.c.gap_until,
        table.c.decided_at < passes.c.before,
    )


def is_about_gap(gap: GapView, gaps: Sequence[GapView]) -> ColumnElement[bool]:
    """Whether a decision is about `gap`, which is one of its term's `gaps`."""
    table = tables.decisions
    before = min((one.gap_until for one in gaps if one.gap_until > gap.gap_until), default=_NEVER)
    made_at = table.c.decided_at
    return and_(table.c.cause.in_(_CAUSES), made_at >= gap.gap_until, made_at < before)
