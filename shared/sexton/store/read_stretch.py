"""What the ledger says of one job in a stretch of time, of one moment: what a backfill or a resume decides upon."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import Connection, Row, or_, select

from sexton.claims import Origin, State
from sexton.decisions import Interval, RevisionInForce
from sexton.errors import NotFound
from sexton.job_rules import firing_rules
from sexton.resolutions import ClaimFound, JobStretch, ProposalFound, SkipFound
from sexton.schedule_specs import schedule_from_spec
from sexton.store.tables import claims, cluster, cursors, jobs, pauses, proposals, revisions, skips


def read_stretch(
    connection: Connection, now: datetime, job_id: int, after: datetime, upto: datetime, limit: int
) -> JobStretch:
    """The stretch ``(after, upto]``; at most ``limit`` claims and as many skip records, the oldest.

    ``now``: the database's. Raises ``NotFound`` for an unknown job, and what its schedule raises.
    """
    job = connection.execute(
        select(jobs.c.name, jobs.c.retired_at, jobs.c.revision, cursors.c.seq, cursors.c.at)
        .join(cursors, cursors.c.job_id == jobs.c.job_id)
        .where(jobs.c.job_id == job_id)
    ).one_or_none()
    if job is None:
        raise NotFound(f"there is no job with id {job_id}", hint="`sexton jobs` lists what there is")
    found = _skips(connection, job_id, after, upto, limit)
    read = _revisions(connection, job_id, min([after, *(skip.after for skip in found)]))
    of_cluster = connection.execute(select(cluster.c.pruned_before, cluster.c.inputs_id)).one()
    return JobStretch(
        job_id=job_id,
        name=job.name,
        seq=job.seq,
        at=job.at,
        after=after,
        upto=upto,
        now=now,
        is_retired=job.retired_at is not None,
        pause=_pause(connection, job_id),
        pruned_before=of_cluster.pruned_before,
        inputs_id=of_cluster.inputs_id,
        newest=read[-1],
        revisions=tuple(read),
        skips=found,
        claims=_claims(connection, job_id, after, upto, limit),
        proposals=_proposals(connection, job_id, after, upto),
    )


def open_pause(connection: Connection, job_id: int) -> datetime | None:
    """Since when the job is paused; None where it is not."""
    pause = _pause(connection, job_id)
    return None if pause is None else pause.since


def _pause(connection: Connection, job_id: int) -> Interval | None:
    row = connection.execute(
        select(pauses.c.since).where(pauses.c.job_id == job_id, pauses.c.until.is_(None))
    ).one_or_none()
    return None if row is None else Interval(row.since, None)


def _skips(connection: Connection, job_id: int, after: datetime, upto: datetime, limit: int) -> tuple[SkipFound, ...]:
    rows = connection.execute(
        select(skips)
        .where(skips.c.job_id == job_id, skips.c.upto > after, skips.c.after < upto)
        .order_by(skips.c.after)
        .limit(limit)
    )
    return tuple(
        SkipFound(
            after=row.after,
            upto=row.upto,
            count=row._mapping["count"],
            reason=row.reason,
            detail=row.detail,
            is_resolved=row.resolved_at is not None,
            named_by=row.named_by,
        )
        for row in rows
    )


def _claims(connection: Connection, job_id: int, after: datetime, upto: datetime, limit: int) -> tuple[ClaimFound, ...]:
    rows = connection.execute(
        select(claims.c.scheduled_at, claims.c.state, claims.c.origin, claims.c.attempt)
        .where(
            claims.c.job_id == job_id,
            claims.c.scheduled_at > after,
            claims.c.scheduled_at <= upto,
            claims.c.origin != int(Origin.MANUAL),
        )
        .order_by(claims.c.scheduled_at)
        .limit(limit)
    )
    return tuple(ClaimFound(row.scheduled_at, State(row.state), Origin(row.origin), row.attempt) for row in rows)


def _proposals(connection: Connection, job_id: int, after: datetime, upto: datetime) -> tuple[ProposalFound, ...]:
    rows = connection.execute(
        select(proposals.c.proposal_id, proposals.c.after, proposals.c.upto)
        .where(
            proposals.c.job_id == job_id,
            proposals.c.state == "open",
            proposals.c.upto > after,
            proposals.c.after < upto,
        )
        .order_by(proposals.c.after)
    )
    return tuple(ProposalFound(*row) for row in rows)


def _revisions(connection: Connection, job_id: int, after: datetime) -> list[RevisionInForce]:
    """Those in force after ``after``, and the newest in any case."""
    rows = connection.execute(
        select(revisions)
        .where(
            revisions.c.job_id == job_id,
            or_(revisions.c.in_force_until.is_(None), revisions.c.in_force_until > after),
        )
        .order_by(revisions.c.revision)
    ).all()
    if not rows:
        newest = select(revisions).where(revisions.c.job_id == job_id).order_by(revisions.c.revision.desc()).limit(1)
        rows = connection.execute(newest).all()
    return [_revision(row) for row in rows]


def _revision(row: Row[tuple[object, ...]]) -> RevisionInForce:
    return RevisionInForce(
        revision=row.revision,
        schedule=schedule_from_spec(json.loads(row.schedule)),
        firing=firing_rules(row.firing),
        since=row.in_force_since,
        until=row.in_force_until,
    )
