"""A ledger as a leader leaves it is clean, and damaged in any way it is not (invariant 2); on both databases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, create_engine, delete, insert, select, update

from sexton.audit_findings import AuditReport, Verdict
from sexton.claims import Origin
from sexton.decisions import NewSkip, SkipReason
from sexton.store import ledger_columns, ledger_snapshot, tables
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from tests.support.leader_scene import SECOND, batch, claim, create, definition, lead, move, read, set_columns

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
AGO = 120 * SECOND
NAMES = ("anna", "bella", "carol")


@pytest.fixture
def jobs(store: Store, ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> list[JobRow]:
    """Jobs of every ten seconds since two minutes, all their ticks decided: three claims, two that were skipped, and so
    on. What is read in blocks is read in small ones."""
    monkeypatch.setattr(ledger_columns, "_BLOCK", 4)
    monkeypatch.setattr(ledger_snapshot, "_JOBS", 2)
    term = lead(store)
    made = create(store, *(definition(name, 10 * SECOND) for name in NAMES))
    since = (made[0].at - AGO).replace(microsecond=0)
    set_columns(ledger_url, "cursors", {}, at=since)
    set_columns(ledger_url, "revisions", {}, in_force_since=since, inputs_id="")
    first = since + (10 - since.second % 10) * SECOND
    for job in (read(store, one.job_id) for one in made):
        ticks = [first + number * 10 * SECOND for number in range(12) if first + number * 10 * SECOND <= store.now()]
        claims, skips, at = [], [], since
        for number, tick in enumerate(ticks):
            if number % 5 < 3:
                claims.append(claim(job, tick, origin=Origin.CATCH_UP if number % 5 else Origin.SCHEDULE))
            elif number % 5 == 4:
                skips.append(NewSkip(job.job_id, at, tick, 2, SkipReason.SKIPPED, "older than 1s", 1))
            at = at if number % 5 == 3 else tick
        upto = skips[-1].upto
        done = batch(
            store, term, [], moves=(move(job, upto),), claims=tuple(c for c in claims if c.scheduled_at < upto)
        )
        assert store.ticks.commit(replace(done, skips=tuple(skips))).moved == 1
    return [read(store, one.job_id) for one in made]


def counts(report: AuditReport) -> dict[str, int]:
    return {word: number for word, number in report.counts().items() if number}


def judged(store: Store, upto: datetime) -> AuditReport:
    """The audit up to the cursors: what is after them is pending."""
    return audit_ledger(store, BEGINNING, upto)


def test_a_ledger_as_a_leader_leaves_it_is_clean(store: Store, jobs: list[JobRow]) -> None:
    seen: list[tuple[int, int]] = []
    report = audit_ledger(store, BEGINNING, jobs[0].at, lambda done, of, _: seen.append((done, of)))
    assert (counts(report), report.jobs, report.due, report.decided) == ({}, 3, 30, 30)
    assert seen == [(2, 3)]


def test_a_window_in_the_past_is_judged_alone(store: Store, jobs: list[JobRow]) -> None:
    report = audit_ledger(store, jobs[0].at - 35 * SECOND, jobs[0].at - 15 * SECOND)
    assert (counts(report), report.due) == ({}, 6)


Damage = Callable[[Connection, JobRow], object]


def lose_a_claim(connection: Connection, job: JobRow) -> None:
    table = tables.claims
    newest = connection.execute(select(table.c.scheduled_at).where(table.c.job_id == job.job_id)).scalars().all()
    where = (table.c.job_id == job.job_id, table.c.scheduled_at == newest[1])
    assert connection.execute(delete(table).where(*where)).rowcount == 1


def lose_a_skip_record(connection: Connection, job: JobRow) -> None:
    connection.execute(delete(tables.skips).where(tables.skips.c.job_id == job.job_id, tables.skips.c.upto == job.at))


def claim_what_was_skipped(connection: Connection, job: JobRow) -> None:
    add_claim(connection, job, job.at)


def claim_what_is_not_due(connection: Connection, job: JobRow) -> None:
    add_claim(connection, job, job.at - 25 * SECOND)


def claim_beyond_the_cursor(connection: Connection, job: JobRow) -> None:
    add_claim(connection, job, job.at + 10 * SECOND)


def claim_under_another_revision(connection: Connection, job: JobRow) -> None:
    connection.execute(update(tables.claims).where(tables.claims.c.job_id == job.job_id).values(revision=7))


def miscount(connection: Connection, job: JobRow) -> None:
    table = tables.skips
    connection.execute(update(table).where(table.c.job_id == job.job_id, table.c.upto == job.at).values(count=3))


def skip_twice(connection: Connection, job: JobRow) -> None:
    row = connection.execute(select(tables.skips).where(tables.skips.c.upto == job.at)).mappings().first()
    assert row is not None
    values = {**row, "job_id": job.job_id, "after": job.at - 10 * SECOND, "count": 1}
    connection.execute(insert(tables.skips).values(values))


def compute_with_another_engine(connection: Connection, job: JobRow) -> None:
    table = tables.revisions
    connection.execute(update(table).where(table.c.job_id == job.job_id).values(inputs_id="2026b/99/0.1"))


def resolve_without_claims(connection: Connection, job: JobRow) -> None:
    table = tables.skips
    where = (table.c.job_id == job.job_id, table.c.upto == job.at)
    connection.execute(update(table).where(*where).values(resolved_at=job.at, resolved_by="x"))


def lose_the_cursor(connection: Connection, job: JobRow) -> None:
    """What comes after its last decision is overdue, too, once it is older than the grace."""
    connection.execute(delete(tables.cursors).where(tables.cursors.c.job_id == job.job_id))


def forge_a_pause(connection: Connection, job: JobRow) -> None:
    connection.execute(insert(tables.pauses).values(job_id=job.job_id, since=job.at, who="x", why="y"))


def lose_a_pause(connection: Connection, job: JobRow) -> None:
    connection.execute(update(tables.jobs).where(tables.jobs.c.job_id == job.job_id).values(paused_at=job.at))


def claim_with_an_unknown_origin(connection: Connection, job: JobRow) -> None:
    connection.execute(update(tables.claims).where(tables.claims.c.job_id == job.job_id).values(origin=7))


def spoil_the_schedule(connection: Connection, job: JobRow) -> None:
    connection.execute(update(tables.revisions).where(tables.revisions.c.job_id == job.job_id).values(schedule="{"))


def spoil_the_rules(connection: Connection, job: JobRow) -> None:
    connection.execute(update(tables.revisions).where(tables.revisions.c.job_id == job.job_id).values(firing="{}"))


def stand_still(connection: Connection, job: JobRow) -> None:
    table = tables.cursors
    connection.execute(update(table).where(table.c.job_id == job.job_id).values(at=job.at - AGO))
    connection.execute(delete(tables.claims).where(tables.claims.c.job_id == job.job_id))
    connection.execute(delete(tables.skips).where(tables.skips.c.job_id == job.job_id))
    revisions = tables.revisions
    since = job.at - AGO
    connection.execute(update(revisions).where(revisions.c.job_id == job.job_id).values(in_force_since=since))


def add_claim(connection: Connection, job: JobRow, at: datetime) -> None:
    table = tables.claims
    row = connection.execute(select(table).where(table.c.job_id == job.job_id).limit(1)).mappings().one()
    connection.execute(insert(table).values({**row, "scheduled_at": at, "origin": 0}))


@pytest.mark.parametrize(
    ("damage", "verdict", "number"),
    [
        (lose_a_claim, Verdict.MISSING, 1),
        (lose_a_skip_record, Verdict.MISSING, 2),
        (claim_what_was_skipped, Verdict.DOUBLE, 1),
        (skip_twice, Verdict.DOUBLE, 1),
        (claim_what_is_not_due, Verdict.UNEXPECTED, 1),
        (claim_beyond_the_cursor, Verdict.UNEXPECTED, 1),
        (claim_under_another_revision, Verdict.UNEXPECTED, 6),
        (miscount, Verdict.MISCOUNTED, 1),
        (compute_with_another_engine, Verdict.INPUTS_CHANGED, 1),
        (resolve_without_claims, Verdict.MISSING, 2),
        (lose_the_cursor, Verdict.BROKEN, 1),
        (forge_a_pause, Verdict.BROKEN, 1),
        (lose_a_pause, Verdict.BROKEN, 1),
        (claim_with_an_unknown_origin, Verdict.BROKEN, 6),
        (spoil_the_schedule, Verdict.INPUTS_CHANGED, 1),
        (spoil_the_rules, Verdict.INPUTS_CHANGED, 1),
        (stand_still, Verdict.OVERDUE, None),
    ],
)
def test_each_damage_is_found_in_its_job_alone(
    store: Store, ledger_url: str, jobs: list[JobRow], damage: Damage, verdict: Verdict, number: int | None
) -> None:
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        damage(connection, jobs[1])
    engine.dispose()
    report = audit_ledger(store, BEGINNING)
    failing = [difference for difference in report.differences if difference.verdict.fails]
    assert {difference.verdict for difference in failing} == {verdict}
    assert {difference.job for difference in failing} == {"bella"}
    assert not report.is_clean
    if number is not None:
        assert report.count(verdict) == number


def test_what_is_left_of_a_job_whose_row_is_lost_is_named(store: Store, ledger_url: str, jobs: list[JobRow]) -> None:
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(delete(tables.jobs).where(tables.jobs.c.job_id == jobs[1].job_id))
    engine.dispose()
    report = judged(store, jobs[0].at)
    (told,) = report.differences
    assert (report.jobs, told.job, told.verdict, told.count) == (2, f"#{jobs[1].job_id}", "broken", 10)
    assert told.detail.endswith("left are 6 claims, 2 skip records, 1 revision, 1 cursor")


def test_undecided_ticks_of_a_cluster_at_work_are_pending_and_fail_nothing(store: Store, jobs: list[JobRow]) -> None:
    report = audit_ledger(store, BEGINNING)
    assert report.is_clean
    assert set(counts(report)) <= {"pending"}


def test_what_was_pruned_is_said_and_not_judged(store: Store, ledger_url: str, jobs: list[JobRow]) -> None:
    watermark = jobs[0].at - 45 * SECOND
    set_columns(ledger_url, "cluster", {}, pruned_before=watermark)
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(delete(tables.claims).where(tables.claims.c.scheduled_at <= watermark))
        connection.execute(delete(tables.skips).where(tables.skips.c.upto <= watermark))
    engine.dispose()
    report = judged(store, jobs[0].at)
    assert counts(report) == {"pruned": 15}


def test_edits_pauses_and_retirement_leave_a_clean_ledger(store: Store, ledger_url: str, jobs: list[JobRow]) -> None:
    paused, edited, retired = jobs
    store.edits.edit([JobChange(ChangeKind.PAUSE, paused.job_id, why="storage")], "ana")
    changed = definition(NAMES[1], timedelta(hours=1))
    store.edits.edit([JobChange(ChangeKind.REVISE, edited.job_id, changed)], "ana")
    store.edits.edit([JobChange(ChangeKind.RETIRE, retired.job_id)], "ana")
    assert audit_ledger(store, BEGINNING).is_clean


def test_a_quarantine_and_a_halt_are_told_with_what_they_leave_undecided(
    store: Store, ledger_url: str, jobs: list[JobRow]
) -> None:
    set_columns(ledger_url, "cursors", {"job_id": jobs[0].job_id}, at=jobs[0].at - AGO)
    store.edits.halt("ana", "")
    set_columns(ledger_url, "jobs", {"job_id": jobs[1].job_id}, quarantined_at=store.now())
    set_columns(ledger_url, "revisions", {}, in_force_since=jobs[0].at - 2 * AGO)
    set_columns(ledger_url, "cursors", {}, at=jobs[0].at - AGO)
    details = {one.job: one.detail for one in audit_ledger(store, BEGINNING).differences if one.verdict == "overdue"}
    assert details["anna"].endswith("; the cluster is halted")
    assert details["bella"].endswith("; the job is quarantined")
