"""The whole ledger, job by job, out of one snapshot: what the audit reads.

Read in one transaction (REPEATABLE READ on PostgreSQL), so that revisions, cursors, claims and skip records belong to
one moment, also under a live cluster: it locks nothing and nobody waits for it. Jobs are read by the hundred and their
claims streamed, so that neither a million jobs nor a million claims lie in memory at once; one job's do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Row, func, select, text

from sexton.audit import audit_job
from sexton.audit_findings import AuditReport, Window
from sexton.audited_ledger import AuditedRevision, ClaimColumns, JobLedger, SkipColumns
from sexton.bulk_ticks import micros_of
from sexton.errors import SextonError
from sexton.inputs import own_inputs
from sexton.job_rules import firing_rules
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.store.ledger_columns import JobRange, read_claims, read_skips
from sexton.store.ledger_orphans import orphans
from sexton.store.older_zones import older_zone_data
from sexton.store.protocol import Store
from sexton.store.tables import cluster, cursors, jobs, pauses, revisions
from sexton.zone_files import with_zone_data

_JOBS = 200  # whose revisions are in memory at once
_ANSWER_SECONDS = 120.0
_AHEAD = timedelta(days=36_525)  # claims are read up to now and this: beyond the cursor none should be
_NO_CLAIMS, _NO_SKIPS = ClaimColumns(), SkipColumns()

Progress = Callable[[int, int, AuditReport], None]
"""Called now and then with how many jobs are judged, how many there are, and the report so far."""


def audit_ledger(
    store: Store, after: datetime, upto: datetime | None = None, progress: Progress | None = None
) -> AuditReport:
    """Judge every job in ``(after, upto]``, ``upto`` at most (and by default) the database's now.

    With this process's tick engine and public holidays, and the zone data that each revision was computed with, where
    the ledger holds it; revisions computed with others are said to be, not judged.
    Raises ``DatabaseUnreachable``.
    """
    now = store.now()
    with store.reads.snapshot() as connection, _patiently(connection):
        head = connection.execute(select(cluster.c.pruned_before, cluster.c.halted)).one()
        window = Window(
            after=after,
            upto=now if upto is None else min(upto, now),
            now=now,
            pruned_before=head.pruned_before,
            inputs_id=own_inputs().inputs_id,
        )
        report = AuditReport(window)
        total = 0 if progress is None else connection.execute(select(func.count()).select_from(jobs)).scalar_one()
        with closing(job_ledgers(connection, window, "the cluster is halted" if head.halted else "")) as ledgers:
            for ledger in ledgers:
                report.add(audit_job(ledger, window))
                if progress is not None and report.jobs % _JOBS == 0:
                    progress(report.jobs, total, report)
        report.differences.extend(orphans(connection))
        return report


@contextmanager
def _patiently(connection: Connection) -> Iterator[None]:
    """A busy server may sort for long before a first row comes."""
    if connection.dialect.name != "postgresql":
        yield
        return
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    driver: Any = connection.connection.driver_connection
    usual = driver.answer_within
    driver.answer_within = max(usual, _ANSWER_SECONDS)
    try:
        yield
    finally:
        driver.answer_within = usual


def job_ledgers(connection: Connection, window: Window, standing: str = "") -> Generator[JobLedger]:
    """Every job that ever was, with its claims and skip records in the window and ahead of it, by job id.

    ``standing``: what keeps the ticks of all jobs from being decided.
    """
    found = connection.execute(select(revisions.c.inputs_id).distinct()).scalars()
    last, older = 0, older_zone_data(connection, found)
    while some := _next_jobs(connection, last):
        last = some[-1].job_id
        yield from _ledgers_of(connection, some, window, standing, older)


def _next_jobs(connection: Connection, after: int) -> Sequence[Any]:
    return connection.execute(
        select(jobs.c.job_id, jobs.c.name, jobs.c.quarantined_at, jobs.c.paused_at, cursors.c.at)
        .outerjoin(cursors, cursors.c.job_id == jobs.c.job_id)
        .where(jobs.c.job_id > after)
        .order_by(jobs.c.job_id)
        .limit(_JOBS)
    ).all()


def _ledgers_of(
    connection: Connection, some: Sequence[Any], window: Window, standing: str, older: frozenset[str]
) -> Iterator[JobLedger]:
    """The ledgers of these jobs, which follow one another by their ids."""
    first, last = some[0].job_id, some[-1].job_id
    wanted = JobRange(first, last, micros_of(window.after), micros_of(window.upto + _ahead_of(window)))
    revisions_of = _revisions(connection, first, last)
    skips_of = dict(read_skips(connection, wanted))
    paused_since = {
        row.job_id: row.since
        for row in connection.execute(
            select(pauses.c.job_id, pauses.c.since).where(
                pauses.c.until.is_(None), pauses.c.job_id >= first, pauses.c.job_id <= last
            )
        )
    }
    claims = read_claims(connection, wanted)
    claimed, columns = next(claims, (last + 1, _NO_CLAIMS))
    for row in some:
        while claimed < row.job_id:
            claimed, columns = next(claims, (last + 1, _NO_CLAIMS))
        paused, broken = _pause(row.paused_at, paused_since.get(row.job_id))
        yield JobLedger(
            job_id=row.job_id,
            name=row.name,
            cursor=row.at,
            revisions=tuple(_revision(one, older) for one in revisions_of.get(row.job_id, ())),
            open_pause_since=paused,
            claims=columns if claimed == row.job_id else _NO_CLAIMS,
            skips=skips_of.get(row.job_id, _NO_SKIPS),
            standing=standing if row.quarantined_at is None else "the job is quarantined",
            broken=broken,
        )


def _pause(of_job: datetime | None, recorded: datetime | None) -> tuple[datetime | None, tuple[str, ...]]:
    """Since when the job is paused, where both its row and an open pause say so; else what does not fit."""
    if of_job is None and recorded is not None:
        return None, ("a pause is open of a job that is not paused",)
    if of_job is not None and recorded is None:
        return None, ("the job is paused, and no pause of it is open",)
    return recorded, ()


def _ahead_of(window: Window) -> timedelta:
    """How far behind the window claims are read: to its end where that lies in the past, else all there are."""
    return timedelta(0) if window.upto < window.now else _AHEAD


def _revisions(connection: Connection, first: int, last: int) -> dict[int, list[Row[Any]]]:
    columns = (revisions.c[name] for name in _REVISION_COLUMNS)
    rows = connection.execute(
        select(*columns)
        .where(revisions.c.job_id >= first, revisions.c.job_id <= last)
        .order_by(revisions.c.job_id, revisions.c.revision)
    )
    return {job_id: list(of_job) for job_id, of_job in groupby(rows, key=attrgetter("job_id"))}


_REVISION_COLUMNS = ("job_id", "revision", "schedule", "firing", "in_force_since", "in_force_until", "inputs_id")


def _revision(row: Row[Any], older: frozenset[str]) -> AuditedRevision:
    here = own_inputs()
    inputs_id = row.inputs_id or here.inputs_id  # empty until a first node starts: nothing is computed yet
    version, _, rest = inputs_id.partition("/")
    if version in older:
        inputs_id = f"{here.zone_data}/{rest}"
    else:
        version = ""
    read = _read(row.schedule, row.firing, version)
    return AuditedRevision(
        revision=row.revision,
        schedule=None if read is None else read[0],
        since=row.in_force_since,
        until=row.in_force_until,
        grace=timedelta(0) if read is None else read[1],
        inputs_id=inputs_id,
    )


@lru_cache(maxsize=4096)
def _read(schedule: str, firing: str, version: str) -> tuple[Schedule, timedelta] | None:
    """Schedule, by that version's zone data where one is named, and grace; None where they are of a younger release,
    or damaged."""
    try:
        spec = json.loads(with_zone_data(schedule, version) if version else schedule)
        return schedule_from_spec(spec), firing_rules(firing).missed.grace
    except (SextonError, LookupError, ValueError, TypeError, AttributeError):
        return None
