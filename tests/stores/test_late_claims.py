"""Claims that no worker took within their time, decided together under the job's cursor; on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sexton.claims import Origin, State
from sexton.decisions import Cause, JobDecision, LatePlan, LateVerdict, NewProposal, SkipReason
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from tests.support.claim_rows import ClaimRows
from tests.support.leader_scene import (
    MINUTE,
    SECOND,
    batch,
    claim,
    create,
    definition,
    lead,
    read,
    rows,
    set_columns,
)

FIRES = "fires"


@pytest.fixture(autouse=True)
def only_arrows(ledger_url: str) -> None:
    """Refuse every change of a claim's state that `sexton.claims.ARROWS` does not have."""
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    scene.close()


def write_late(store: Store, term: int, job: JobRow, count: int = 3) -> list[datetime]:
    """Claims that should have started a while ago."""
    ticks = [job.at + number * SECOND for number in range(1, count + 1)]
    claims = tuple(claim(job, at, start_by=store.now() - MINUTE) for at in ticks)
    assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    return ticks


def test_what_waits_to_be_caught_up_with_is_counted_up_to_a_limit(store: Store, ledger_url: str) -> None:
    scene = ClaimRows(ledger_url)
    for _ in range(3):
        scene.add(1, origin=int(Origin.CATCH_UP), available_at=store.now() + MINUTE)
    scene.add(1, origin=int(Origin.CATCH_UP), blocked=True)
    scene.add(1, origin=int(Origin.CATCH_UP), attempt=1)
    scene.add(1, origin=int(Origin.BACKFILL))
    scene.add(1)
    scene.close()
    assert store.ticks.waiting_catch_up(100) == 3
    assert store.ticks.waiting_catch_up(2) == 2


def plan(term: int, job: JobRow, verdicts: Sequence[LateVerdict], proposal: NewProposal | None = None) -> LatePlan:
    ticks = [verdict.scheduled_at for verdict in verdicts]
    fired = sum(verdict.becomes == FIRES for verdict in verdicts)
    decision = JobDecision(
        job.job_id,
        1,
        Cause.NOT_STARTED,
        ticks[0] - SECOND,
        ticks[-1],
        "latest",
        len(ticks),
        fired,
        len(ticks) - fired,
        0,
        0,
        0,
        "no worker on queue default",
    )
    return LatePlan(term, job.job_id, job.seq, tuple(verdicts), decision, proposal)


def test_late_claims_are_listed_by_job_with_what_the_planner_needs(store: Store) -> None:
    term = lead(store)
    late, live = create(store, definition("late"), definition("live"))
    ticks = write_late(store, term, late)
    store.ticks.commit(batch(store, term, [(live, [live.at + SECOND])]))
    (found,) = store.ticks.late_jobs()
    assert found.job == read(store, late.job_id)
    assert [(one.scheduled_at, one.origin, one.revision) for one in found.claims] == [
        (at, Origin.SCHEDULE, 1) for at in ticks
    ]
    assert (found.revision.revision, found.revision.since) == (1, late.at)


def test_late_claims_of_a_retired_job_are_listed_too(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (new,) = create(store, definition("late"))
    set_columns(ledger_url, "cursors", {"job_id": new.job_id}, at=store.now() - MINUTE)
    job = read(store, new.job_id)
    ticks = write_late(store, term, job)
    store.edits.edit([JobChange(ChangeKind.RETIRE, job_id=job.job_id)], "tests")
    set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=store.now())
    assert store.ticks.read_jobs([job.job_id]) == ()  # every tick of it is decided
    (found,) = store.ticks.late_jobs()
    assert (found.job.name, found.job.revisions) == ("late", ())
    assert [one.scheduled_at for one in found.claims] == ticks


def test_paused_and_granted_claims_are_not_late(store: Store, ledger_url: str) -> None:
    """Time parked or paused does not count."""
    term = lead(store)
    paused, granted = create(store, definition("paused"), definition("granted"))
    write_late(store, term, paused)
    write_late(store, term, granted)
    store.edits.edit([JobChange(ChangeKind.PAUSE, paused.job_id)], "alice")
    set_columns(
        ledger_url, "claims", {"job_id": granted.job_id}, state=int(State.RUNNING), token=1, attempt=1, start_by=None
    )
    assert store.ticks.late_jobs() == ()


def test_all_late_claims_of_a_job_are_decided_together(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = write_late(store, term, job)
    at = store.now()
    verdicts = [
        LateVerdict(ticks[0], SkipReason.EXPIRED.value),
        LateVerdict(ticks[1], SkipReason.MERGED.value),
        LateVerdict(ticks[2], FIRES, Origin.CATCH_UP, at),
    ]
    assert store.ticks.decide_late(plan(term, job, verdicts)) == 3
    expired, merged, fires = rows(ledger_url, "claims")
    assert (expired.state, merged.state) == (State.EXPIRED, State.MERGED)
    assert expired.reason == "no worker on queue default"
    assert expired.finished_at is not None
    assert (fires.state, fires.origin, fires.available_at, fires.start_by) == (State.READY, Origin.CATCH_UP, at, None)
    (decision,) = rows(ledger_url, "decisions")
    assert (decision.cause, decision.missed, decision.fired) == ("claimed but not started", 3, 1)
    assert store.ticks.late_jobs() == ()


def test_what_was_turned_catch_up_and_never_granted_is_decided_again_with_the_newer(store: Store) -> None:
    """Else a job without a worker for three days would run once for every pass."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    (first,) = write_late(store, term, job, count=1)
    store.ticks.decide_late(plan(term, job, [LateVerdict(first, FIRES, Origin.CATCH_UP, store.now())]))
    (second,) = write_late(store, term, read(store, job.job_id), count=1)
    (found,) = store.ticks.late_jobs()
    assert [(one.scheduled_at, one.origin) for one in found.claims] == [
        (first, Origin.CATCH_UP),
        (second, Origin.SCHEDULE),
    ]


@pytest.mark.parametrize("what", ["term", "seq", "granted", "halted"])
def test_a_plan_over_what_has_moved_decides_nothing(store: Store, ledger_url: str, what: str) -> None:
    """Invariants 2 and 3."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = write_late(store, term, job)
    late = plan(term, job, [LateVerdict(at, SkipReason.SKIPPED.value) for at in ticks])
    if what == "term":
        lead(store, "n2")
    elif what == "seq":
        late = replace(late, seq=job.seq + 1)
    elif what == "granted":
        set_columns(ledger_url, "claims", {"scheduled_at": ticks[1]}, state=int(State.RUNNING), token=1, attempt=1)
    else:
        set_columns(ledger_url, "cluster", {"id": 1}, halted=True)
    before = rows(ledger_url, "claims")
    assert store.ticks.decide_late(late) == 0
    assert rows(ledger_url, "claims") == before
    assert rows(ledger_url, "decisions") == []


def test_held_claims_make_one_proposal_and_extend_it(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    for pass_number, count in ((1, 2), (2, 3)):
        now = read(store, job.job_id)
        ticks = write_late(store, term, now, count)
        proposal = NewProposal(
            job.job_id, 1, ticks[0] - SECOND, ticks[-1], count, job.at - MINUTE, job.at + timedelta(days=7)
        )
        verdicts = [LateVerdict(at, SkipReason.HELD.value) for at in ticks]
        assert store.ticks.decide_late(plan(term, now, verdicts, proposal)) == count
        (row,) = rows(ledger_url, "proposals")
        assert (row.count, row.upto, row.state) == (2 if pass_number == 1 else 5, ticks[-1], "open")
    assert {row.state for row in rows(ledger_url, "claims")} == {State.HELD}
