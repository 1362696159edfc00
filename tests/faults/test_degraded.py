"""ZooKeeper away, all of it or for one node alone, on a real ensemble of three: who leads, and under how many terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.forwarding import Forwarder
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.trial import LONG, Trial, wait_until
from tests.support.waiting import NeverHappenedError, stays

SETTINGS = {"session": "4s", "failover.database_after": "8s", "horizon": "10s"}
SOME_SESSIONS = 12.0
JOBS = """\
version: 1
jobs:
  bell:
    schedule: "* * * * * *"
    missed: {policy: all, grace: 60s}
    command: ["true"]
"""


@dataclass
class Night:
    """A cluster of three nodes whose ways to ZooKeeper and PostgreSQL can be cut."""

    trial: Trial
    ensemble: ZooKeeperEnsemble
    zookeeper: list[Forwarder]
    database: Forwarder

    def confirmation(self, name: str) -> str | None:
        found = [node.confirmation for node in self.trial.store.reads.nodes() if node.name == name]
        return found[0] if found else None

    def wait_for(self, name: str, confirmation: str) -> None:
        try:
            wait_until(lambda: self.confirmation(name) == confirmation, f"{name} is {confirmation}")
        except NeverHappenedError as error:
            nodes = "\n".join(str(node) for node in self.trial.store.reads.nodes())
            logs = "\n".join(process.report() for process in self.trial.nodes.values())
            raise AssertionError(f"{error}\n{self.trial.store.terms.cluster()}\n{nodes}\n{logs}") from error

    def wait_for_claims(self) -> None:
        """Return when claims are written for ticks that lie the whole horizon ahead of a moment that is now."""
        wanted = self.trial.store.now() + timedelta(seconds=10)

        def is_written() -> bool:
            nodes = self.trial.store.reads.nodes()
            return any(node.claims_upto is not None and node.claims_upto >= wanted for node in nodes)

        wait_until(is_written, f"claims up to {wanted}")

    def settle(self) -> str:
        """Return the leader's name once it is confirmed."""

        def confirmed() -> list[str]:
            leader = self.trial.leader()
            return [leader] if leader is not None and self.confirmation(leader) == "confirmed" else []

        return wait_until(confirmed, "a confirmed leader")[0]

    def is_calm(self) -> None:
        """Prove that for some sessions no further term is taken."""
        term = self.trial.term()
        stays(lambda: self.trial.term() == term, during=SOME_SESSIONS, what=f"term {term} goes on")

    def force(self, name: str) -> None:
        """Force this node, and return when it leads (the command itself waits no longer than 10 s)."""
        self.trial.processes.run("leader", "force", name, env=self.trial.environment, within=LONG)
        wait_until(lambda: self.trial.leader() == name, f"{name} leads")

    def cut_from_zookeeper(self, name: str) -> None:
        for way in self.zookeeper:
            way.cut(self.trial.nodes[name].pid)

    def mend_zookeeper(self, name: str) -> None:
        for way in self.zookeeper:
            way.mend(self.trial.nodes[name].pid)


@pytest.fixture
def night(processes: ProcessGroup, postgres_server: PostgresServer, postgres_ledger: str) -> Iterator[Night]:
    with ExitStack() as opened:
        ensemble = opened.enter_context(ZooKeeperEnsemble())
        ways = [opened.enter_context(Forwarder(server.port)) for server in ensemble.servers]
        database = opened.enter_context(Forwarder(postgres_server.port))
        hosts = ",".join(f"127.0.0.1:{way.port}" for way in ways)
        trial = Trial(processes, postgres_ledger, f"zookeeper://{hosts}/sexton")
        opened.callback(trial.close)
        opened.callback(processes.end)
        trial.apply(JOBS, SETTINGS)
        trial.environment["SEXTON_DATABASE"] = postgres_ledger.replace(str(postgres_server.port), str(database.port))
        made = Night(trial, ensemble, ways, database)
        trial.start(nodes=3, workers=0)
        made.settle()
        yield made


def test_the_leader_goes_on_through_an_outage_and_a_dead_one_is_followed_without_flapping(night: Night) -> None:
    trial = night.trial
    leader = night.settle()
    night.ensemble.kill()
    night.wait_for(leader, "unconfirmed")
    night.wait_for_claims()
    assert trial.term() == 1
    night.ensemble.start()
    night.settle()
    assert trial.term() <= 2  # confirmed, or moved once
    night.is_calm()

    before, leader = trial.term(), night.settle()
    night.ensemble.kill()
    night.wait_for(leader, "unconfirmed")
    trial.nodes[leader].kill()
    successor = trial.wait_for_leader(other_than=leader)
    night.wait_for(successor, "degraded")
    assert (trial.term(), trial.store.terms.cluster().elected_by) == (before + 1, "database")
    night.wait_for_claims()
    night.ensemble.start()
    night.settle()
    assert trial.term() <= before + 2
    night.is_calm()
    night.wait_for_claims()
    trial.audit()


def test_a_node_cut_off_alone_takes_over_nothing_and_keeps_nothing(night: Night) -> None:
    trial = night.trial
    leader = night.settle()
    follower = trial.followers()[0]
    term = trial.term()

    # A follower without ZooKeeper: the heartbeat moves, so it takes nothing.
    night.cut_from_zookeeper(follower)
    stays(lambda: trial.term() == term, during=2 * 8.0, what="nobody takes over")
    night.mend_zookeeper(follower)

    # The leader without ZooKeeper: another is elected, once.
    night.cut_from_zookeeper(leader)
    successor = trial.wait_for_leader(other_than=leader)
    night.wait_for(successor, "confirmed")
    assert trial.term() == term + 1
    night.mend_zookeeper(leader)
    night.is_calm()

    # The leader without the database: it makes way at ZooKeeper, and steps down when it is back.
    night.database.cut(trial.nodes[successor].pid)
    third = trial.wait_for_leader(other_than=successor)
    night.wait_for(third, "confirmed")
    night.database.mend(trial.nodes[successor].pid)
    trial.wait_for_node(successor, role="follower")
    night.is_calm()
    night.wait_for_claims()
    trial.audit()


def test_a_forced_node_wins_the_election_too_and_without_zookeeper_leads_until_it_is_back(night: Night) -> None:
    trial = night.trial
    chosen = trial.followers()[-1]
    term = trial.term()
    night.force(chosen)
    night.wait_for(chosen, "confirmed")
    wait_until(lambda: trial.store.terms.cluster().forced_to is None, "the force is over")
    assert (trial.leader(), trial.term()) == (chosen, term + 1)
    night.is_calm()

    night.ensemble.kill()
    night.wait_for(chosen, "unconfirmed")
    other = trial.followers()[0]
    night.force(other)
    night.wait_for(other, "unconfirmed")
    assert (trial.leader(), trial.term()) == (other, term + 2)
    night.is_calm()
    night.ensemble.start()
    night.wait_for(other, "confirmed")
    wait_until(lambda: trial.store.terms.cluster().forced_to is None, "the force is over")
    assert (trial.leader(), trial.term()) == (other, term + 2)
    night.is_calm()
    night.wait_for_claims()
    trial.audit()
