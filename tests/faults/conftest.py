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
def judge(trial: Trial) -> Iterator[Judge]:
    """Judges as often as it is asked, and once more at the end, by the command that an operator would use."""
    judge = Judge(trial)
    yield judge
    trial.audit()


HORIZONS = {
    "horizon_of_takeover": ["0s", "60s"],
    "horizon_of_outage": ["60s", "0s"],
    "horizon_of_promotion": ["60s", "0s"],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Trials without claims ahead, and with; where they try only once, the first of these alone."""
    for name in HORIZONS.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, HORIZONS[name][: 1 if metafunc.config.getoption("tries") == 1 else None])
