"""The table of courses, the watch over a heartbeat, and what a takeover must read."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.decisions import GrowingSkip, Interval, SkipReason
from sexton.terms import Confirmation, Strategy
from sexton_scheduler.core.heartbeat_watch import HeartbeatWatch
from sexton_scheduler.core.leadership import (
    Course,
    Force,
    Sighting,
    campaigns,
    confirmation,
    course,
    ends_force,
    force_seen,
    must_campaign,
    yields,
)
from sexton_scheduler.core.takeover import reconcile
from sexton_scheduler.election.candidate import Standing
from tests.support.planned_jobs import NOON, ago, job, revision

FOLLOWER = Sighting(Standing.WAITING)
LEADER = Sighting(Standing.ELECTED, is_leading=True)
RACER = Sighting(Standing.OUT, strategy=Strategy.RACE, is_racing=True)


@pytest.mark.parametrize(
    ("sighting", "expected"),
    [
        (FOLLOWER, Course.FOLLOW),
        (replace(FOLLOWER, standing=Standing.ELECTED), Course.TAKE),
        (replace(FOLLOWER, standing=Standing.AWAY), Course.FOLLOW),
        (replace(FOLLOWER, standing=Standing.AWAY, lease=Standing.WAITING), Course.FOLLOW),
        (replace(FOLLOWER, standing=Standing.AWAY, lease=Standing.ELECTED), Course.TAKE_BY_LEASE),
        (replace(FOLLOWER, lease=Standing.ELECTED), Course.FOLLOW),  # the coordinator is there: it decides
        (replace(FOLLOWER, standing=Standing.ELECTED, may_lead=False), Course.STAND_ASIDE),
        (replace(FOLLOWER, standing=Standing.ELECTED, is_stopping=True), Course.STAND_ASIDE),
        (replace(FOLLOWER, force=Force.HERE), Course.TAKE_BY_FORCE),
        (replace(FOLLOWER, standing=Standing.AWAY, force=Force.HERE), Course.TAKE_BY_FORCE),
        (replace(FOLLOWER, standing=Standing.ELECTED, force=Force.HERE, yields=True), Course.TAKE_BY_FORCE),
        (replace(FOLLOWER, force=Force.HERE, may_lead=False), Course.STAND_ASIDE),
        (replace(FOLLOWER, force=Force.HERE, is_stopping=True), Course.STAND_ASIDE),
        (replace(FOLLOWER, standing=Standing.ELECTED, force=Force.ELSEWHERE), Course.STAND_ASIDE),
        (
            replace(FOLLOWER, standing=Standing.AWAY, lease=Standing.ELECTED, force=Force.ELSEWHERE),
            Course.STAND_ASIDE,
        ),
        (replace(LEADER, force=Force.ELSEWHERE), Course.LEAD),  # until it is superseded: no gap
        (replace(LEADER, force=Force.ELSEWHERE, is_superseded=True), Course.STEP_DOWN),
        (replace(LEADER, force=Force.HERE), Course.LEAD),
        (replace(LEADER, force=Force.HERE, is_asked_to_resign=True), Course.HAND_OVER),
        (replace(FOLLOWER, standing=Standing.ELECTED, yields=True), Course.YIELD),
        (replace(FOLLOWER, yields=True), Course.FOLLOW),
        (replace(LEADER, yields=True), Course.LEAD),
        (LEADER, Course.LEAD),
        (replace(LEADER, is_superseded=True), Course.STEP_DOWN),
        (replace(LEADER, is_asked_to_resign=True), Course.HAND_OVER),
        (replace(LEADER, is_stopping=True), Course.HAND_OVER),
        (replace(LEADER, may_lead=False), Course.HAND_OVER),
        (replace(LEADER, is_stopping=True, is_superseded=True), Course.STEP_DOWN),
        (replace(FOLLOWER, strategy=Strategy.RACE), Course.ENTER_RACE),
        (replace(FOLLOWER, strategy=Strategy.RACE, standing=Standing.ELECTED), Course.ENTER_RACE),
        (replace(FOLLOWER, strategy=Strategy.RACE, force=Force.ELSEWHERE), Course.ENTER_RACE),
        (replace(FOLLOWER, strategy=Strategy.RACE, may_lead=False), Course.STAND_ASIDE),
        (replace(FOLLOWER, strategy=Strategy.RACE, is_stopping=True), Course.STAND_ASIDE),
        (RACER, Course.RACE),
        (replace(RACER, may_lead=False), Course.LEAVE_RACE),
        (replace(RACER, is_stopping=True), Course.LEAVE_RACE),
        (replace(RACER, is_superseded=True), Course.LEAVE_RACE),
        (replace(RACER, strategy=Strategy.LEADER, standing=Standing.ELECTED), Course.LEAVE_RACE),
        (replace(LEADER, strategy=Strategy.RACE), Course.LEAD),  # until a statement says that its term is over
        (replace(LEADER, strategy=Strategy.RACE, is_superseded=True), Course.STEP_DOWN),
    ],
)
def test_each_sighting_has_its_course(sighting: Sighting, expected: Course) -> None:
    assert course(sighting) is expected


@pytest.mark.parametrize("standing", list(Standing))
def test_a_leader_goes_on_whatever_the_coordinator_says_until_it_is_superseded(standing: Standing) -> None:
    leading = replace(LEADER, standing=standing)
    assert course(leading) is Course.LEAD
    assert course(replace(leading, is_superseded=True)) is Course.STEP_DOWN


def test_no_node_that_may_not_lead_ever_takes_or_keeps_a_term() -> None:
    """Invariant 8."""
    for standing, lease, leading, force in itertools.product(Standing, [None, *Standing], [False, True], Force):
        sighting = Sighting(standing, lease, is_leading=leading, may_lead=False, force=force)
        assert course(sighting) in (Course.STAND_ASIDE, Course.HAND_OVER)


@pytest.mark.parametrize(
    ("standing", "before", "after"),
    [
        (Standing.ELECTED, Confirmation.UNCONFIRMED, Confirmation.CONFIRMED),
        (Standing.ELECTED, Confirmation.DEGRADED, Confirmation.CONFIRMED),
        (Standing.SUSPENDED, Confirmation.CONFIRMED, Confirmation.UNCONFIRMED),
        (Standing.LOST, Confirmation.CONFIRMED, Confirmation.UNCONFIRMED),
        (Standing.WAITING, Confirmation.UNCONFIRMED, Confirmation.UNCONFIRMED),
        (Standing.AWAY, Confirmation.DEGRADED, Confirmation.DEGRADED),
        (Standing.WAITING, Confirmation.DEGRADED, Confirmation.DEGRADED),
    ],
)
def test_confirmation_follows_the_coordinator(standing: Standing, before: Confirmation, after: Confirmation) -> None:
    assert confirmation(standing, before) is after


def test_while_a_force_points_elsewhere_no_follower_takes_a_term() -> None:
    takes = (Course.TAKE, Course.TAKE_BY_LEASE, Course.TAKE_BY_FORCE)
    for standing, lease, lets_pass in itertools.product(Standing, [None, *Standing], [False, True]):
        assert course(Sighting(standing, lease, force=Force.ELSEWHERE, yields=lets_pass)) not in takes


@pytest.mark.parametrize(
    ("force", "confirmed", "has_lapsed", "ends"),
    [
        (Force.HERE, Confirmation.CONFIRMED, False, True),
        (Force.HERE, Confirmation.UNCONFIRMED, False, False),
        (Force.HERE, Confirmation.DEGRADED, False, False),
        (Force.ELSEWHERE, Confirmation.CONFIRMED, False, False),
        (Force.NOWHERE, Confirmation.CONFIRMED, False, False),
        (Force.NOWHERE, Confirmation.UNCONFIRMED, True, True),
    ],
)
def test_a_force_is_over_when_its_node_is_confirmed_or_gone(
    force: Force, confirmed: Confirmation, has_lapsed: bool, ends: bool
) -> None:
    assert ends_force(force, confirmed, has_lapsed=has_lapsed) is ends


def test_a_force_points_here_elsewhere_or_nowhere() -> None:
    assert [force_seen(name, "n1") for name in (None, "n1", "n2")] == [Force.NOWHERE, Force.HERE, Force.ELSEWHERE]


@pytest.mark.parametrize(
    ("since_away", "still_for", "expected"),
    [
        (0.0, 1.0, True),
        (12.0, 3.0, True),
        (12.1, 1.0, False),  # the outage is long over
        (1.0, 3.1, False),  # the leader gives no sign of life
        (None, 1.0, False),  # the coordinator was never away
        (1.0, None, False),  # nobody leads
    ],
)
def test_a_follower_yields_to_a_living_leader_for_two_sessions_after_an_outage(
    since_away: float | None, still_for: float | None, expected: bool
) -> None:
    assert yields(since_away, still_for, session=6.0) is expected


def test_a_lost_campaign_is_begun_anew_and_a_suspended_one_is_not() -> None:
    assert [standing for standing in Standing if must_campaign(standing)] == [Standing.OUT, Standing.LOST]


def test_stillness_is_the_time_between_reads_that_saw_the_same_beat() -> None:
    watch = HeartbeatWatch()
    for second in (0.0, 2.0, 4.0):
        watch.saw(1, 10, second, longest_break=3.0)
    assert watch.still_for() == 4.0
    watch.saw(1, 11, 6.0, longest_break=3.0)
    assert watch.still_for() == 0.0


def test_a_failed_read_begins_the_watch_anew() -> None:
    watch = HeartbeatWatch()
    watch.saw(1, 10, 0.0, longest_break=3.0)
    watch.interrupted()  # while this node could not read, the leader may have been unable to beat
    watch.saw(1, 10, 2.0, longest_break=3.0)
    assert watch.still_for() == 0.0


def test_a_node_that_was_itself_frozen_begins_the_watch_anew() -> None:
    watch = HeartbeatWatch()
    watch.saw(1, 10, 0.0, longest_break=3.0)
    watch.saw(1, 10, 60.0, longest_break=3.0)
    assert watch.still_for() == 0.0


def test_a_takeover_reads_only_what_has_changed() -> None:
    same, moved, edited = (job(decided_upto=NOON, job_id=n) for n in (1, 2, 3))
    paused = job(decided_upto=NOON, job_id=4, pauses=(Interval(ago(minutes=9), None),))
    grown = job(decided_upto=NOON, job_id=5, growing=GrowingSkip(NOON, 1, SkipReason.PAUSED))
    later = NOON + timedelta(minutes=1)
    warm = {one.job_id: one for one in (same, moved, edited, paused, grown)}
    cursors = [(1, 3, NOON), (2, 3, later), (3, 4, NOON), (4, 3, later), (5, 3, later), (99, 1, NOON)]
    result = reconcile(warm, cursors)
    assert [(one.job_id, one.at) for one in result.advanced] == [(2, later)]
    assert result.to_read == [3, 4, 5]


def test_a_cursor_that_moved_on_leaves_ended_revisions_and_pauses_behind() -> None:
    old = revision(number=1, until=ago(minutes=5))
    new = revision(number=2, since=ago(minutes=5))
    warm = job(old, new, decided_upto=ago(minutes=9))
    (advanced,) = reconcile({7: warm}, [(7, 3, NOON)]).advanced
    assert [r.revision for r in advanced.revisions] == [2]


def test_only_who_may_lead_where_somebody_leads_seeks_election() -> None:
    """A racer that still races would win what it then gives up."""

    def seeks(strategy: Strategy = Strategy.LEADER, force: Force = Force.NOWHERE, **changed: bool) -> bool:
        known = {"is_racing": False, "may_lead": True, "is_stopping": False}
        return campaigns(strategy, force, **(known | changed))

    assert seeks()
    assert seeks(force=Force.HERE)
    assert not seeks(Strategy.RACE)
    assert not seeks(force=Force.ELSEWHERE)
    assert not seeks(is_racing=True)
    assert not seeks(may_lead=False)
    assert not seeks(is_stopping=True)
