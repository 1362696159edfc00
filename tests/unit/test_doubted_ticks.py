"""After a restore or a promotion: what may have run of a job that must not run twice is held, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sexton.claims import OnWorkerLost
from sexton.decisions import Cause, PlannedJob, RevisionInForce
from sexton.job_rules import FiringRules
from sexton_scheduler.core.planner import MAY_HAVE_RUN_DETAIL, Planner
from tests.support.planned_jobs import NOON, ago, job, revision, rules

ONCE = FiringRules(missed=rules("all"), on_worker_lost=OnWorkerLost.FAIL)


def once(in_force: RevisionInForce) -> RevisionInForce:
    return replace(in_force, firing=ONCE)


def drafted(one: PlannedJob, cause: Cause, doubted_minutes_ago: float) -> tuple[int, list[str]]:
    """How many ticks the pass fires, and why it holds what it holds."""
    planner = Planner()
    planner.may_have_run_upto = ago(minutes=doubted_minutes_ago)
    planner.put_all([one])
    missed_pass = planner.begin_pass(cause, NOON, 0, 1000)
    draft = planner.draft(NOON, NOON, missed_pass)
    batch = draft.batch(4, NOON, [NOON] * draft.paced)
    return len(batch.claims), [proposal.reason for proposal in batch.proposals]


@pytest.mark.parametrize("cause", [Cause.TAKEOVER, Cause.LATE_LEADER, Cause.RACE])
def test_undecided_ticks_up_to_the_move_are_held(cause: Cause) -> None:
    fail = job(once(revision()), decided_upto=ago(minutes=3))
    assert drafted(fail, cause, 0) == (0, [MAY_HAVE_RUN_DETAIL])


def test_a_tick_that_fell_due_this_second_is_held_too() -> None:
    """No tick is so punctual that it cannot have run."""
    fail = job(once(revision()), decided_upto=ago(seconds=30))
    assert drafted(fail, Cause.LATE_LEADER, 0) == (0, [MAY_HAVE_RUN_DETAIL])


def test_ticks_after_the_move_fire() -> None:
    fail = job(once(revision()), decided_upto=ago(minutes=1, seconds=30))
    assert drafted(fail, Cause.TAKEOVER, 2) == (2, [])
    assert drafted(fail, Cause.TAKEOVER, 1.25) == (2, [])  # the cursor stands before it, and no tick lies between


def test_a_job_that_may_run_twice_fires() -> None:
    assert drafted(job(decided_upto=ago(seconds=90)), Cause.TAKEOVER, 0) == (1, [])
