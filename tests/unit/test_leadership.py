"""The table of courses, the watch over a heartbeat, and what a takeover must read."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.decisions import GrowingSkip, Interval, SkipReason
from sexton.terms import Confirmation
from sexton_scheduler.core.heartbeat_watch import HeartbeatWatch
from sexton_scheduler.core.leadership import Course, Sighting, confirmation, course, must_campaign
from sexton_scheduler.core.takeover import reconcile
from sexton_scheduler.election.candidate import Standing
from tests.support.planned_jobs import NOON, ago, job, revision

FOLLOWER = Sighting(Standing.WAITING)
LEADER = Sighting(Standing.ELECTED, is_leading=True)


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
        (LEADER, Course.LEAD),
        (replace(LEADER, is_superseded=True), Course.STEP_DOWN),
        (replace(LEADER, is_asked_to_resign=True), Course.HAND_OVER),
        (replace(LEADER, is_stopping=True), Course.HAND_OVER),
        (replace(LEADER, may_lead=False), Course.HAND_OVER),
        (replace(LEADER, is_stopping=True, is_superseded=True), Course.STEP_DOWN),
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
    for standing, lease, leading in itertools.product(Standing, [None, *Standing], [False, True]):
        sighting = Sighting(standing, lease, is_leading=leading, may_lead=False)
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
