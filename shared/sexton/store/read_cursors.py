"""Cursors and what lies around them, for whoever wants to set them; one read transaction, on both databases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from sexton.claims import Origin, State
from sexton.cursor_moves import CursorStand, StoodSkip
from sexton.decisions import RevisionInForce
from sexton.job_rules import firing_rules
from sexton.schedule_specs import schedule_from_spec
from sexton.store.protocol.restores import CursorStands
from sexton.store.tables import claims, cluster, cursors, jobs, proposals, revisions, skips

_WITHDRAWABLE = and_(
    claims.c.attempt == 0,
    claims.c.state.not_in([int(State.RUNNING), int(State.HELD)]),
    claims.c.origin.in_([int(Origin.SCHEDULE), int(Origin.CATCH_UP)]),
)

_BY_OPERATORS = "granted, or held, approved or filled in by an operator,"


@dataclass(frozen=True, slots=True)
class _Beyond:
    """What lies beyond the place asked for, by job."""

    skips: dict[int, list[StoodSkip]]
    withdrawable: dict[int, int]
    bars: dict[int, str]


def read_stands(
    connection: Connection, now: datetime, to: datetime | None, job_ids: Sequence[int] | None
) -> CursorStands:
    """``RestoreStore.cursor_stands``."""
    chosen = None if job_ids is None else set(job_ids)
    beyond = _Beyond({}, {}, {}) if to is None else _beyond(connection, to, chosen)
    undecided = select(revisions.c.job_id).where(
        revisions.c.job_id == jobs.c.job_id, revisions.c.in_force_until > cursors.c.at
    )
    query = (
        select(jobs.c.job_id, jobs.c.name, jobs.c.retired_at, cursors.c.seq, cursors.c.at)
        .join(cursors, cursors.c.job_id == jobs.c.job_id)
        .where(or_(jobs.c.retired_at.is_(None), undecided.exists()))
        .order_by(jobs.c.name_key)
    )
    rows = connection.execute(_only(query, jobs.c.job_id, chosen)).all()
    first = select(revisions.c.job_id, func.min(revisions.c.in_force_since)).group_by(revisions.c.job_id)
    begins = {row.job_id: row[1] for row in connection.execute(_only(first, revisions.c.job_id, chosen))}
    revisions_of = _revisions_after(connection, to, chosen)
    known: dict[tuple[str, str], Any] = {}
    stands = []
    for row in rows:
        in_force, fault = _parsed(revisions_of.get(row.job_id, ()), known)
        stands.append(
            CursorStand(
                job_id=row.job_id,
                name=row.name,
                seq=row.seq,
                at=row.at,
                begins_at=begins[row.job_id],
                is_retired=row.retired_at is not None,
                revisions=in_force,
                skips=tuple(beyond.skips.get(row.job_id, ())),
                withdrawable=beyond.withdrawable.get(row.job_id, 0),
                bars=beyond.bars.get(row.job_id, ""),
                fault=fault,
            )
        )
    pruned_before = connection.execute(select(cluster.c.pruned_before)).scalar()
    return CursorStands(now, pruned_before, tuple(stands))


def _only(query: Select[Any], column: Any, chosen: set[int] | None) -> Select[Any]:
    return query if chosen is None else query.where(column.in_(sorted(chosen)))


def _revisions_after(
    connection: Connection, to: datetime | None, chosen: set[int] | None
) -> dict[int, Sequence[Row[Any]]]:
    """Those in force after the cursor, and after ``to`` or the start of a skip record around it."""
    ends = [revisions.c.in_force_until.is_(None), revisions.c.in_force_until > cursors.c.at]
    if to is not None:
        around = skips.alias("around")
        reaches = (around.c.job_id == cursors.c.job_id, around.c.upto > to)
        begin = select(func.min(around.c.after)).where(*reaches).scalar_subquery()
        ends += [revisions.c.in_force_until > to, revisions.c.in_force_until > begin]
    query = (
        select(revisions)
        .join(cursors, cursors.c.job_id == revisions.c.job_id)
        .where(or_(*ends))
        .order_by(revisions.c.job_id, revisions.c.revision)
    )
    rows = connection.execute(_only(query, revisions.c.job_id, chosen)).all()
    return {job_id: tuple(of_job) for job_id, of_job in groupby(rows, key=attrgetter("job_id"))}


def _beyond(connection: Connection, to: datetime, chosen: set[int] | None) -> _Beyond:
    found = _Beyond({}, {}, {})
    query = select(skips).where(skips.c.upto > to).order_by(skips.c.job_id, skips.c.after)
    for row in connection.execute(_only(query, skips.c.job_id, chosen)):
        found.skips.setdefault(row.job_id, []).append(StoodSkip(row.after, row.upto, row._mapping["count"]))
        if row.resolved_at is not None:
            found.bars.setdefault(row.job_id, f"{row.resolved_by} has resolved the skip record up to {_iso(row.upto)}")
    open_ones = select(proposals).where(proposals.c.upto > to, proposals.c.state == "open")
    for row in connection.execute(_only(open_ones, proposals.c.job_id, chosen)):
        waits = f"{row._mapping['count']} ticks up to {_iso(row.upto)} wait in an open proposal: answer it first"
        found.bars[row.job_id] = waits
    beyond = claims.c.scheduled_at > to
    free = select(claims.c.job_id, func.count()).where(beyond, _WITHDRAWABLE).group_by(claims.c.job_id)
    for job_id, number in connection.execute(_only(free, claims.c.job_id, chosen)):
        found.withdrawable[job_id] = number
    had = (
        select(claims.c.job_id, func.min(claims.c.scheduled_at), func.count(), func.min(claims.c.attempt))
        .where(beyond, claims.c.origin != int(Origin.MANUAL), ~_WITHDRAWABLE)
        .group_by(claims.c.job_id)
    )
    for job_id, first, number, fewest_attempts in connection.execute(_only(had, claims.c.job_id, chosen)):
        claimed = "1 claim was" if number == 1 else f"{number} claims were"
        what, then = ("granted", ": `sexton rerun` them") if fewest_attempts else (_BY_OPERATORS, "")
        said = f"{claimed} {what} beyond that place, the first for {_iso(first)}{then}"
        found.bars[job_id] = found.bars.get(job_id, said) if not fewest_attempts else said
    return found


def _parsed(rows: Sequence[Row[Any]], known: dict[tuple[str, str], Any]) -> tuple[tuple[RevisionInForce, ...], str]:
    """The revisions as values, or why one cannot be read: that job's fault alone (invariant 9)."""
    found = []
    for row in rows:
        try:
            key = (row.schedule, row.firing)
            if key not in known:
                known[key] = (schedule_from_spec(json.loads(row.schedule)), firing_rules(row.firing))
        except Exception as error:  # whatever the texts of one job raise
            return (), f"{type(error).__name__}: {error}"[:300]
        schedule, firing = known[key]
        found.append(RevisionInForce(row.revision, schedule, firing, row.in_force_since, row.in_force_until))
    return tuple(found), ""


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
