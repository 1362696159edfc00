"""The history of jobs: their revisions, joined with the audit log's word about who, when and why.

A job's own history costs its revisions and one look through the audit log; that of all jobs its newest entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, tuple_

from sexton.errors import NotFound
from sexton.history_views import History, HistoryEntry, HistoryKind, PastRevision
from sexton.job_page_views import OpenedRevision
from sexton.jobs import JobDefinition
from sexton.store import tables
from sexton.store.read_jobs import read_job_row

_KINDS = {
    "job.created": HistoryKind.CREATED,
    "job.revised": HistoryKind.REVISED,
    "job.retired": HistoryKind.RETIRED,
    "job.paused": HistoryKind.PAUSED,
    "job.resumed": HistoryKind.RESUMED,
    "job.quarantined": HistoryKind.QUARANTINED,
}
_OF_REVISIONS = ("job.created", "job.revised")
_AT_ONCE = 400  # pairs in one statement
_Key = tuple[int, int]


def read_history(connection: Connection, limit: int) -> History:
    """The newest entries of all jobs."""
    events = _read_events(connection, None, limit + 1)
    wanted = [key for event in events[:limit] if (key := _revision_of(event)) is not None]
    revisions = _read_revisions(connection, [*wanted, *((job_id, number - 1) for job_id, number in wanted)])
    return History(tuple(_entry_of_event(event, revisions) for event in events[:limit]), len(events) <= limit)


def read_job_history(connection: Connection, name: str, limit: int) -> History:
    """The newest entries of every job that has, or had when it was retired, this name. Raises ``NotFound``."""
    jobs, table = tables.jobs, tables.revisions
    job_ids = list(connection.execute(select(jobs.c.job_id).where(jobs.c.name_key == name.lower())).scalars())
    if not job_ids:
        read_job_row(connection, name)  # says what is near, or what the job is called now
    events = _read_events(connection, job_ids, limit + 1)
    told = {key: event for event in events if (key := _revision_of(event)) is not None}
    rows = connection.execute(
        select(table)
        .where(table.c.job_id.in_(job_ids))
        .order_by(table.c.applied_at.desc(), table.c.job_id.desc(), table.c.revision.desc())
        .limit(limit + 1)
    ).all()
    revisions = {(row.job_id, row.revision): row for row in rows}
    last = [(row.job_id, row.revision - 1) for row in rows if (row.job_id, row.revision - 1) not in revisions]
    before = {**revisions, **_read_revisions(connection, last)}
    entries = [_entry_of_revision(row, told.get(key), before) for key, row in revisions.items()]
    entries += [_entry_of_event(event, {}) for event in events if event.action not in _OF_REVISIONS]
    entries.sort(key=lambda entry: (entry.at, entry.revision or 0), reverse=True)
    return History(tuple(entries[:limit]), len(entries) <= limit)


def read_past_revision(connection: Connection, name: str, revision: int) -> PastRevision:
    """A revision of the job of this name (a retired one only where no other has it). Raises ``NotFound``."""
    row = read_job_row(connection, name)
    found = _read_revisions(connection, [(row.job_id, revision), (row.job_id, row.revision)])
    past = found.get((row.job_id, revision))
    if past is None:
        raise NotFound(
            f"job {row.name!r} has no revision {revision}",
            hint=f"its revisions are 1 to {row.revision}: `sexton history {row.name}` lists them",
        )
    return PastRevision(
        job_id=row.job_id,
        name=row.name,
        is_retired=row.retired_at is not None,
        newest=row.revision,
        revision=revision,
        definition=JobDefinition.from_text(past.definition),
        hash_seed=json.loads(past.schedule).get("hash_seed") or json.loads(past.firing).get("jitter_seed"),
        hash_seed_now=row.hash_seed,
        is_paused=row.paused_at is not None,
        is_quarantined=row.quarantined_at is not None,
        current=JobDefinition.from_text(found[row.job_id, row.revision].definition),
    )


def read_opened_revision(connection: Connection, name: str, revision: int) -> OpenedRevision:
    """A revision of the job of this name, with the one before it. Raises ``NotFound``."""
    row = read_job_row(connection, name)
    found = _read_revisions(connection, [(row.job_id, revision), (row.job_id, revision - 1)])
    wanted = found.get((row.job_id, revision))
    if wanted is None:
        raise NotFound(f"job {row.name!r} has no revision {revision}", hint=f"its revisions are 1 to {row.revision}")
    told = {key: event for event in _read_events(connection, [row.job_id], 1000) if (key := _revision_of(event))}
    return OpenedRevision(_entry_of_revision(wanted, told.get((row.job_id, revision)), found), row.revision)


def _read_events(connection: Connection, job_ids: Sequence[int] | None, limit: int) -> Sequence[Row[Any]]:
    table, jobs = tables.events, tables.jobs
    query = (
        select(table, jobs.c.name)
        .join(jobs, jobs.c.job_id == table.c.job_id)
        .where(table.c.action.in_(_KINDS))
        .order_by(table.c.event_id.desc())
        .limit(limit)
    )
    return connection.execute(query if job_ids is None else query.where(table.c.job_id.in_(job_ids))).all()


def _read_revisions(connection: Connection, keys: Iterable[_Key]) -> dict[_Key, Row[Any]]:
    table = tables.revisions
    wanted = sorted({key for key in keys if key[1] > 0})
    found: dict[_Key, Row[Any]] = {}
    for first in range(0, len(wanted), _AT_ONCE):
        some = tuple_(table.c.job_id, table.c.revision).in_(wanted[first : first + _AT_ONCE])
        found |= {(row.job_id, row.revision): row for row in connection.execute(select(table).where(some))}
    return found


def _revision_of(event: Row[Any]) -> _Key | None:
    """The revision that an event brought."""
    if event.action not in _OF_REVISIONS:
        return None
    revision = json.loads(event.detail).get("revision")
    return (event.job_id, revision) if isinstance(revision, int) else None


def _entry_of_event(event: Row[Any], revisions: Mapping[_Key, Row[Any]]) -> HistoryEntry:
    key = _revision_of(event)
    if key is not None and (row := revisions.get(key)) is not None:
        return _entry_of_revision(row, event, revisions)
    detail = json.loads(event.detail)
    return HistoryEntry(
        at=event.at,
        who=event.actor,
        kind=_KINDS[event.action],
        job_id=event.job_id,
        job=str(detail.get("job") or event.name),
        why=str(detail.get("why") or detail.get("reason") or ""),
    )


def _entry_of_revision(row: Row[Any], event: Row[Any] | None, revisions: Mapping[_Key, Row[Any]]) -> HistoryEntry:
    definition = JobDefinition.from_text(row.definition)
    earlier = revisions.get((row.job_id, row.revision - 1))
    before = None if earlier is None else JobDefinition.from_text(earlier.definition)
    kind = HistoryKind.CREATED if row.revision == 1 else HistoryKind.REVISED
    if before is not None and before.name != definition.name:
        kind = HistoryKind.RENAMED
    return HistoryEntry(
        at=row.applied_at,
        who=row.applied_by,
        kind=kind,
        job_id=row.job_id,
        job=definition.name,
        why="" if event is None else str(json.loads(event.detail).get("why") or ""),
        revision=row.revision,
        in_force_since=row.in_force_since,
        in_force_until=row.in_force_until,
        definition=definition,
        before=before,
    )
