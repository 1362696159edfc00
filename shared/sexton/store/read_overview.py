"""The overview in three parts, a statement each, so that a screen can read each as often as it matters.

What must not be overlooked (who leads, halted, the heartbeat) is in the ``Pulse``, and costs next to nothing. Ages are
as of the moment at which their part was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, or_, select, text

from sexton.claims import State
from sexton.cluster_views import (
    COUNT_LIMIT,
    SEXTON,
    Lateness,
    LatenessMinute,
    LostRun,
    NodeView,
    Overview,
    OverviewPart,
    PauseOfAll,
    ProposalView,
    QuarantinedJob,
    WorkerView,
)
from sexton.errors import NotFound
from sexton.settings import settings_from_rows
from sexton.store import read_cluster, tables
from sexton.store.known_members import member_of
from sexton.store.read_together import Query, read_together
from sexton.terms import ElectedBy

LATENESS_WINDOW = timedelta(minutes=30)
_MARKS = 50
_LISTED = 20


@dataclass(frozen=True, slots=True)
class Pulse:
    """Who leads, and whether they live."""

    now: datetime
    cluster: Any
    heartbeat: Any
    predecessor: str | None
    nodes: tuple[NodeView, ...]
    proposals: tuple[ProposalView, ...]
    pause: PauseOfAll | None


@dataclass(frozen=True, slots=True)
class Work:
    """What waits, what runs, how late."""

    now: datetime
    workers: tuple[WorkerView, ...]
    queues: read_cluster.QueueRows  # without rules
    running: int
    parked: int
    failed: int
    lateness: Lateness
    minutes: tuple[LatenessMinute, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What changes seldom."""

    settings: Mapping[str, str]
    counters: Mapping[str, int]
    rules: tuple[Any, ...]
    jobs: int
    paused: int
    stopped: tuple[QuarantinedJob, ...]
    marks: tuple[datetime, ...]
    lost: tuple[LostRun, ...]


@dataclass(frozen=True, slots=True)
class OverviewParts:
    """The newest of each part."""

    pulse: Pulse
    work: Work
    standing: Standing

    @property
    def overview(self) -> Overview:
        """The parts put together, as of the pulse."""
        pulse, work, standing = self.pulse, self.work, self.standing
        cluster, heartbeat = pulse.cluster, pulse.heartbeat
        queues = read_cluster.QueueRows(work.queues.live, work.queues.paced, work.queues.running, standing.rules)
        silent_after = settings_from_rows(standing.settings).lease
        return Overview(
            now=pulse.now,
            cluster_id=cluster.cluster_id,
            term=cluster.term,
            leader=cluster.leader,
            leader_since=cluster.leader_since,
            elected_by=None if cluster.elected_by is None else member_of(ElectedBy, cluster.elected_by),
            predecessor=pulse.predecessor,
            strategy=cluster.strategy,
            coordinator=cluster.coordinator,
            is_halted=cluster.halted,
            inputs_id=cluster.inputs_id,
            resign_requested=cluster.resign_requested,
            halt=read_cluster.read_halt(cluster),
            forced_to=cluster.forced_to,
            confirmation=heartbeat.confirmation,
            heartbeat_age=max(pulse.now - heartbeat.at, timedelta(0)),
            claims_upto=read_cluster.claims_upto(pulse.nodes, cluster.leader),
            nodes=pulse.nodes,
            workers=work.workers,
            queues=read_cluster.queues_of(queues, work.now, work.workers, silent_after),
            lateness=work.lateness,
            minutes=work.minutes,
            takeover_marks=standing.marks,
            running=work.running,
            parked=work.parked,
            failed_last_hour=work.failed,
            jobs=standing.jobs,
            paused=standing.paused,
            quarantined=standing.stopped,
            proposals=pulse.proposals,
            pause_of_all=pulse.pause,
            lost=standing.lost,
            counters=standing.counters,
            settings=standing.settings,
        )


def read_parts(
    connection: Connection,
    clock: datetime | None,
    which: frozenset[OverviewPart],
    known: OverviewParts | None,
    since: datetime | None,
) -> OverviewParts:
    """The pulse read, and of the other parts those of ``which``: all, where none is ``known``. A statement each.

    ``clock``: now, where it is not the database's. Minutes of lateness from ``since`` on (None: the last 30).
    """
    pulse = _pulse(connection, clock)
    from_when = since or (pulse.now - LATENESS_WINDOW).replace(second=0, microsecond=0)
    work = None if known is None or OverviewPart.WORK in which else known.work
    standing = None if known is None or OverviewPart.STANDING in which else known.standing
    return OverviewParts(
        pulse,
        work or _work(connection, pulse.now, from_when),
        standing or _standing(connection, pulse.now, from_when),
    )


def _pulse(connection: Connection, clock: datetime | None) -> Pulse:
    cluster, takeovers = tables.cluster, tables.takeovers
    of_term = select(takeovers.c.predecessor.label("before")).join(cluster, cluster.c.term == takeovers.c.term)
    queries: dict[str, Any] = {
        "cluster": select(cluster),
        "heartbeat": select(tables.heartbeat),
        "before": of_term,
        "nodes": read_cluster.nodes_query(),
        "proposals": _proposals_query(),
        "pause": select(tables.pause_of_all),
    }
    if clock is None:
        queries["clock"] = select(func.clock_timestamp(type_=tables.Instant()).label("at"))
    found = read_together(connection, queries)
    if not found["cluster"]:
        raise NotFound("this database holds no cluster yet", hint="run `sexton db upgrade`")
    if not found["heartbeat"]:
        raise NotFound("the ledger has lost its heartbeat's row", hint="restore a backup, see `sexton db restored`")
    row = found["cluster"][0]
    now = found["clock"][0].at if clock is None else clock
    # The row names a predecessor only while nobody leads.
    predecessor = row.predecessor if row.leader is None else next((one.before for one in found["before"]), None)
    nodes = read_cluster.nodes_of(found["nodes"], now)
    proposals = _proposals_of(found["proposals"])
    pause = next((PauseOfAll(one.since, one.who, one.why) for one in found["pause"]), None)
    return Pulse(now, row, found["heartbeat"][0], predecessor, nodes, proposals, pause)


def _work(connection: Connection, now: datetime, since: datetime) -> Work:
    queries = {
        **read_cluster.queue_queries(now),
        "workers": read_cluster.workers_query(now),
        "counts": read_cluster.counts_query(now),
        "lateness": read_cluster.lateness_query(now, since),
    }
    found = read_together(connection, queries)
    workers = read_cluster.workers_of(found["workers"], found["running"], now)
    queues = read_cluster.QueueRows(found["live"], found["paced"], found["running"], ())
    counts = found["counts"][0]
    lateness, minutes = read_cluster.lateness_of(found["lateness"], now, since)
    return Work(now, workers, queues, counts.running, counts.parked, counts.failed, lateness, minutes)


def _standing(connection: Connection, now: datetime, since: datetime) -> Standing:
    takeovers = tables.takeovers
    marks = select(takeovers.c.taken_at).where(takeovers.c.taken_at >= since)
    queries = {
        **_job_queries(),
        "settings": select(tables.settings.c.key, tables.settings.c.value),
        "counters": select(tables.counters),
        "rules": select(tables.queues),
        "marks": marks.order_by(takeovers.c.term.desc()).limit(_MARKS),
        "lost": _lost_query(now),
    }
    found = read_together(connection, queries)
    return Standing(
        settings={row.key: row.value for row in found["settings"]},
        counters={row.name: row.value for row in found["counters"]},
        rules=tuple(found["rules"]),
        jobs=found["jobs"][0].total,
        paused=found["jobs"][0].paused,
        stopped=_stopped_of(found["stopped"]),
        marks=tuple(sorted(row.taken_at for row in found["marks"])),
        lost=_lost_of(found["lost"]),
    )


def _job_queries() -> dict[str, Query]:
    """How many jobs, paused ones, and by name those in quarantine or paused by Sexton itself."""
    table = tables.jobs
    live = table.c.retired_at.is_(None)
    stopped = or_(table.c.quarantined_at.is_not(None), table.c.paused_by == SEXTON)
    counted: Any = select(func.count().label("total"), func.count(table.c.paused_at).label("paused"))
    named = (table.c.name, table.c.quarantined_at, table.c.quarantine_reason, table.c.paused_at, table.c.pause_reason)
    return {
        "jobs": counted.select_from(table).where(live),
        "stopped": select(*named).where(live, stopped).order_by(table.c.name).limit(_LISTED),
    }


def _stopped_of(rows: Iterable[Any]) -> tuple[QuarantinedJob, ...]:
    """The jobs that Sexton stopped, by name."""
    return tuple(
        QuarantinedJob(r.name, r.quarantined_at, r.quarantine_reason or "")
        if r.quarantined_at is not None
        else QuarantinedJob(r.name, r.paused_at, r.pause_reason or "", is_paused=True)
        for r in sorted(rows, key=lambda row: str(row.name))
    )


def _lost_query(now: datetime) -> Query:
    """Runs of the last hour that ended as lost, newest first; among the newest ``COUNT_LIMIT`` failures."""
    runs, jobs, workers = tables.runs, tables.jobs, tables.workers
    newest = (
        select(runs.c.job_id, runs.c.scheduled_at, runs.c.worker_id, runs.c.outcome, runs.c.finished_at, runs.c.token)
        .where(text("outcome IN (4, 5, 6)"), runs.c.finished_at > now - timedelta(hours=1))
        .order_by(runs.c.finished_at.desc(), runs.c.token.desc())
        .limit(COUNT_LIMIT)
        .subquery("newest")
    )
    return (
        select(newest, jobs.c.name.label("job"), workers.c.name.label("worker"))
        .select_from(newest)
        .join(jobs, jobs.c.job_id == newest.c.job_id)
        .outerjoin(workers, workers.c.worker_id == newest.c.worker_id)
        .where(newest.c.outcome == State.LOST)
        .order_by(newest.c.finished_at.desc(), newest.c.token.desc())
        .limit(_LISTED)
    )


def _lost_of(rows: Iterable[Any]) -> tuple[LostRun, ...]:
    """Newest first."""
    newest = sorted(rows, key=lambda row: (row.finished_at, row.token), reverse=True)
    return tuple(
        LostRun(row.job, row.scheduled_at, row.worker or f"worker {row.worker_id}", row.finished_at) for row in newest
    )


def _proposals_query() -> Query:
    """Open proposals, oldest first."""
    table, jobs = tables.proposals, tables.jobs
    return (
        select(table, jobs.c.name)
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(table.c.state == "open")
        .order_by(table.c.made_at, table.c.proposal_id)
        .limit(100)
    )


def _proposals_of(rows: Iterable[Any]) -> tuple[ProposalView, ...]:
    """Oldest first."""
    return tuple(
        ProposalView(r.proposal_id, r.name, r.after, r.upto, r.count, r.made_at, r.lapses_at, r.term)
        for r in sorted(rows, key=lambda row: (row.made_at, row.proposal_id))
    )
