"""Claims that nobody started in time: decided together, by the rules of missed ticks."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sexton.claims import Origin
from sexton.decisions import Cause, LateClaim, LateJob, LatePlan
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.late_claims import FIRES, adds_waiting, decide_late, newly_fired, with_starts
from tests.support.planned_jobs import MINUTELY, NOON, ago, revision, rules

TERM = 4


def late_job(missed: MissedRules, *claims: tuple[datetime, Origin]) -> LateJob:
    late = tuple(LateClaim(tick, origin, timedelta(0)) for tick, origin in sorted(claims))
    return LateJob(7, "nightly", 3, NOON, revision(MINUTELY, missed), late)


def minutes(first: int, last: int, origin: Origin = Origin.SCHEDULE) -> list[tuple[datetime, Origin]]:
    return [(ago(minutes=n), origin) for n in range(last, first - 1, -1)]


def verdicts(plan: LatePlan | None) -> dict[int, str]:
    assert plan is not None
    return {(NOON - v.scheduled_at) // timedelta(minutes=1): v.becomes for v in plan.verdicts}


def test_latest_fires_the_newest_and_merges_the_others_also_the_one_it_fired_before() -> None:
    plan = decide_late(late_job(rules("latest"), (ago(minutes=9), Origin.CATCH_UP), *minutes(2, 4)), NOON, TERM)
    assert verdicts(plan) == {9: "merged", 4: "merged", 3: "merged", 2: FIRES}
    assert plan is not None
    assert (plan.term, plan.seq) == (TERM, 3)
    assert plan.verdicts[-1].origin is Origin.CATCH_UP
    assert plan.decision.cause is Cause.NOT_STARTED
    assert (plan.decision.missed, plan.decision.fired, plan.decision.merged) == (4, 1, 3)
    assert plan.decision.reason == (
        "claimed but not started: minutely, 4 missed: 11:58:00 fired 2m late, 3 merged into it"
    )


def test_nothing_changes_where_all_were_decided_before() -> None:
    assert decide_late(late_job(rules("all"), *minutes(2, 4, Origin.CATCH_UP)), NOON, TERM) is None


def test_all_fires_the_new_ones_and_leaves_those_it_fired_before_as_they_are() -> None:
    plan = decide_late(late_job(rules("all"), *minutes(5, 6, Origin.CATCH_UP), *minutes(2, 3)), NOON, TERM)
    assert verdicts(plan) == {3: FIRES, 2: FIRES}
    assert plan is not None
    assert newly_fired(plan) == 2


def test_a_fire_that_takes_the_place_of_one_that_waited_lets_no_more_wait() -> None:
    latest = late_job(rules("latest"), *minutes(5, 6, Origin.CATCH_UP), *minutes(2, 3))
    every = late_job(rules("all"), *minutes(5, 6, Origin.CATCH_UP), *minutes(2, 3))
    plans = [(job, decide_late(job, NOON, TERM)) for job in (latest, every)]
    assert [adds_waiting(job, plan) for job, plan in plans if plan is not None] == [-1, 2]


def test_beyond_max_the_oldest_expire_those_fired_before_included() -> None:
    plan = decide_late(late_job(rules("all", most=3), *minutes(5, 6, Origin.CATCH_UP), *minutes(2, 3)), NOON, TERM)
    assert verdicts(plan) == {6: "expired", 3: FIRES, 2: FIRES}


def test_skip_and_within_end_them_on_record() -> None:
    assert verdicts(decide_late(late_job(rules("skip"), *minutes(2, 3)), NOON, TERM)) == {2: "skipped", 3: "skipped"}
    within = rules("all", within=timedelta(minutes=3))
    assert verdicts(decide_late(late_job(within, *minutes(2, 4)), NOON, TERM)) == {4: "expired", 3: FIRES, 2: FIRES}


def test_hold_proposes_them() -> None:
    plan = decide_late(late_job(rules("hold"), *minutes(2, 4)), NOON, TERM)
    assert set(verdicts(plan).values()) == {"held"}
    assert plan is not None
    assert plan.proposal is not None
    assert (plan.proposal.count, plan.proposal.upto) == (3, ago(minutes=2))


def test_what_is_younger_than_grace_fires_whatever_the_policy() -> None:
    short = MissedRules(policy=MissedPolicy.SKIP, grace=timedelta(hours=1), start_within=timedelta(seconds=5))
    assert verdicts(decide_late(late_job(short, *minutes(2, 3)), NOON, TERM)) == {2: FIRES, 3: FIRES}


def test_force_hold_holds_what_would_fire() -> None:
    plan = decide_late(late_job(rules("latest"), *minutes(2, 4)), NOON, TERM, force_hold=True)
    assert verdicts(plan) == {4: "merged", 3: "merged", 2: "held"}


def test_starts_go_to_those_that_fire_in_their_order() -> None:
    plan = decide_late(late_job(rules("all", order="newest"), *minutes(2, 3)), NOON, TERM)
    assert plan is not None
    started = with_starts(plan, [NOON, NOON + timedelta(seconds=1)])
    assert [(v.scheduled_at, v.available_at) for v in started.verdicts] == [
        (ago(minutes=2), NOON),
        (ago(minutes=3), NOON + timedelta(seconds=1)),
    ]


@given(
    st.sampled_from([policy.value for policy in MissedPolicy]),
    st.lists(st.tuples(st.integers(1, 3000), st.booleans()), min_size=1, unique_by=lambda one: one[0]),
    st.booleans(),
)
def test_every_claim_is_decided_or_left_as_catch_up(policy: str, late: list[tuple[int, bool]], hold: bool) -> None:
    """Invariant 2."""
    claims = [(ago(minutes=n), Origin.CATCH_UP if before else Origin.SCHEDULE) for n, before in late]
    plan = decide_late(late_job(rules(policy), *claims), NOON, TERM, force_hold=hold)
    decided = set() if plan is None else {verdict.scheduled_at for verdict in plan.verdicts}
    assert {tick for tick, _ in claims} - decided <= {tick for tick, o in claims if o is Origin.CATCH_UP}
    if plan is not None:
        d = plan.decision
        assert d.missed == len(plan.verdicts) == d.fired + d.merged + d.skipped + d.expired + d.held
        assert (plan.proposal.count if plan.proposal else 0) == d.held
