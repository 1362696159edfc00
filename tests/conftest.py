"""Fixtures for every layer: the servers and processes that tests may ask for."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sexton.store.schema import upgrade
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.kept_ledgers import KeptLedgers
from tests.support.order_of_files import ordered
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.processes import ProcessGroup
from tests.support.zookeeper import ZooKeeperServer

# The tests' outcome must not hang on who runs them: Textual reads these at import, Sexton at every start.
# (Not what pytest-textual-snapshot tells its other processes by.)
for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith(("TEXTUAL", "SEXTON_"))]:
    if not name.startswith("TEXTUAL_SNAPSHOT"):
        del os.environ[name]

# Else each of hundreds of processes would compile all of Sexton for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Whoever starts the tests in the background of a script has them, and every process they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Looking for unreachable cycles at every 700 new objects takes a tenth of all tests' CPU time; nothing hangs on when
# they are found.
gc.set_threshold(50_000, 20, 50)

# A loaded machine is no finding: no deadline per example. Sixty examples, for what all tests may take. Where CI is in
# the environment, it draws the same examples every time.
settings.register_profile("sexton", settings(), deadline=None, max_examples=60)
settings.load_profile("sexton")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tries", type=int, default=1, help="how often each trial of tests/faults kills, freezes, stops")
    parser.addoption(
        "--soak", type=float, default=0.0, help="minutes that long trials last; 0: as short as CI has them"
    )


_ONLY_IN_TRIALS = ("test_takeovers.py", "test_cluster_down.py")
"""Whole clusters that fall and rise again: for `make trials` and `make soak-outages`, too long for every commit."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files in the order that keeps both cores busy; the tests of a file stay together and in their order."""
    if config.getoption("tries") == 1 and not config.getoption("soak"):
        left_out = [item for item in items if item.path.name in _ONLY_IN_TRIALS]
        items[:] = [item for item in items if item.path.name not in _ONLY_IN_TRIALS]
        config.hook.pytest_deselected(items=left_out)
    file_of = {item: (item.path.parent.name, item.path.name) for item in items}
    places = {file: place for place, file in enumerate(ordered(list(file_of.values())))}
    items.sort(key=lambda item: places[file_of[item]])


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays to the end: no later search for cycles goes through it."""
    gc.freeze()


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> float:
    """For how many minutes a trial of `make soak` goes on; 0 where nobody asked for that."""
    return float(request.config.getoption("soak"))


@pytest.fixture
def tries(request: pytest.FixtureRequest) -> int:
    """How often a trial does to its cluster what it is about, each time at another moment."""
    return int(request.config.getoption("tries"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole session. Who freezes or kills it takes `own_postgres_server` instead."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The url of a fresh, empty database."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> str:
    """The name of a PostgreSQL database with an empty ledger, to be copied."""
    upgrade(postgres_server.create_database("sexton_template"))
    return "sexton_template"


@pytest.fixture(scope="session")
def kept_ledgers(postgres_server: PostgresServer, migrated_template: str) -> KeptLedgers:
    """Lends PostgreSQL databases with an empty ledger."""
    return KeptLedgers(postgres_server, migrated_template)


@pytest.fixture
def postgres_ledger(kept_ledgers: KeptLedgers) -> Iterator[str]:
    """The url of a PostgreSQL database with an empty ledger, of this test alone."""
    with kept_ledgers.lent() as url:
        yield url


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test alone, to be killed or frozen at will."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[ZooKeeperServer]:
    """One ZooKeeper server for the whole session; tests keep apart by their paths. Who freezes it takes its own."""
    with ZooKeeperServer() as server:
        yield server


@pytest.fixture
def own_zookeeper_server() -> Iterator[ZooKeeperServer]:
    """A ZooKeeper server of this test alone, to be killed, frozen or wiped at will."""
    with ZooKeeperServer() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper_ensemble() -> Iterator[ZooKeeperEnsemble]:
    """Three ZooKeeper servers for the whole session; tests keep apart by their paths. Who breaks it takes its own."""
    with ZooKeeperEnsemble() as ensemble:
        yield ensemble


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ProcessGroup]:
    """Starts `sexton` commands as real processes; whatever still runs at the end of the test is killed."""
    with ProcessGroup(tmp_path) as group:
        yield group
