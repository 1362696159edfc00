"""Every node and worker is restarted in turn, and all nodes, or all processes, are killed at once.

Invariants 2, 3, 5 and 7.
"""

from __future__ import annotations

import signal

from sqlalchemy import func, select

from sexton.claims import State
from sexton.store.tables import claims
from sexton.terms import EndedBy
from tests.support.judge import Judge
from tests.support.processes import RunningProcess
from tests.support.trial import LONG, Trial

MORE_ROUNDS = 5  # on a loaded machine a leader's session may run out before it is stopped: such a round tells less


def test_a_rolling_restart_of_all_and_all_nodes_killed_at_once(trial: Trial, judge: Judge, tries: int) -> None:
    trial.apply()
    trial.start()
    resigned = rounds = 0
    while resigned < tries:
        rounds += 1
        assert rounds <= tries + MORE_ROUNDS, (
            f"in {rounds - 1} rolling restarts the lead was handed over {resigned} times"
        )
        resigned += restart_in_turn(trial, judge)
    assert lost(trial) == 0  # a clean stop loses no run
    for number in range(tries):
        kill_all(trial, judge, with_workers=number % 2 == 1)


def restart_in_turn(trial: Trial, judge: Judge) -> bool:
    """Workers, then nodes, as a deployment does; whether the lead was handed over."""
    before = trial.term()
    for name, process in list(trial.workers.items()):
        stop(process)
        trial.start_worker(name)
        trial.wait_for_workers()
    for name, process in list(trial.nodes.items()):
        leads, term = trial.leader() == name, trial.term()
        stop(process)
        if leads:
            taken = judge.takeover_after(term)
            assert taken.predecessor == name
            judge.check_listing(trial.finished(taken.term))
        trial.start_node(name)
        trial.wait_for_node(name)
    trial.wait_for_runs(5)
    report = judge.check()
    assert report.due == report.decided
    return any(taken.predecessor_ended is EndedBy.RESIGNED for taken in trial.takeovers() if taken.term > before)


def kill_all(trial: Trial, judge: Judge, *, with_workers: bool) -> None:
    """All nodes, as if a deployment went wrong; or everything, as if the power failed."""
    trial.wait_for_leader()
    trial.wait_for_runs(3)
    for process in trial.nodes.values():
        process.kill()
    leader, term = trial.leader(), trial.term()
    if with_workers:
        for process in trial.workers.values():
            process.kill_tree()
        for name in trial.workers:
            trial.start_worker(name)
    trial.wait_for_runs(10)  # workers need no leader: they go on with what was claimed ahead
    assert trial.term() == term
    for name in trial.nodes:
        trial.start_node(name)
    taken = judge.takeover_after(term)
    assert (taken.predecessor, taken.predecessor_ended) == (leader, EndedBy.VANISHED)
    taken = trial.finished(taken.term)
    for name in trial.nodes:
        trial.wait_for_node(name)
    trial.wait_for_runs(5)
    judge.check_listing(taken)
    judge.check_written_ahead(taken)
    judge.check()


def stop(process: RunningProcess) -> None:
    """In order, as a service supervisor does."""
    process.signal(signal.SIGTERM)
    assert process.wait(within=LONG) == 0, process.report()


def lost(trial: Trial) -> int:
    """How many runs were ever lost with their worker."""
    with trial.store.reads.snapshot() as connection:
        statement = select(
            func.coalesce(func.sum(claims.c.losses), 0) + func.count().filter(claims.c.state == State.LOST)
        )
        return int(connection.execute(statement).scalar_one())
