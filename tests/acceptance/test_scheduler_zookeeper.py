"""`sexton scheduler` elected by a real ZooKeeper: takeovers, and an outage that does not stop the schedule."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.targets import CommandTarget
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

LIMIT = 60.0


@pytest.fixture
def store(postgres_ledger: str) -> Iterator[Store]:
    """A ledger on PostgreSQL with a job due every second."""
    opened = open_store(StoreOptions(postgres_ledger))
    opened.edits.set_setting("session", "2s", "tests")
    opened.edits.set_setting("failover.database_after", "4s", "tests")
    often = JobDefinition("often", ({"cron": "* * * * * *"},), CommandTarget(("true",)))
    opened.edits.edit([JobChange(ChangeKind.CREATE, definition=often)], "tests")
    yield opened
    opened.close()


@pytest.fixture
def start(
    postgres_ledger: str, own_zookeeper_server: ZooKeeperServer, processes: ProcessGroup, tmp_path: Path
) -> Starter:
    return Starter(postgres_ledger, f"zookeeper://{own_zookeeper_server.hosts}/sexton", processes)


class Starter:
    """Starts nodes of one cluster."""

    def __init__(self, url: str, coordinator: str, processes: ProcessGroup) -> None:
        self._options = ("--database", url, "--coordinator", coordinator, "scheduler", "--name")
        self._processes = processes

    def __call__(self, name: str) -> RunningProcess:
        return self._processes.sexton(*self._options, name, name=name)


def leader_is(store: Store, name: str) -> None:
    eventually(lambda: store.terms.cluster().leader == name, within=LIMIT, what=f"{name} leads")


def reported(store: Store, name: str, confirmation: str) -> None:
    def as_expected() -> bool:
        return any(node.name == name and node.confirmation == confirmation for node in store.reads.nodes())

    eventually(as_expected, within=LIMIT, what=f"{name} is {confirmation}")


def written_upto(store: Store, ahead: timedelta) -> None:
    """Wait until claims are written this far ahead of a moment that is now."""
    wanted = store.now() + ahead
    eventually(
        lambda: any(node.claims_upto is not None and node.claims_upto >= wanted for node in store.reads.nodes()),
        within=LIMIT,
        what=f"claims up to {wanted}",
    )


def test_a_killed_leader_is_followed_when_its_session_ends(store: Store, start: Starter) -> None:
    leader = start("one")
    leader_is(store, "one")
    start("two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    leader.kill()
    leader_is(store, "two")
    cluster = store.terms.cluster()
    assert (cluster.term, cluster.elected_by) == (2, "zookeeper")
    written_upto(store, timedelta(seconds=60))


def test_sigterm_hands_over_through_zookeeper(store: Store, start: Starter) -> None:
    leader = start("one")
    leader_is(store, "one")
    start("two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    leader.signal(signal.SIGTERM)
    assert leader.wait(within=LIMIT) == 0
    leader_is(store, "two")
    takeover = next(one for one in store.reads.takeovers() if one.node == "two")
    assert takeover.predecessor_ended == "resigned"


def test_an_outage_of_zookeeper_leaves_the_leader_unconfirmed_and_at_work(
    store: Store, start: Starter, own_zookeeper_server: ZooKeeperServer
) -> None:
    start("one")
    leader_is(store, "one")
    reported(store, "one", "confirmed")
    own_zookeeper_server.kill()
    reported(store, "one", "unconfirmed")
    written_upto(store, timedelta(seconds=63))
    own_zookeeper_server.start()
    reported(store, "one", "confirmed")
    assert store.terms.cluster().term == 1


def test_a_leader_killed_while_zookeeper_is_away_is_followed_by_the_leader_lease(
    store: Store, start: Starter, own_zookeeper_server: ZooKeeperServer
) -> None:
    leader = start("one")
    leader_is(store, "one")
    start("two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    own_zookeeper_server.kill()
    reported(store, "one", "unconfirmed")
    leader.kill()
    leader_is(store, "two")
    reported(store, "two", "degraded")
    assert store.terms.cluster().elected_by == "database"
    own_zookeeper_server.start()
    reported(store, "two", "confirmed")
    assert store.terms.cluster().term == 2
