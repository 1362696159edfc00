"""The five rules over ticks found undecided, one fact a test."""

from __future__ import annotations

from datetime import timedelta

from sexton.decisions import Cause, GrowingSkip, Interval, SkipReason
from sexton.missed_ticks import FireKind, MissedPlan, decide_missed
from tests.support.planned_jobs import HOURLY, MINUTELY, NOON, SECONDLY, ago, at, job, revision, rules


def fired(plan: MissedPlan) -> list[tuple[object, FireKind]]:
    return [(fire.scheduled_at, fire.kind) for fire in plan.fires]


def skipped(plan: MissedPlan) -> list[tuple[SkipReason, int]]:
    return [(skip.reason, skip.count) for skip in plan.skips]


def test_latest_fires_the_newest_and_merges_the_others_into_it() -> None:
    now = NOON + timedelta(seconds=7)
    plan = decide_missed(job(decided_upto=ago(minutes=13)), now, cause=Cause.TAKEOVER)
    assert fired(plan) == [(NOON, FireKind.LATE)]
    assert skipped(plan) == [(SkipReason.MERGED, 12)]
    assert plan.decision is not None
    assert plan.decision.reason == "minutely, 13 missed: 12:00:00 fired 7s late, 12 merged into it"
    assert not plan.fires[0].is_paced  # one late fire of a job starts at once


def test_latest_beyond_grace_is_catch_up_and_paced() -> None:
    plan = decide_missed(job(revision(HOURLY), decided_upto=ago(hours=3)), ago(minutes=-30), cause=Cause.TAKEOVER)
    assert fired(plan) == [(NOON, FireKind.CATCH_UP)]
    assert plan.fires[0].is_paced


def test_skip_fires_what_is_in_grace_and_skips_what_is_older() -> None:
    plan = decide_missed(job(revision(missed=rules("skip")), decided_upto=ago(minutes=5)), NOON, cause=Cause.TAKEOVER)
    assert fired(plan) == [(ago(minutes=1), FireKind.LATE), (NOON, FireKind.LATE)]
    assert skipped(plan) == [(SkipReason.SKIPPED, 3)]
    assert all(fire.is_paced for fire in plan.fires)  # several late fires of one job are paced


def test_all_fires_older_ticks_as_catch_up_oldest_first() -> None:
    plan = decide_missed(job(revision(missed=rules("all")), decided_upto=ago(minutes=3)), NOON, cause=Cause.TAKEOVER)
    assert fired(plan) == [
        (ago(minutes=2), FireKind.CATCH_UP),
        (ago(minutes=1), FireKind.LATE),
        (NOON, FireKind.LATE),
    ]


def test_order_newest_starts_with_the_newest() -> None:
    missed = rules("all", order="newest")
    plan = decide_missed(job(revision(missed=missed), decided_upto=ago(minutes=3)), NOON, cause=Cause.TAKEOVER)
    assert [fire.scheduled_at for fire in plan.fires] == [NOON, ago(minutes=1), ago(minutes=2)]


def test_hold_writes_one_proposal_over_one_held_record() -> None:
    plan = decide_missed(job(revision(missed=rules("hold")), decided_upto=ago(minutes=5)), NOON, cause=Cause.TAKEOVER)
    assert skipped(plan) == [(SkipReason.HELD, 3)]
    (proposal,) = plan.proposals
    assert (proposal.after, proposal.upto, proposal.count) == (ago(minutes=5), ago(minutes=2), 3)
    assert proposal.within_from == NOON - timedelta(days=1)
    assert proposal.lapses_at == NOON + timedelta(days=7)
    assert len(plan.fires) == 2


def test_what_is_older_than_within_expires_first() -> None:
    missed = rules("all", within=timedelta(minutes=10))
    plan = decide_missed(job(revision(missed=missed), decided_upto=ago(minutes=60)), NOON, cause=Cause.TAKEOVER)
    assert skipped(plan) == [(SkipReason.EXPIRED, 49)]  # exactly 10 minutes old is not older than 10 minutes
    assert plan.fired == 11


def test_the_oldest_beyond_max_expire() -> None:
    plan = decide_missed(
        job(revision(missed=rules("all", most=4)), decided_upto=ago(minutes=10)), NOON, cause=Cause.TAKEOVER
    )
    assert skipped(plan) == [(SkipReason.EXPIRED, 6)]
    assert plan.fires[0].scheduled_at == ago(minutes=3)


def test_a_minutely_job_that_slept_a_year_costs_two_records_and_no_list() -> None:
    plan = decide_missed(job(decided_upto=ago(days=365)), NOON, cause=Cause.TAKEOVER)
    assert skipped(plan) == [(SkipReason.EXPIRED, 364 * 1440 - 1), (SkipReason.MERGED, 1440)]
    assert fired(plan) == [(NOON, FireKind.LATE)]


def test_within_is_at_least_one_period_under_latest() -> None:
    monthly = at(ago(days=10), ago(days=-20))
    plan = decide_missed(job(revision(monthly), decided_upto=ago(days=11)), NOON, cause=Cause.TAKEOVER)
    assert fired(plan) == [(ago(days=10), FireKind.CATCH_UP)]
    other = decide_missed(job(revision(monthly, rules("all")), decided_upto=ago(days=11)), NOON, cause=Cause.TAKEOVER)
    assert skipped(other) == [(SkipReason.EXPIRED, 1)]


def test_force_hold_holds_all_that_would_fire_in_grace_or_not() -> None:
    plan = decide_missed(
        job(revision(missed=rules("all")), decided_upto=ago(minutes=5)), NOON, cause=Cause.TAKEOVER, force_hold=True
    )
    assert plan.fires == ()
    assert skipped(plan) == [(SkipReason.HELD, 5)]
    assert plan.proposals[0].count == 5
    assert plan.decision is not None
    assert "catch_up.hold_above" in plan.decision.reason


def test_force_hold_under_latest_holds_the_newest_alone() -> None:
    plan = decide_missed(job(decided_upto=ago(minutes=5)), NOON, cause=Cause.TAKEOVER, force_hold=True)
    assert skipped(plan) == [(SkipReason.MERGED, 4), (SkipReason.HELD, 1)]


def test_a_punctual_tick_is_live_and_leaves_no_decision() -> None:
    now = NOON + timedelta(milliseconds=3)
    plan = decide_missed(
        job(revision(missed=rules("skip", grace=timedelta(0))), decided_upto=ago(minutes=1)),
        now,
        cause=Cause.LATE_LEADER,
        punctual=timedelta(seconds=1),
    )
    assert fired(plan) == [(NOON, FireKind.LIVE)]
    assert plan.decision is None
    assert plan.fired == 0


def test_where_one_tick_was_missed_the_punctual_one_is_decided_with_it() -> None:
    now = NOON + timedelta(milliseconds=3)
    plan = decide_missed(
        job(revision(SECONDLY), decided_upto=ago(seconds=5)),
        now,
        cause=Cause.LATE_LEADER,
        punctual=timedelta(seconds=1),
    )
    assert fired(plan) == [(NOON, FireKind.LATE)]
    assert skipped(plan) == [(SkipReason.MERGED, 4)]


def test_paused_ticks_grow_the_record_of_their_pause() -> None:
    pauses = (Interval(ago(minutes=10), None),)
    growing = GrowingSkip(ago(minutes=10), 6, SkipReason.PAUSED)
    plan = decide_missed(
        job(decided_upto=ago(minutes=4), pauses=pauses, growing=growing), NOON, cause=Cause.LATE_LEADER
    )
    (skip,) = plan.skips
    assert (skip.after, skip.upto, skip.count, skip.reason) == (ago(minutes=10), NOON, 10, SkipReason.PAUSED)
    assert skip.detail == "paused by ops: moving house"
    assert plan.decision is None


def test_a_pause_that_ended_divides_what_was_missed() -> None:
    pauses = (Interval(ago(minutes=10), ago(minutes=4), "ana: storage moves"),)
    plan = decide_missed(
        job(revision(missed=rules("all")), decided_upto=ago(minutes=13), pauses=pauses), NOON, cause=Cause.TAKEOVER
    )
    assert skipped(plan) == [(SkipReason.PAUSED, 6)]
    assert plan.skips[0].detail == "ana: storage moves"
    assert len(plan.fires) == 7
    assert plan.skips[0].after == ago(minutes=10)


def test_each_tick_is_decided_by_the_revision_in_force_at_it() -> None:
    old = revision(missed=rules("skip"), number=1, until=ago(minutes=5))
    new = revision(missed=rules("all"), number=2, since=ago(minutes=5))
    plan = decide_missed(job(old, new, decided_upto=ago(minutes=8)), NOON, cause=Cause.TAKEOVER)
    assert skipped(plan) == [(SkipReason.SKIPPED, 3)]
    assert plan.skips[0].revision == 1
    assert {fire.revision.revision for fire in plan.fires} == {2}
    assert len(plan.fires) == 5


def test_latest_of_an_old_revision_merges_into_the_newest_fire_of_the_new_one() -> None:
    old = revision(number=1, until=ago(minutes=5))
    new = revision(number=2, since=ago(minutes=5))
    plan = decide_missed(job(old, new, decided_upto=ago(minutes=8)), NOON, cause=Cause.TAKEOVER)
    assert fired(plan) == [(NOON, FireKind.LATE)]
    assert skipped(plan) == [(SkipReason.MERGED, 3), (SkipReason.MERGED, 4)]


def test_ticks_before_the_end_of_a_retired_job_are_still_decided() -> None:
    last = revision(MINUTELY, until=ago(minutes=3))
    plan = decide_missed(job(last, decided_upto=ago(minutes=6)), NOON, cause=Cause.TAKEOVER)
    assert fired(plan) == [(ago(minutes=3), FireKind.CATCH_UP)]
    assert plan.upto == ago(minutes=3)


def test_with_jitter_a_tick_whose_start_is_still_ahead_is_live() -> None:
    jittered = revision(missed=rules("all"), jitter=timedelta(minutes=30))
    plan = decide_missed(job(jittered, decided_upto=ago(minutes=60)), NOON, cause=Cause.TAKEOVER)
    live = [fire for fire in plan.fires if fire.kind is FireKind.LIVE]
    assert live
    assert all(fire.scheduled_at + fire.jitter > NOON for fire in live)
    assert all(fire.scheduled_at + fire.jitter <= NOON for fire in plan.fires if fire.kind is not FireKind.LIVE)


def test_nothing_undecided_is_no_plan() -> None:
    plan = decide_missed(job(decided_upto=NOON), NOON, cause=Cause.TAKEOVER)
    assert plan == MissedPlan(7, NOON)
