"""Cursors set by hand: one decision a tick whichever way they go, on both databases."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from sexton.cursor_moves import CursorStep, plan_step
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import JobRow, StepRequest, Store
from tests.support.leader_scene import MINUTE, SECOND, batch, create, definition, lead, read, rows, set_columns

HOUR = timedelta(hours=1)


def restored(store: Store, url: str, *names: str, ago: timedelta = 6 * HOUR) -> list[JobRow]:
    """Minutely jobs as a backup of so long ago has them: nothing decided since."""
    jobs = create(store, *(definition(name, MINUTE) for name in names))
    begin = (store.now() - ago).replace(second=0, microsecond=0)
    for job in jobs:
        set_columns(url, "cursors", {"job_id": job.job_id}, at=begin)
        set_columns(url, "revisions", {"job_id": job.job_id}, in_force_since=begin)
    return [read(store, job.job_id) for job in jobs]


def planned(store: Store, to: datetime, job: JobRow) -> CursorStep:
    (stand,) = store.restores.cursor_stands(to, [job.job_id]).stands
    step = plan_step(stand, to)
    assert isinstance(step, CursorStep), step
    return step


def is_clean(store: Store, since: datetime) -> bool:
    return audit_ledger(store, since - SECOND).is_clean


def test_a_forward_step_skips_what_lies_between_in_one_record(store: Store, ledger_url: str) -> None:
    """Invariant 2: each tick has exactly one decision, with the operator's reason."""
    (job,) = restored(store, ledger_url, "a")
    assert not is_clean(store, job.at)
    to = store.now()
    step = planned(store, to, job)
    assert store.restores.step_cursors([step], "ops", "restored from 02:00") == {job.job_id}
    (skip,) = rows(ledger_url, "skips")
    assert (skip.after, skip.upto, skip.reason, skip.detail) == (job.at, to, "skipped", "restored from 02:00")
    assert skip._mapping["count"] == step.skipped == (to - job.at) // MINUTE
    now = read(store, job.job_id)
    assert (now.at, now.seq) == (to, job.seq + 1)
    assert is_clean(store, job.at)
    assert [(row.actor, row.action) for row in rows(ledger_url, "events")][-1] == ("ops", "cursor.set")


def test_a_step_planned_before_the_cursor_moved_writes_nothing(store: Store, ledger_url: str) -> None:
    """Invariant 6: of an operator and a leader, or two operators, one wins."""
    (job,) = restored(store, ledger_url, "a")
    step = planned(store, store.now(), job)
    assert store.restores.step_cursors([step], "ops", "first") == {job.job_id}
    assert store.restores.step_cursors([step], "ops", "second") == frozenset()
    assert [row.detail for row in rows(ledger_url, "skips")] == ["first"]


def test_a_leader_that_planned_before_a_step_writes_nothing(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = restored(store, ledger_url, "a")
    late = batch(store, term, [(job, [job.at + MINUTE])])
    assert store.restores.step_cursors([planned(store, store.now(), job)], "ops", "x") == {job.job_id}
    assert store.ticks.commit(late).not_moved == (job.job_id,)
    assert rows(ledger_url, "claims") == []


def test_no_step_goes_beyond_now(store: Store, ledger_url: str) -> None:
    (job,) = restored(store, ledger_url, "a")
    ahead = CursorStep(job.job_id, job.name, job.seq, job.at, store.now() + MINUTE, revision=1, skipped=361)
    assert store.restores.step_cursors([ahead], "ops", "x") == frozenset()
    assert (read(store, job.job_id), rows(ledger_url, "skips")) == (job, [])


def test_a_step_back_takes_away_what_was_decided_and_nobody_was_granted(store: Store, ledger_url: str) -> None:
    """Invariant 2: the cursor goes back in the transaction that deletes the claims it steps back over."""
    term = lead(store)
    (job,) = restored(store, ledger_url, "a")
    middle = job.at + 10 * MINUTE
    assert store.restores.step_cursors([planned(store, job.at + 20 * MINUTE, job)], "ops", "too far")
    moved = read(store, job.job_id)
    ticks = [moved.at + MINUTE, moved.at + 2 * MINUTE]
    assert store.ticks.commit(batch(store, term, [(moved, ticks)])).moved == 1
    step = planned(store, middle, job)
    assert (step.withdrawn, step.reopened) == (2, 12)
    assert store.restores.step_cursors([step], "ops", "mended") == {job.job_id}
    assert rows(ledger_url, "claims") == []
    (skip,) = rows(ledger_url, "skips")
    assert (skip.after, skip.upto, skip._mapping["count"]) == (job.at, middle, 10)
    assert read(store, job.job_id).at == middle
    assert store.restores.step_cursors([planned(store, store.now(), job)], "ops", "again")
    assert is_clean(store, job.at)


@pytest.mark.parametrize("what", ["granted", "resolved", "held"])
def test_a_step_back_over_what_cannot_be_taken_back_is_refused(store: Store, ledger_url: str, what: str) -> None:
    """Told by the plan, and a condition of the statement where it happened after the plan."""
    term = lead(store)
    (job,) = restored(store, ledger_url, "a")
    tick = job.at + MINUTE
    assert store.ticks.commit(batch(store, term, [(job, [tick])])).moved == 1
    moved = read(store, job.job_id)
    assert store.restores.step_cursors([planned(store, tick + MINUTE, moved)], "ops", "x")
    early = planned(store, job.at, job)
    if what == "granted":
        set_columns(ledger_url, "claims", {"job_id": job.job_id}, start_by=None)
        worker = store.grants.register("w", "vm", "0.1.0", 1, ["default"], 1)
        (grant,) = store.grants.step(StepRequest(worker, ("default",), 1, timedelta(seconds=30), 10)).grants
        assert grant.scheduled_at == tick
    elif what == "resolved":
        set_columns(ledger_url, "skips", {"job_id": job.job_id}, resolved_at=store.now(), resolved_by="ops")
    else:
        set_columns(ledger_url, "claims", {"job_id": job.job_id}, state=11)
    assert store.restores.step_cursors([early], "ops", "x") == frozenset()
    (stand,) = store.restores.cursor_stands(job.at, [job.job_id]).stands
    said = {"granted": "granted beyond that place", "resolved": "ops has resolved", "held": "by an operator, beyond"}
    assert said[what] in str(plan_step(stand, job.at))
    assert len(rows(ledger_url, "claims")) == 1
    assert read(store, job.job_id).at == tick + MINUTE
