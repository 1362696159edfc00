"""PostgreSQL is restarted, killed, and stopped for half a minute under a running cluster (`make soak`: for a minute).

Invariants 2, 3 and 7: nodes and workers wait for it, and every tick that fell due meanwhile is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sexton.terms import ElectedBy
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.judge import Judge
from tests.support.outage_trial import figures
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.trial import Trial
from tests.support.waiting import stays

AWAY = 30.0  # seconds
A_MINUTE = 60.0


@pytest.fixture
def trial(
    processes: ProcessGroup, own_postgres_server: PostgresServer, zookeeper_ensemble: ZooKeeperEnsemble
) -> Iterator[Trial]:
    """A cluster on a PostgreSQL of its own."""
    url = own_postgres_server.create_database()
    made = Trial(processes, url, f"zookeeper://{zookeeper_ensemble.hosts}/{url.rpartition('/')[2]}-own")
    yield made
    made.close()


def test_postgres_restarted_killed_and_stopped_for_half_a_minute(
    trial: Trial,
    judge: Judge,
    own_postgres_server: PostgresServer,
    tries: int,
    horizon_of_outage: str,
    soak: float,
    record_property: Callable[[str, object], None],
) -> None:
    away = A_MINUTE if soak else AWAY
    trial.apply(settings={"horizon": horizon_of_outage})
    trial.start()
    for number in range(tries):
        trial.wait_for_runs(5 + number)
        own_postgres_server.restart()
        check_everybody_is_back(trial, judge)

        own_postgres_server.kill()
        own_postgres_server.start()
        check_everybody_is_back(trial, judge)

        stopped_at = trial.store.now()
        own_postgres_server.stop()
        stays(lambda: not own_postgres_server.is_running(), during=away, what="PostgreSQL is stopped")
        own_postgres_server.start()
        check_everybody_is_back(trial, judge)
        record_property("told", f"stopped for {away:g} s; {figures(trial, stopped_at)}")
    # A heartbeat that nobody could read has not stood still: without the database there is no leader lease to take.
    assert {taken.elected_by for taken in trial.takeovers()} == {ElectedBy.ZOOKEEPER}


def check_everybody_is_back(trial: Trial, judge: Judge) -> None:
    trial.wait_for_database()
    for name in trial.nodes:
        trial.wait_for_node(name)
    trial.wait_for_runs(10)
    judge.check()
    for process in (*trial.nodes.values(), *trial.workers.values()):
        assert process.is_running(), process.report()
