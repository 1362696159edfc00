"""Followers are killed and frozen past their sessions: nothing changes; and they lead when it is their turn.

Invariants 2, 3 and 7. The leader that makes room is stopped in order: a clean hand-over.
"""

from __future__ import annotations

import contextlib
import signal

from sexton.terms import EndedBy
from tests.support.judge import Judge
from tests.support.trial import LONG, Trial
from tests.support.waiting import stays

PAST_THE_SESSION = 4.0  # seconds: twice the session
MORE_ROUNDS = 5  # on a loaded machine the leader's own session may run out: such a round tells nothing


def test_followers_killed_and_frozen_disturb_nobody_and_lead_after_a_clean_stop(
    trial: Trial, judge: Judge, tries: int
) -> None:
    trial.apply()
    trial.start()
    kept = resigned = rounds = 0
    while min(kept, resigned) < tries:
        rounds += 1
        assert rounds <= tries + MORE_ROUNDS, (
            f"of {rounds - 1} rounds the term stayed in {kept}, was left in {resigned}"
        )
        kept += lose_followers(trial, is_even=rounds % 2 == 0)
        resigned += stop_leader(trial, judge)
        report = judge.check()
        assert report.due == report.decided


def lose_followers(trial: Trial, *, is_even: bool) -> bool:
    """Kill one follower and freeze the other, for long; whether the term stayed the same."""
    term = trial.term()
    leader = trial.wait_for_leader()
    killed, frozen = trial.followers() if is_even else reversed(trial.followers())
    trial.nodes[frozen].freeze()
    trial.nodes[killed].kill()
    trial.wait_for_runs(10)
    with contextlib.suppress(AssertionError):
        stays(lambda: trial.term() == term, during=PAST_THE_SESSION, what=f"{leader} leads term {term}")
    trial.nodes[frozen].thaw()
    trial.start_node(killed)
    for name in (killed, frozen):
        trial.wait_for_follower(name, term)
    return (trial.leader(), trial.term()) == (leader, term)


def stop_leader(trial: Trial, judge: Judge) -> bool:
    """One of the others follows; whether it was handed over to."""
    leader, term = trial.wait_for_leader(), trial.term()
    trial.nodes[leader].signal(signal.SIGTERM)
    assert trial.nodes[leader].wait(within=LONG) == 0, trial.nodes[leader].report()
    taken = trial.finished(judge.takeover_after(term).term)
    trial.start_node(leader)
    trial.wait_for_node(leader)
    trial.wait_for_runs(5)
    assert taken.node != leader
    assert taken.predecessor == leader
    judge.check_listing(taken)
    return taken.predecessor_ended is EndedBy.RESIGNED
