"""Backfills: ticks of the past that run after all, and a ledger that stays in order; on both databases."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta

import pytest

from sexton.backfill_plan import Does
from sexton.claims import Origin, State
from sexton.decisions import NewProposal, SkipReason, TickBatch
from sexton.errors import MovedOn, Refused
from sexton.job_rules import CatchUpOrder, MissedRules
from sexton.store.backfilling import carry_out, read_backfill
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from tests.support.claim_rows import ClaimRows
from tests.support.leader_scene import MINUTE, definition, lead, move, read, rows, set_columns
from tests.support.past_jobs import claims_of, decide, differences, minutes_after, old_job, skip


@pytest.fixture(autouse=True)
def only_arrows(ledger_url: str) -> None:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows(on_request=True)
    scene.close()


def backfill(store: Store, job: JobRow, first: int, last: int, *, rerun: bool = False) -> int:
    """Backfill the minutes from ``first`` up to, but not including, ``last`` after the cursor; how many run."""
    begin, end = job.at + first * MINUTE, job.at + last * MINUTE
    plan = read_backfill(store, job.job_id, begin, end, rerun=rerun)
    return carry_out(store, plan, begin, end, "ana", "rates were wrong", rerun=rerun).count


def skipped(url: str) -> list[tuple[int, bool, str | None]]:
    return [(row._mapping["count"], row.resolved_at is not None, row.resolved_by) for row in rows(url, "skips")]


def test_a_backfill_resolves_its_part_of_a_skip_record(store: Store, ledger_url: str) -> None:
    """Invariant 2: the parts say of each tick what became of it; a resolved one counts once with its claim."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    assert backfill(store, job, 10, 20) == 10
    assert skipped(ledger_url) == [(9, False, None), (10, True, "ana"), (41, False, None)]
    claims = rows(ledger_url, "claims")
    assert [row.scheduled_at for row in claims] == minutes_after(job, 10, 19)
    assert {(row.origin, row.state, row.start_by) for row in claims} == {(Origin.BACKFILL, State.READY, None)}
    assert {row.reason for row in claims} == {"backfilled by ana: rates were wrong"}
    assert differences(store) == []


def test_backfills_of_both_ends_and_the_rest_leave_a_whole_chain(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url, minutes=61)
    decide(store, term, job, 60, [skip(job, 0, 30, SkipReason.MERGED), skip(job, 30, 60)])
    assert [backfill(store, job, first, last) for first, last in ((1, 2), (59, 60), (25, 35), (1, 60))] == [
        1,
        1,
        10,
        47,
    ]
    assert differences(store) == []
    assert backfill(store, job, 60, 61) == 1
    found = rows(ledger_url, "skips")
    assert sum(row._mapping["count"] for row in found) == 60
    assert all(row.resolved_by == "ana" for row in found)
    assert all(one.upto == two.after for one, two in itertools.pairwise(found))
    assert differences(store) == []


def test_claims_that_ended_without_a_run_are_opened_again(store: Store, ledger_url: str) -> None:
    """What ran stays, and what waits or runs stays; only a rerun runs what ran again."""
    term = lead(store)
    job = old_job(store, ledger_url)
    ticks = minutes_after(job, 1, 60)
    decide(store, term, job, 60, claims=claims_of(job, ticks))
    states = [State.SKIPPED, State.MERGED, State.EXPIRED, State.CANCELLED, State.SUCCEEDED, State.FAILED, State.LOST]
    scene = ClaimRows(ledger_url)
    for tick, state in zip(ticks, states, strict=False):
        ran = state in (State.SUCCEEDED, State.FAILED, State.LOST)
        set_columns(ledger_url, "claims", {"scheduled_at": tick}, state=int(State.RUNNING), token=7) if ran else None
        set_columns(ledger_url, "claims", {"scheduled_at": tick}, state=int(state), attempt=int(ran), start_by=None)
    plan = read_backfill(store, job.job_id, ticks[0], ticks[8])
    assert [tick.does for tick in plan.ticks] == [Does.RUNS] * 4 + [Does.STAYS] * 4
    assert backfill(store, job, 1, 9) == 4
    assert [scene.state(job.job_id, tick) for tick in ticks[:5]] == [State.READY] * 4 + [State.SUCCEEDED]
    assert {row.origin for row in rows(ledger_url, "claims", state=0)} == {Origin.SCHEDULE, Origin.BACKFILL}
    assert backfill(store, job, 1, 9, rerun=True) == 3
    row = scene.row(job.job_id, ticks[4])
    assert (row.state, row.origin, row.attempt, row.token) == (State.READY, Origin.BACKFILL, 1, None)
    scene.close()
    assert differences(store) == []


def test_what_runs_is_the_job_as_it_is_now(store: Store, ledger_url: str) -> None:
    """Which ticks there are is for the revisions that were in force; what runs is the newest."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    changed = definition("books", timedelta(hours=1), queue="mended")
    store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, changed)], "ana")
    assert backfill(store, job, 1, 4) == 3
    assert {(row.revision, row.queue) for row in rows(ledger_url, "claims")} == {(2, "mended")}
    assert differences(store) == []


@pytest.mark.parametrize("order", list(CatchUpOrder))
def test_a_backfill_draws_on_the_catch_up_budget_in_its_jobs_order(
    store: Store, ledger_url: str, order: CatchUpOrder
) -> None:
    term = lead(store)
    job = old_job(store, ledger_url, missed=MissedRules(order=order))
    decide(store, term, job, 60, [skip(job, 0, 60)])
    store.edits.set_setting("catch_up.rate", "2/s", "ana")
    assert backfill(store, job, 1, 5) == 4
    starts = [row.available_at for row in rows(ledger_url, "claims")]
    assert starts == sorted(starts, reverse=order is CatchUpOrder.NEWEST)
    assert max(starts) - min(starts) == timedelta(seconds=1.5)
    (budget,) = rows(ledger_url, "budget")
    assert budget.next_at == max(starts) + timedelta(seconds=0.5)


def test_a_backfill_consumes_and_shifts_no_tick_of_the_schedule(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    before = read(store, job.job_id)
    assert backfill(store, job, 1, 5) == 4
    after = read(store, job.job_id)
    assert (after.at, after.revisions) == (before.at, before.revisions)
    ahead = claims_of(after, [after.at + MINUTE])
    decide(store, term, after, 1, claims=ahead)


def test_a_leader_that_holds_a_record_that_was_split_plans_again(store: Store, ledger_url: str) -> None:
    """Invariant 6: its compare-and-set is lost; else it would grow a record over those that were split off."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 58, [skip(job, 0, 58, SkipReason.PAUSED)])
    held = read(store, job.job_id)
    assert backfill(store, job, 10, 59) == 49
    grown = skip(job, 0, 59, SkipReason.PAUSED)
    stale = TickBatch(term, store.now(), (move(held, job.at + 59 * MINUTE),), skips=(grown,))
    assert store.ticks.commit(stale).not_moved == (job.job_id,)
    decide(store, term, read(store, job.job_id), 1, [skip(job, 58, 59, SkipReason.PAUSED)])
    decide(store, term, read(store, job.job_id), 1, [skip(job, 59, 60, SkipReason.PAUSED)])
    assert differences(store) == []


def test_what_was_backfilled_of_a_paused_job_waits_for_its_resume(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why="storage")], "ana")
    plan = read_backfill(store, job.job_id, job.at + MINUTE, job.at + 3 * MINUTE)
    done = store.backfills.backfill(plan.resolution, "ana", "")
    assert done is not None
    assert done.is_paused
    assert {row.blocked for row in rows(ledger_url, "claims")} == {True}
    store.edits.edit([JobChange(ChangeKind.RESUME, job.job_id)], "ana")
    assert {row.blocked for row in rows(ledger_url, "claims")} == {False}


def test_of_two_backfills_of_one_stretch_one_writes(store: Store, ledger_url: str) -> None:
    """Each is a compare-and-set on the ledger as it was read."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    begin, end = job.at + MINUTE, job.at + 5 * MINUTE
    plan = read_backfill(store, job.job_id, begin, end)
    assert store.backfills.backfill(plan.resolution, "ana", "") is not None
    assert store.backfills.backfill(plan.resolution, "ben", "") is None
    with pytest.raises(MovedOn, match="decided, run or answered meanwhile"):
        carry_out(store, plan, begin, end, "ben", "")
    assert len(rows(ledger_url, "claims")) == 4
    (event,) = rows(ledger_url, "events", action="job.backfilled")
    assert (event.actor, json.loads(event.detail)["ticks"]) == ("ana", 4)


def test_what_moved_elsewhere_does_not_stop_a_backfill(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    begin, end = job.at + MINUTE, job.at + 5 * MINUTE
    plan = read_backfill(store, job.job_id, begin, end)
    assert backfill(store, job, 30, 40) == 10
    assert carry_out(store, plan, begin, end, "ben", "").count == 4
    assert differences(store) == []


def test_a_record_that_grew_or_was_answered_meanwhile_is_read_again(store: Store, ledger_url: str) -> None:
    """A leader lets the record of a pause grow, an operator answers a proposal: neither changes the job."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 58, [skip(job, 0, 58, SkipReason.PAUSED)])
    begin, end = job.at + MINUTE, job.at + 5 * MINUTE
    plan = read_backfill(store, job.job_id, begin, end)
    now = read(store, job.job_id)
    decide(store, term, now, 1, [skip(job, 0, 59, SkipReason.PAUSED)])
    assert store.backfills.backfill(plan.resolution, "ana", "") is None
    plan = read_backfill(store, job.job_id, begin, end)
    set_columns(ledger_url, "skips", {"job_id": job.job_id}, resolved_at=store.now(), resolved_by="ben")
    assert store.backfills.backfill(plan.resolution, "ana", "") is None
    assert rows(ledger_url, "claims") == []
    assert carry_out(store, plan, begin, end, "ana", "").count == 4
    decide(store, term, read(store, job.job_id), 1, [skip(job, 59, 60)])
    assert differences(store) == []


def test_a_backfill_keeps_to_what_is_decided_and_known(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 50, [skip(job, 0, 50)])
    at, now = job.at, store.now()

    def refused(first: int, last: int) -> str:
        with pytest.raises(Refused) as error:
            read_backfill(store, job.job_id, at + first * MINUTE, at + last * MINUTE)
        return str(error.value)

    assert "is ahead of now" in refused(1, 90)
    assert "is not; end at" in refused(45, 55)
    assert read_backfill(store, job.job_id, at + 45 * MINUTE, at + 51 * MINUTE).runs[-1] == at + 50 * MINUTE
    assert "ends before it begins" in refused(5, 5)
    set_columns(ledger_url, "cluster", {"id": 1}, pruned_before=at + 10 * MINUTE)
    assert "the ledger goes back to" in refused(5, 20)
    proposal = NewProposal(job.job_id, 1, at + 20 * MINUTE, at + 30 * MINUTE, 10, at, now + timedelta(days=1))
    held = [skip(job, 50, 51)]
    batch = TickBatch(
        term, store.now(), (move(read(store, job.job_id), at + 51 * MINUTE),), (), tuple(held), (proposal,)
    )
    assert store.ticks.commit(batch).moved == 1
    assert "holds ticks of books" in refused(25, 35)
    assert backfill(store, job, 31, 35) == 4
    store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "ana")
    assert "is retired" in refused(40, 41)


def test_more_ticks_than_a_person_reads_are_refused(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url, minutes=11_000)
    decide(store, term, job, 11_000, [skip(job, 0, 11_000)])
    with pytest.raises(Refused, match="more than 10,000 ticks"):
        read_backfill(store, job.job_id, job.at, job.at + 10_999 * MINUTE)
    assert backfill(store, job, 1, 10_001) == 10_000
    assert skipped(ledger_url) == [(10_000, True, "ana"), (1_000, False, None)]
