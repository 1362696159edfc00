"""A cluster on a real ensemble and PostgreSQL, judged by what it left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.judge import Judge
from tests.support.processes import ProcessGroup
from tests.support.trial import Trial


@pytest.fixture
def trial(processes: ProcessGroup, postgres_url: str, zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[Trial]:
    """A cluster on PostgreSQL, elected by three ZooKeeper servers; nothing of it runs yet."""
    coordinator = f"zookeeper://{zookeeper_ensemble.hosts}/{postgres_url.rpartition('/')[2]}"
    made = Trial(processes, postgres_url, coordinator)
    yield made
    made.close()


@pytest.fixture
def judge(trial: Trial) -> Judge:
    return Judge(trial)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With claims written ahead and without, but one of them where a trial is made once only: it takes a while."""
    if "outage_horizon" in metafunc.fixturenames:
        metafunc.parametrize("outage_horizon", ["60s", "0s"] if metafunc.config.getoption("tries") > 1 else ["60s"])
