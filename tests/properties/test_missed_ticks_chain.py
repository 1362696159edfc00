"""Every tick that fell due gets exactly one decision (invariant 2), whatever revisions, pauses and jitter lie there."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from sexton.decisions import Cause, Interval, PlannedJob, RevisionInForce, SkipReason
from sexton.job_rules import MissedPolicy
from sexton.missed_ticks import Fire, FireKind, MissedPlan, decide_missed
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EverySchedule, InstantsSchedule, Schedule
from tests.support.planned_jobs import NOON, ago, job, revision, rules

seconds = st.integers(0, 3600)
schedules = st.one_of(
    st.integers(1, 900).map(lambda n: EverySchedule(timedelta(seconds=n))),
    st.lists(seconds, min_size=1, max_size=9).map(lambda n: InstantsSchedule(tuple(ago(seconds=s) for s in n))),
    st.integers(60, 900).map(
        lambda n: UnionSchedule((EverySchedule(timedelta(seconds=n)), InstantsSchedule((ago(seconds=n + 1),))))
    ),
)
missed_rules = st.builds(
    rules,
    st.sampled_from([policy.value for policy in MissedPolicy]),
    grace=st.integers(0, 600).map(lambda n: timedelta(seconds=n)),
    within=st.none() | st.integers(0, 3600).map(lambda n: timedelta(seconds=n)),
    most=st.integers(1, 20),
    order=st.sampled_from(["oldest", "newest"]),
)
jitters = st.one_of(st.just(timedelta(0)), st.integers(0, 900).map(lambda n: timedelta(seconds=n)))


@st.composite
def jobs(draw: st.DrawFn) -> PlannedJob:
    """A job with up to three revisions in a row and up to two pauses in the hour before noon."""
    cuts = sorted(draw(st.sets(seconds, max_size=2)), reverse=True)
    bounds: list[datetime | None] = [ago(days=400), *(ago(seconds=cut) for cut in cuts), draw(st.none() | retired)]
    revisions = tuple(
        revision(draw(schedules), draw(missed_rules), number=n, since=since, until=until, jitter=draw(jitters))
        for n, (since, until) in enumerate(pairwise(bounds), 1)
        if since is not None
    )
    edges = sorted(draw(st.sets(seconds, max_size=4)), reverse=True)
    pauses = tuple(
        Interval(ago(seconds=edge), ago(seconds=end) if (end := _get(edges, n + 1)) is not None else None)
        for n, edge in enumerate(edges)
        if n % 2 == 0
    )
    return job(*revisions, decided_upto=ago(seconds=draw(seconds)), pauses=pauses)


retired = st.just(NOON)


def _get(edges: list[int], position: int) -> int | None:
    return edges[position] if position < len(edges) else None


def undecided(planned: PlannedJob) -> dict[datetime, RevisionInForce]:
    """The ticks up to noon, one by one, by stepping through each revision's schedule."""
    found: dict[datetime, RevisionInForce] = {}
    for in_force in planned.revisions:
        tick = in_force.schedule.next_after(max(in_force.since, planned.at))
        while tick is not None and tick <= min(in_force.until or NOON, NOON):
            found[tick] = in_force
            tick = in_force.schedule.next_after(tick)
    return found


def covered(plan: MissedPlan, ticks: dict[datetime, RevisionInForce]) -> dict[datetime, Fire | SkipReason]:
    """Each tick's decision; fails where one has two."""
    decided: dict[datetime, Fire | SkipReason] = {fire.scheduled_at: fire for fire in plan.fires}
    assert len(decided) == len(plan.fires)
    for skip in plan.skips:
        inside = [tick for tick in ticks if skip.after < tick <= skip.upto]
        assert len(inside) == skip.count
        for tick in inside:
            assert tick not in decided
            decided[tick] = skip.reason
    return decided


@settings(max_examples=120, deadline=None)
@given(jobs(), st.booleans(), st.sampled_from([timedelta(0), timedelta(seconds=1)]))
def test_every_tick_has_one_decision_and_the_records_are_a_chain(
    planned: PlannedJob, force_hold: bool, punctual: timedelta
) -> None:
    ticks = undecided(planned)
    plan = decide_missed(planned, NOON, cause=Cause.TAKEOVER, force_hold=force_hold, punctual=punctual)
    decided = covered(plan, ticks)
    assert set(decided) == set(ticks)
    assert plan.upto == max(ticks, default=planned.at)

    position = planned.at
    steps = [(skip.upto, skip.after) for skip in plan.skips] + [(f.scheduled_at, None) for f in plan.fires]
    for upto, after in sorted(steps, key=lambda step: step[0]):
        assert after is None or after == position
        assert upto > position
        position = upto
    assert [p.after for p in plan.proposals] == [s.after for s in plan.skips if s.reason is SkipReason.HELD]


@settings(max_examples=120, deadline=None)
@given(jobs(), st.booleans())
def test_the_rules_hold_for_each_tick_alone(planned: PlannedJob, force_hold: bool) -> None:
    ticks = undecided(planned)
    plan = decide_missed(planned, NOON, cause=Cause.TAKEOVER, force_hold=force_hold)
    decided = covered(plan, ticks)
    for tick, in_force in ticks.items():
        verdict = decided[tick]
        missed = in_force.firing.missed
        age = NOON - tick - in_force.firing.jitter_of(tick)
        paused = any(p.since < tick <= (p.until or NOON) for p in planned.pauses)
        if paused or age < timedelta(0):
            assert verdict is SkipReason.PAUSED if paused else _kind(verdict) is FireKind.LIVE
            continue
        if missed.within is not None and age > missed.within:
            assert verdict is SkipReason.EXPIRED
        elif missed.policy is MissedPolicy.LATEST:
            assert verdict in (SkipReason.MERGED, SkipReason.EXPIRED, SkipReason.HELD) or isinstance(verdict, Fire)
        elif age > missed.grace and missed.policy is MissedPolicy.SKIP:
            assert verdict is SkipReason.SKIPPED
        elif age > missed.grace and missed.policy is MissedPolicy.HOLD:
            assert verdict is SkipReason.HELD
        else:  # would fire, unless newer ones use up max
            allowed = (SkipReason.EXPIRED, SkipReason.HELD if force_hold else SkipReason.EXPIRED)
            assert verdict in allowed or (_kind(verdict) in _expected(age, missed.grace) and not force_hold)
    if len(planned.revisions) == 1:
        late = sum(fire.kind is not FireKind.LIVE for fire in plan.fires)
        missed = planned.revisions[0].firing.missed
        assert late <= (1 if missed.policy is MissedPolicy.LATEST else missed.max)


def _kind(verdict: Fire | SkipReason) -> FireKind | None:
    return verdict.kind if isinstance(verdict, Fire) else None


def _expected(age: timedelta, grace: timedelta) -> set[FireKind]:
    return {FireKind.LATE} if age <= grace else {FireKind.CATCH_UP}


@settings(max_examples=100, deadline=None)
@given(schedules, st.integers(1, 100))
def test_latest_fires_exactly_one_tick_if_any_is_young_enough(schedule: Schedule, minutes: int) -> None:
    planned = job(revision(schedule), decided_upto=ago(minutes=minutes))
    ticks = undecided(planned)
    plan = decide_missed(planned, NOON, cause=Cause.TAKEOVER)
    assert [fire.scheduled_at for fire in plan.fires] == sorted(ticks)[-1:]
