"""The leader of a real cluster is killed, and frozen past its session, at every moment of a batch.

Invariants 2 (one decision a tick), 3 (a stale leader writes nothing), 5 (claims are written ahead) and 7.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg

from sexton.terms import EndedBy
from tests.support.judge import EVERY_SECOND, Judge
from tests.support.moments import MOMENTS, Moment, MovedError, leader_at, take_over_while_it_waits
from tests.support.processes import RunningProcess
from tests.support.trial import Takeover, Trial


def test_a_leader_killed_and_a_leader_frozen_past_its_session(
    trial: Trial, judge: Judge, tries: int, horizon_of_takeover: str
) -> None:
    trial.apply(settings={"horizon": horizon_of_takeover})
    trial.start()
    for number in range(1, 1 + tries):
        kill_leader(trial, judge, MOMENTS[(number + 1) % len(MOMENTS)], horizon_of_takeover)
        freeze_leader(trial, judge, MOMENTS[number % len(MOMENTS)], horizon_of_takeover)
        overtake_leader(trial, judge)


def kill_leader(trial: Trial, judge: Judge, moment: Moment, horizon: str) -> None:
    leader, lost_at, taken = strike(trial, judge, moment, RunningProcess.kill)
    check_successor(trial, judge, taken, leader, moment)
    check_gap(trial, judge, trial.finished(taken.term), lost_at, horizon)
    trial.start_node(leader)
    trial.wait_for_follower(leader, taken.term)
    judge.check()


def freeze_leader(trial: Trial, judge: Judge, moment: Moment, horizon: str) -> None:
    """Frozen, it keeps its connections and whatever its backend had locked; thawed, it goes on where it was."""
    leader, lost_at, taken = strike(trial, judge, moment, RunningProcess.freeze)
    check_successor(trial, judge, taken, leader, moment)
    check_gap(trial, judge, trial.finished(taken.term), lost_at, horizon)
    trial.nodes[leader].thaw()
    trial.wait_for_follower(leader, taken.term)
    trial.wait_for_runs(5)
    judge.check()


def overtake_leader(trial: Trial, judge: Judge) -> None:
    """A leader that does not know yet that it is none: its statement waits for the takeover, and writes nothing."""
    note = None
    while note is None:
        leader = trial.wait_for_leader()
        with contextlib.suppress(psycopg.OperationalError):
            note = take_over_while_it_waits(trial, leader, before_commit=lambda: judge.note(trial.term() + 1))
    judge.keep(note)
    taken = trial.finished(judge.takeover_after(note.term).term)
    assert (taken.predecessor, taken.node in trial.nodes) == ("stand-in", True)
    trial.wait_for_runs(5)
    judge.check()


def strike(
    trial: Trial, judge: Judge, moment: Moment, blow: Callable[[RunningProcess], object]
) -> tuple[str, datetime, Takeover]:
    """Strike the leader: its name, the instant, and the takeover that followed."""
    while True:
        leader, term = trial.wait_for_leader(), trial.term()
        trial.wait_for_runs(5)
        with contextlib.suppress(MovedError), leader_at(trial, leader, moment) as let_go:
            blow(trial.nodes[leader])
            lost_at = trial.store.now()
            let_go()
            return leader, lost_at, judge.takeover_after(term)


def check_successor(trial: Trial, judge: Judge, taken: Takeover, leader: str, moment: Moment) -> None:
    taken = trial.finished(taken.term)
    trial.wait_for_runs(5)
    assert taken.node != leader
    assert (taken.predecessor, taken.predecessor_ended) == (leader, EndedBy.VANISHED)
    if moment is Moment.HELD_AMONG_THE_ROWS:
        assert taken.blockers_terminated > 0


def check_gap(trial: Trial, judge: Judge, taken: Takeover, lost_at: datetime, horizon: str) -> None:
    """What fell due while nobody led was decided by the one who was lost, ahead of time, or is listed by the other."""
    missed = judge.check_listing(taken)
    if horizon == "0s":
        assert missed >= EVERY_SECOND * ((taken.taken_at - lost_at) // timedelta(seconds=1))
        return
    judge.check_written_ahead(taken)
