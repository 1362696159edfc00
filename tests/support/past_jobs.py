"""Jobs that are older than the test: ticks of the past that fell due, and what was decided about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sexton.decisions import NewClaim, NewSkip, SkipReason, TickBatch
from sexton.jobs import JobDefinition
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import JobRow, Store
from sexton.targets import CommandTarget
from tests.support.leader_scene import MINUTE, SECOND, claim, create, move, read, set_columns


def old_job(store: Store, url: str, name: str = "books", minutes: int = 60, **keys: Any) -> JobRow:
    """A minutely job, in force and decided up to so many minutes ago; its last tick was five seconds ago."""
    newest = store.now().replace(microsecond=0) - 5 * SECOND
    since = newest - minutes * MINUTE
    part = {"every_ms": 60_000, "anchor": newest.isoformat().replace("+00:00", "Z")}
    (job,) = create(store, JobDefinition(name, (part,), CommandTarget(("true",)), **keys))
    set_columns(url, "revisions", {"job_id": job.job_id}, in_force_since=since)
    set_columns(url, "cursors", {"job_id": job.job_id}, at=since)
    return read(store, job.job_id)


def minutes_after(job: JobRow, first: int, last: int) -> list[datetime]:
    """The job's ticks from the ``first`` minute after its cursor to the ``last``, both included."""
    return [job.at + number * MINUTE for number in range(first, last + 1)]


def skip(job: JobRow, after: int, upto: int, reason: SkipReason = SkipReason.EXPIRED, detail: str = "why") -> NewSkip:
    """The ticks of these minutes after the cursor in one skip record."""
    begin, end = job.at + after * MINUTE, job.at + upto * MINUTE
    return NewSkip(job.job_id, begin, end, upto - after, reason, detail, job.revisions[-1].revision)


def decide(
    store: Store, term: int, job: JobRow, upto: int, skips: Sequence[NewSkip] = (), claims: Sequence[NewClaim] = ()
) -> JobRow:
    """Commit as a leader does: the cursor moves so many minutes on. The job as it was before."""
    batch = TickBatch(term, store.now(), (move(job, job.at + upto * MINUTE),), tuple(claims), tuple(skips))
    assert store.ticks.commit(batch).moved == 1
    return job


def claims_of(job: JobRow, ticks: Sequence[datetime]) -> list[NewClaim]:
    return [claim(job, tick) for tick in ticks]


def differences(store: Store) -> list[str]:
    """What an audit of the last day finds wrong, missing ticks of the last minute apart: nobody leads here."""
    now = store.now()
    report = audit_ledger(store, now - timedelta(days=1), now)
    return [f"{found.verdict} {found.at} {found.detail}" for found in report.differences if found.verdict.fails]
