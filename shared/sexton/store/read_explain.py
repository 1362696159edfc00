"""What an explanation of one instant of one job is made from: a fixed number of rows, whatever the history's length.

Revisions are read around the instant, ten to each side, and a thousand where those have no tick: the nearest ticks may
lie in one before or after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, or_, select

from sexton.claims import Origin, State
from sexton.decisions import SkipReason
from sexton.errors import NotFound, SextonError
from sexton.job_rules import firing_rules, retries_from_json
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.settings import settings_from_rows
from sexton.store import tables
from sexton.store.known_members import member_of
from sexton.store.older_zones import older_zone_data
from sexton.store.read_cluster import read_workers
from sexton.store.read_jobs import read_earlier_job, read_job_row
from sexton.store.read_runs import claims_by, read_claim, read_claim_runs
from sexton.store.read_takeovers import decision_view, event_view, read_takeovers
from sexton.tick_facts import ClusterFacts, ProposalFacts, RefusedWrite, RevisionFacts, TickFacts
from sexton.views import ClaimView, DecisionView, EventView, PauseView, SkipView
from sexton.zone_files import with_zone_data

REFUSED = "run.refused"
_AROUND = (10, 1_000)  # revisions to each side; the second where the first hold no tick
_ACTS = ("job.triggered", "job.cancelled", "job.rerun", "job.backfilled", "claims.held", "cursor.set")
_SEARCHED_EVENTS = 500
_SEARCHED_SKIPS = 3  # a tick that somebody named lies before or in others
_DECISIONS = 5
_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)


def read_tick_facts(connection: Connection, now: datetime, name: str, instant: datetime) -> TickFacts:
    """Everything about one instant of the job of this name. Raises ``NotFound`` for the job."""
    job = read_job_row(connection, name)
    cluster = _cluster(connection, now)
    claim = read_claim(connection, job.job_id, instant)
    skip, named_by = _skip(connection, job, instant)
    events = _events(connection, job.job_id, job.name, instant)
    term = claim.term if claim is not None else None if skip is None else skip.term
    cursor = connection.execute(select(tables.cursors.c.at).where(tables.cursors.c.job_id == job.job_id)).scalar()
    return TickFacts(
        job_id=job.job_id,
        job=job.name,
        instant=instant,
        cluster=cluster,
        revisions=_revisions(connection, job.job_id, instant),
        cursor=cursor or job.created_at,
        created_at=job.created_at,
        retired_at=job.retired_at,
        quarantined_at=job.quarantined_at,
        quarantine_reason=job.quarantine_reason or "",
        pause=_pause(connection, job.job_id, instant),
        claim=claim,
        runs=() if claim is None else read_claim_runs(connection, job.job_id, instant),
        skip=skip,
        named_by=named_by,
        proposal=_proposal(connection, job.job_id, instant),
        decisions=_decisions(connection, job, instant),
        takeover=None if term is None else next(iter(read_takeovers(connection, 1, term)), None),
        events=tuple(event for event in events if event.action != REFUSED),
        refused=tuple(_refused(event) for event in events if event.action == REFUSED),
        holders=_holders(connection, job.job_id, claim),
        workers=0 if claim is None else _workers(connection, now, claim.queue),
        near_claims=() if claim is not None else _near_claims(connection, job.job_id, instant),
        earlier=read_earlier_job(connection, job.job_id),
    )


def read_near_tick(connection: Connection, now: datetime, name: str, which: str) -> datetime:
    """The job's ``last`` tick up to now or its ``next`` one after it, by its revisions; raises ``NotFound``."""
    job = read_job_row(connection, name)
    revisions = [one for one in _revisions(connection, job.job_id, now) if one.schedule is not None]
    for revision in reversed(revisions) if which == "last" else revisions:
        tick = _last_of(revision, now) if which == "last" else _next_of(revision, now)
        if tick is not None:
            return tick
    said = "no tick of it has fallen due" if which == "last" else "it has no tick to come"
    raise NotFound(f"job {job.name!r}: {said}", hint=f"`sexton next --job {job.name}` and `sexton history {job.name}`")


def read_zone(connection: Connection, name: str) -> str:
    """The zone of the job's newest revision. Raises ``NotFound``."""
    job, table = read_job_row(connection, name), tables.revisions
    text = connection.execute(
        select(table.c.schedule).where(table.c.job_id == job.job_id, table.c.revision == job.revision)
    ).scalar_one()
    return str(json.loads(text).get("timezone") or "UTC")


# --- the cluster ----------------------------------------------------------------------------------


def _cluster(connection: Connection, now: datetime) -> ClusterFacts:
    row = connection.execute(select(tables.cluster)).one()
    settings = settings_from_rows({one.key: one.value for one in connection.execute(select(tables.settings))})
    return ClusterFacts(
        now=now,
        term=row.term,
        leader=row.leader,
        strategy=row.strategy,
        horizon=settings.horizon,
        halted_by=(row.halted_by or "an operator") if row.halted else None,
        halt_reason=row.halt_reason or "",
        pruned_before=row.pruned_before,
        next_paced_at=connection.execute(select(tables.budget.c.next_at)).scalar(),
        catch_up_rate=f"{settings.catch_up_rate:g}/s",
    )


def _workers(connection: Connection, now: datetime, queue: str) -> int:
    return sum(queue in worker.queues and not worker.is_draining for worker in read_workers(connection, now))


# --- the job --------------------------------------------------------------------------------------


def _revisions(connection: Connection, job_id: int, instant: datetime) -> tuple[RevisionFacts, ...]:
    """Those around the instant, oldest first; intervals that hold no instant are left out. Each is read with the zone
    data that it was computed with, as the audit does, where the ledger keeps that."""
    table = tables.revisions
    of_job = select(table).where(
        table.c.job_id == job_id,
        or_(table.c.in_force_until.is_(None), table.c.in_force_until > table.c.in_force_since),
    )
    before = of_job.where(table.c.in_force_since < instant).order_by(table.c.revision.desc())
    after = of_job.where(table.c.in_force_since >= instant).order_by(table.c.revision)
    back = _up_to_a_tick(connection, before, lambda revision: _last_of(revision, instant - _MICROSECOND))
    ahead = _up_to_a_tick(connection, after, lambda revision: _next_of(revision, instant))
    # A job that was retired at the instant at which it came has neither.
    return (*reversed(back), *ahead) or _read(connection, select(table).where(table.c.job_id == job_id), 1)


def _up_to_a_tick(
    connection: Connection, query: Select[Any], tick_of: Callable[[RevisionFacts], datetime | None]
) -> tuple[RevisionFacts, ...]:
    """The first few; more where none of those has the tick: of many edits in a row most are in force for none."""
    found: tuple[RevisionFacts, ...] = ()
    for count in _AROUND:
        found = _read(connection, query, count)
        if len(found) < count or any(one.schedule is not None and tick_of(one) is not None for one in found):
            break
    return found


def _read(connection: Connection, query: Select[Any], count: int) -> tuple[RevisionFacts, ...]:
    rows = connection.execute(query.limit(count)).all()
    older = older_zone_data(connection, {row.inputs_id for row in rows})
    return tuple(_revision(row, older) for row in rows)


def _revision(row: Row[Any], older: frozenset[str]) -> RevisionFacts:
    version, _, _ = row.inputs_id.partition("/")
    schedule = with_zone_data(row.schedule, version) if version in older else row.schedule
    return RevisionFacts(
        revision=row.revision,
        spec=json.loads(schedule),
        schedule=_schedule(schedule),
        firing=firing_rules(row.firing),
        retries=retries_from_json(json.loads(row.definition)["retries"]),
        since=row.in_force_since,
        until=row.in_force_until,
        applied_at=row.applied_at,
        applied_by=row.applied_by,
    )


@lru_cache(maxsize=256)
def _schedule(text: str) -> Schedule | None:
    try:
        return schedule_from_spec(json.loads(text))
    except SextonError:
        return None  # of a younger release; its job is quarantined, which says why


def _last_of(revision: RevisionFacts, now: datetime) -> datetime | None:
    assert revision.schedule is not None  # noqa: S101 - asked before
    upto = now if revision.until is None else min(now, revision.until)
    tick = revision.schedule.previous_before(upto + _MICROSECOND)
    return tick if tick is not None and tick > revision.since else None


def _next_of(revision: RevisionFacts, now: datetime) -> datetime | None:
    assert revision.schedule is not None  # noqa: S101 - asked before
    tick = revision.schedule.next_after(max(now, revision.since))
    return tick if tick is not None and (revision.until is None or tick <= revision.until) else None


def _pause(connection: Connection, job_id: int, instant: datetime) -> PauseView | None:
    """The pause that holds the instant: a tick ahead of now lies in one that is open."""
    table = tables.pauses
    row = connection.execute(
        select(table)
        .where(table.c.job_id == job_id, table.c.since < instant)
        .where(or_(table.c.until.is_(None), table.c.until >= instant))
        .order_by(table.c.since.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else PauseView(row.since, row.until, row.who, row.why)


# --- the decision ---------------------------------------------------------------------------------


def _skip(connection: Connection, job: Any, instant: datetime) -> tuple[SkipView | None, str | None]:
    """The skip record that holds the instant, and who named its one tick, if somebody did."""
    table = tables.skips
    rows = connection.execute(
        select(table)
        .where(table.c.job_id == job.job_id, table.c.after < instant)
        .order_by(table.c.after.desc())
        .limit(_SEARCHED_SKIPS)
    ).all()
    row = next((row for row in rows if row.upto >= instant), None)
    return (None, None) if row is None else (_skip_view(row, job.name), row.named_by)


def _skip_view(row: Row[Any], job: str) -> SkipView:
    return SkipView(
        job_id=row.job_id,
        job=job,
        after=row.after,
        upto=row.upto,
        count=row._mapping["count"],
        reason=member_of(SkipReason, row.reason),
        detail=row.detail,
        revision=row.revision,
        term=row.term,
        decided_at=row.decided_at,
        resolved_at=row.resolved_at,
        resolved_by=row.resolved_by,
    )


def _proposal(connection: Connection, job_id: int, instant: datetime) -> ProposalFacts | None:
    table = tables.proposals
    row = connection.execute(
        select(table)
        .where(table.c.job_id == job_id, table.c.after < instant, table.c.upto >= instant)
        .order_by(table.c.proposal_id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return ProposalFacts(
        row.proposal_id,
        row.after,
        row.upto,
        row._mapping["count"],
        row.state,
        row.made_at,
        row.lapses_at,
        row.answered_at,
        row.answered_by,
        row.note,
    )


def _decisions(connection: Connection, job: Any, instant: datetime) -> tuple[DecisionView, ...]:
    """What passes over missed ticks said of the stretch that holds the instant, oldest first."""
    table = tables.decisions
    rows = connection.execute(
        select(table)
        .where(table.c.job_id == job.job_id, table.c.after < instant, table.c.upto >= instant)
        .order_by(table.c.decided_at.desc())
        .limit(_DECISIONS)
    ).all()
    return tuple(decision_view(row, job.name) for row in reversed(rows))


def _holders(connection: Connection, job_id: int, claim: ClaimView | None) -> tuple[ClaimView, ...]:
    """What holds the slot that a parked claim waits for."""
    if claim is None or claim.state is not State.PARKED:
        return ()
    claims, slots = tables.claims, tables.slots
    slot = select(claims.c.slot).where(claims.c.job_id == job_id, claims.c.scheduled_at == claim.scheduled_at)
    tokens = connection.execute(
        select(slots.c.token).where(slots.c.slot == slot.scalar_subquery(), slots.c.token.is_not(None)).limit(10)
    ).scalars()
    return claims_by(connection, list(tokens))


def _near_claims(connection: Connection, job_id: int, instant: datetime) -> tuple[datetime, ...]:
    """Triggered runs fall between the whole seconds that people write."""
    table = tables.claims
    start = instant.replace(microsecond=0)
    rows = connection.execute(
        select(table.c.scheduled_at)
        .where(table.c.job_id == job_id, table.c.scheduled_at >= start, table.c.scheduled_at < start + _SECOND)
        .where(table.c.origin == int(Origin.MANUAL))
        .order_by(table.c.scheduled_at)
        .limit(5)
    )
    return tuple(rows.scalars())


# --- what was done to it --------------------------------------------------------------------------


def _events(connection: Connection, job_id: int, name: str, instant: datetime) -> tuple[EventView, ...]:
    """What operators did to the tick, and refused writes, oldest first; among the job's newest such events."""
    table = tables.events
    rows = connection.execute(
        select(table)
        .where(table.c.job_id == job_id, table.c.action.in_((*_ACTS, REFUSED)))
        .order_by(table.c.event_id.desc())
        .limit(_SEARCHED_EVENTS)
    ).all()
    events = [event_view(row, name) for row in reversed(rows)]
    return tuple(event for event in events if _is_of(event, instant))


def _is_of(event: EventView, instant: datetime) -> bool:
    """Whether an event names the tick, lists it, or speaks of a stretch that holds it."""
    detail = event.detail
    ticks = detail.get("ticks")
    listed = ticks if isinstance(ticks, Sequence) and not isinstance(ticks, str) else ()
    if any(_instant(text) == instant for text in (detail.get("scheduled_at"), *listed)):
        return True
    first, last = _instant(detail.get("first")), _instant(detail.get("last"))
    if first is not None and last is not None:
        return first <= instant <= last
    after, upto = _instant(detail.get("from")), _instant(detail.get("to"))
    return after is not None and upto is not None and min(after, upto) < instant <= max(after, upto)


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _refused(event: EventView) -> RefusedWrite:
    detail = event.detail
    started = detail.get("started_at")
    return RefusedWrite(
        at=event.at,
        token=int(str(detail["token"])),
        attempt=int(str(detail["attempt"])),
        worker=event.actor,
        outcome=State[str(detail["outcome"]).upper()],
        started_at=None if not started else datetime.fromisoformat(str(started)),
        finished_at=datetime.fromisoformat(str(detail["finished_at"])),
    )
