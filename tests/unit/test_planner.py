"""What the planner puts into a batch, and how it goes on after each answer of the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sexton.claims import Origin
from sexton.decisions import Cause, CommitResult, Interval, PlannedJob, SkipReason
from sexton.schedules import EverySchedule, Schedule
from sexton_scheduler.core.pacing import start_instants
from sexton_scheduler.core.planner import Draft, MissedPass, Planner
from sexton_scheduler.core.tick_cache import TickCache
from tests.support.planned_jobs import MINUTELY, NOON, SECONDLY, ago, job, revision, rules

HORIZON = timedelta(seconds=60)


def planner(*jobs: PlannedJob) -> Planner:
    made = Planner()
    made.put_all(jobs)
    return made


def settled(made: Planner, draft: Draft, *not_moved: int) -> tuple[int, ...]:
    return made.settle(draft, CommitResult(True, True, len(draft.plans) - len(not_moved), 0, not_moved))


def test_live_ticks_are_claimed_up_to_the_horizon_in_one_batch() -> None:
    """Invariant 5."""
    made = planner(job(revision(SECONDLY), decided_upto=NOON))
    draft = made.draft(NOON, NOON + HORIZON)
    batch = draft.batch(4, NOON, [])
    assert len(batch.claims) == 60
    assert {claim.origin for claim in batch.claims} == {Origin.SCHEDULE}
    (move,) = batch.moves
    assert (move.was, move.upto, move.seq) == (NOON, NOON + HORIZON, 3)
    first = batch.claims[0]
    assert first.available_at == first.scheduled_at
    assert first.start_by == first.scheduled_at + timedelta(seconds=60)  # start_within: null is grace
    settled(made, draft)
    assert made.next_at(HORIZON) == NOON + timedelta(seconds=1)


def test_without_a_horizon_a_tick_is_planned_when_it_is_due() -> None:
    made = planner(job(decided_upto=NOON))
    due = NOON + timedelta(minutes=1)
    assert made.next_at(timedelta(0)) == due
    batch = made.draft(due, due).batch(4, due, [])
    assert [claim.scheduled_at for claim in batch.claims] == [due]
    assert batch.decisions == ()


def test_a_batch_is_bounded_and_the_rest_comes_with_the_next() -> None:
    made = planner(*(job(revision(SECONDLY), decided_upto=NOON, job_id=n) for n in range(50)))
    total = 0
    while (draft := made.draft(NOON, NOON + HORIZON, max_rows=100)).plans:
        claims = draft.batch(4, NOON, []).claims
        assert len(claims) <= 160
        total += len(claims)
        settled(made, draft)
    assert total == 50 * 60


def test_a_job_that_was_not_moved_waits_for_its_new_row() -> None:
    """Invariant 6: a lost compare-and-set is normal."""
    made = planner(job(decided_upto=NOON, job_id=1), job(decided_upto=NOON, job_id=2))
    draft = made.draft(NOON, NOON + HORIZON)
    assert settled(made, draft, 2) == (2,)
    assert made.draft(NOON, NOON + HORIZON).plans == ()
    made.put(job(decided_upto=NOON, job_id=2))
    assert made.draft(NOON, NOON + HORIZON).job_ids == (2,)


def test_past_ticks_of_a_takeover_are_decided_and_the_horizon_filled_in_one_move() -> None:
    made = planner(job(decided_upto=ago(minutes=5)))
    missed_pass = made.begin_pass(Cause.TAKEOVER, NOON, 0, 1000)
    batch = made.draft(NOON, NOON + HORIZON, missed_pass).batch(4, NOON, [])
    assert [(claim.scheduled_at, claim.origin) for claim in batch.claims] == [
        (NOON, Origin.SCHEDULE),
        (NOON + HORIZON, Origin.SCHEDULE),
    ]
    assert batch.claims[0].available_at == NOON
    assert batch.moves[0].upto == NOON + HORIZON
    assert batch.decisions[0].cause is Cause.TAKEOVER


def test_catch_up_is_paced_by_the_budget() -> None:
    made = planner(job(revision(missed=rules("all", grace=timedelta(0))), decided_upto=ago(minutes=3)))
    draft = made.draft(NOON, NOON, made.begin_pass(Cause.TAKEOVER, NOON, 0, 1000))
    assert draft.paced == 3
    batch = draft.batch(4, NOON, start_instants(NOON + timedelta(seconds=9), 3, 50.0))
    assert [claim.available_at - NOON for claim in batch.claims] == [
        timedelta(seconds=9),
        timedelta(seconds=9, milliseconds=20),
        timedelta(seconds=9, milliseconds=40),
    ]


def test_a_pass_that_would_fire_more_than_hold_above_holds_all_from_its_first_batch() -> None:
    jobs = [job(revision(missed=rules("all")), decided_upto=ago(minutes=5), job_id=n) for n in range(4)]
    made = planner(*jobs)
    missed_pass = made.begin_pass(Cause.TAKEOVER, NOON, 0, 19)
    batch = made.draft(NOON, NOON, missed_pass).batch(4, NOON, [])
    assert batch.claims == ()
    assert {skip.reason for skip in batch.skips} == {SkipReason.HELD}
    assert sum(proposal.count for proposal in batch.proposals) == 20
    assert not made.begin_pass(Cause.TAKEOVER, NOON, 0, 20).force_hold


def test_a_successor_goes_on_with_the_count_of_an_unfinished_pass() -> None:
    made = planner(job(revision(missed=rules("all")), decided_upto=ago(minutes=5)))
    assert made.begin_pass(Cause.TAKEOVER, NOON, 15, 19).force_hold
    assert not made.begin_pass(Cause.TAKEOVER, NOON, 14, 19).force_hold


def test_a_pass_that_finds_more_than_it_counted_holds_the_rest() -> None:
    made = planner(job(revision(missed=rules("all")), decided_upto=ago(minutes=5)))
    batch = made.draft(NOON, NOON, MissedPass(Cause.TAKEOVER, NOON, 10, fired=6)).batch(4, NOON, [])
    assert batch.claims == ()
    assert batch.proposals[0].count == 5


def test_a_leader_is_late_only_beyond_a_second() -> None:
    made = planner(job(decided_upto=ago(minutes=1)))
    assert not made.is_late(NOON + timedelta(milliseconds=900))
    assert made.is_late(NOON + timedelta(seconds=2))


def test_paused_ticks_are_recorded_when_they_fall_due_and_not_ahead() -> None:
    paused = job(decided_upto=NOON, pauses=(Interval(NOON, None),))
    made = planner(paused)
    assert made.draft(NOON, NOON + HORIZON).plans == ()
    due = NOON + timedelta(minutes=1)
    assert made.next_at(HORIZON) == due
    draft = made.draft(due, due + HORIZON)
    (skip,) = draft.batch(4, due, []).skips
    assert (skip.reason, skip.after, skip.upto, skip.count) == (SkipReason.PAUSED, NOON, due, 1)
    settled(made, draft)
    (grown,) = made.draft(due + HORIZON, due + 2 * HORIZON).batch(4, due, []).skips
    assert (grown.after, grown.count) == (NOON, 2)


def test_live_ticks_before_a_pause_that_begins_ahead_are_still_claimed() -> None:
    pause = Interval(NOON + timedelta(seconds=30), None)
    made = planner(job(revision(SECONDLY), decided_upto=NOON, pauses=(pause,)))
    draft = made.draft(NOON, NOON + HORIZON)
    assert len(draft.batch(4, NOON, []).claims) == 30


class Broken(EverySchedule):
    """A schedule that fails from noon on."""

    def next_after(self, instant: datetime) -> datetime | None:
        if instant >= NOON:
            raise ArithmeticError("out of ticks")
        return super().next_after(instant)


class Stuck(EverySchedule):
    """A schedule whose next tick is the one asked about."""

    def next_after(self, instant: datetime) -> datetime | None:
        return instant


@pytest.mark.parametrize("bad", [Broken(timedelta(minutes=1)), Stuck(timedelta(minutes=1))])
def test_one_bad_job_is_set_apart_and_stops_nobody_else(bad: Schedule) -> None:
    """Invariant 9."""
    made = planner(job(revision(bad), decided_upto=ago(minutes=1), job_id=1), job(decided_upto=NOON, job_id=2))
    draft = made.draft(NOON, NOON + HORIZON, made.begin_pass(Cause.TAKEOVER, NOON, 0, 1000))
    settled(made, draft)
    assert set(draft.job_ids) - {1} == {2}
    made.draft(NOON, NOON + HORIZON)
    assert set(made.faults) == {1}
    assert made.faults[1].name == "nightly"
    assert 1 not in made.jobs


def test_a_quarantined_job_is_not_planned_until_it_comes_back() -> None:
    made = planner(replace(job(decided_upto=NOON), is_quarantined=True))
    assert made.draft(NOON, NOON + HORIZON).plans == ()
    made.put(job(decided_upto=NOON))
    assert made.draft(NOON, NOON + HORIZON).job_ids == (7,)


def test_jobs_that_share_a_schedule_share_its_computation() -> None:
    asked: list[datetime] = []

    class Counting(EverySchedule):
        def next_after(self, instant: datetime) -> datetime | None:
            asked.append(instant)
            return super().next_after(instant)

    shared = Counting(timedelta(seconds=10))
    made = planner(*(job(revision(shared), decided_upto=ago(seconds=n % 10), job_id=n) for n in range(100)))
    while (draft := made.draft(NOON, NOON + HORIZON)).plans:
        settled(made, draft)
    assert len(asked) < 30


def test_cached_ticks_are_those_of_the_schedule() -> None:
    cache, schedule = TickCache(), MINUTELY
    for seconds in (0, 60, 61, 3600, 10, -300, 59, 7200, 7199, 3599):
        instant = NOON + timedelta(seconds=seconds)
        for _ in range(3):
            assert cache.next_after(schedule, instant) == schedule.next_after(instant)


def test_starts_of_a_budget_do_not_drift() -> None:
    starts = start_instants(NOON, 4, 3.0)
    assert [start - NOON for start in starts] == [timedelta(microseconds=n) for n in (0, 333333, 666667, 1000000)]
