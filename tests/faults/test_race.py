"""Three nodes race on PostgreSQL: one is killed, one frozen, and the strategy is switched under load, both ways.

Invariants 2, 3, 6 and 7. Their coordinator is a port at which nobody speaks ZooKeeper: it counts who calls.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import datetime

import pytest
from sqlalchemy import func, select

from sexton.store.tables import claims
from sexton.terms import EndedBy
from tests.support.judge import Judge
from tests.support.processes import ProcessGroup
from tests.support.trial import Trial, wait_until

NODES = ("node-1", "node-2", "node-3")
SETTINGS = {"strategy": "race", "failover.database_after": "3s"}


class Deaf:
    """Accepts every connection, says nothing and hangs up; counts them."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self.calls += 1
                caller.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    made = Deaf()
    yield made
    made.close()


@pytest.fixture
def trial(processes: ProcessGroup, postgres_ledger: str, deaf: Deaf) -> Iterator[Trial]:
    made = Trial(processes, postgres_ledger, f"zookeeper://127.0.0.1:{deaf.port}/race")
    yield made
    made.close()


def test_a_race_that_loses_nodes_and_is_switched_under_load_decides_each_tick_once(
    trial: Trial, judge: Judge, deaf: Deaf
) -> None:
    trial.apply(settings=SETTINGS)
    trial.start_worker("worker-1")
    for name in NODES:
        trial.start_node(name)
    wait_for_racers(trial, *NODES)
    trial.wait_for_runs(10)

    trial.nodes["node-1"].kill()
    trial.nodes["node-2"].freeze()
    lost_at = trial.store.now()
    wait_until(lambda: newest_claim(trial) > lost_at, "the third racer writes claims")
    trial.wait_for_runs(10)
    trial.nodes["node-2"].thaw()
    trial.start_node("node-1")
    wait_for_racers(trial, *NODES)
    assert deaf.calls == 0

    raced = trial.term()
    trial.sexton("strategy", "leader")
    taken = judge.takeover_after(raced)
    assert (taken.predecessor, taken.predecessor_ended) == ("the race", EndedBy.RESIGNED)
    assert deaf.calls > 0  # its candidates campaign, in vain: the leader lease decides
    trial.finished(taken.term)
    trial.wait_for_runs(10)

    assert trial.sexton("strategy", "race").startswith("race, term")
    judge.keep(judge.note(trial.term()))
    wait_for_racers(trial, *NODES)
    calls = deaf.calls
    trial.wait_for_runs(10)
    assert deaf.calls == calls

    report = judge.check()
    assert report.due == report.decided > 50
    assert trial.counter("race_attempts") > trial.counter("race_conflicts") > 0
    trial.sexton("cluster")


def wait_for_racers(trial: Trial, *names: str) -> None:
    for name in names:
        trial.wait_for_node(name, "racer")


def newest_claim(trial: Trial) -> datetime:
    with trial.store.reads.snapshot() as connection:
        found: datetime = connection.execute(select(func.max(claims.c.written_at))).scalar_one()
    return found
