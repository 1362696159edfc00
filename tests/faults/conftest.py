"""A cluster on a real ensemble and PostgreSQL, judged by what it left behind."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.judge import Judge
from tests.support.processes import ProcessGroup
from tests.support.trial import Trial


@pytest.fixture
def trial(processes: ProcessGroup, postgres_ledger: str, zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[Trial]:
    """A cluster on PostgreSQL, elected by three ZooKeeper servers; nothing of it runs yet."""
    coordinator = f"zookeeper://{zookeeper_ensemble.hosts}/{secrets.token_hex(8)}"
    made = Trial(processes, postgres_ledger, coordinator)
    yield made
    made.close()


@pytest.fixture
def judge(trial: Trial) -> Iterator[Judge]:
    """Judges as often as it is asked, and once more at the end, by the command that an operator would use."""
    judge = Judge(trial)
    yield judge
    trial.audit()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Under `make soak`: each trial's verdict, how long it took, its name, and what it told (`record_property`)."""
    if not config.getoption("soak"):
        return
    terminalreporter.section("trials")
    for verdict, outcome in (("held", "passed"), ("FAILED", "failed"), ("FAILED", "error")):
        for report in terminalreporter.getreports(outcome):
            if report.when == "call" or outcome != "passed":
                name = report.nodeid.rpartition("::test_")[2].replace("_", " ")
                told = "".join(f"\n        {value}" for key, value in report.user_properties if key == "told")
                terminalreporter.write_line(f"{verdict:6} {report.duration:5.0f} s  {name}{told}")


HORIZONS = {
    "horizon_of_takeover": ["0s", "60s"],
    "horizon_of_outage": ["60s", "0s"],
    "horizon_of_promotion": ["60s", "0s"],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Trials without claims ahead, and with; where they try only once and are short, the first of these alone."""
    is_short = metafunc.config.getoption("tries") == 1 and not metafunc.config.getoption("soak")
    for name in HORIZONS.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, HORIZONS[name][: 1 if is_short else None])
