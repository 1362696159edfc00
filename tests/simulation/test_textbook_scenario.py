"""The textbook scenario: a job at 02:00, and the leader dies at 01:59:50 with a session that takes 30 s to lapse.

Claims written ahead (invariant 5) start the 02:00 run at 02:00, while nobody leads. Without a horizon the successor
finds the tick undecided, and decides it by the job's policy, on record (invariant 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sexton.claims import Origin, State
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.tables import from_micros
from sexton_tui.simulation.cluster import SimulatedCluster, Simulation
from sexton_tui.simulation.workload import make_job

BEGIN = datetime(2021, 5, 3, 1, 50, tzinfo=UTC)
DEATH = datetime(2021, 5, 3, 1, 59, 50, tzinfo=UTC)
TICK = datetime(2021, 5, 3, 2, 0, tzinfo=UTC)
SESSION = timedelta(seconds=30)
NO_GRACE = timedelta(0)


@contextmanager
def after_the_death(horizon: str, missed: MissedRules, *, zookeeper: bool) -> Iterator[SimulatedCluster]:
    """The cluster at 02:05; its leader was killed at 01:59:50."""
    simulation = Simulation(
        seed=1,
        zookeeper=zookeeper,
        begin=BEGIN,
        jobs=[make_job("nightly", "0 2 * * *", missed=missed)],
        rates=None,
        operator_every=None,
        settings=(("session", "30s"), ("horizon", horizon)),
        failing_runs=0.0,
    )
    with SimulatedCluster(simulation) as cluster:
        cluster.run((DEATH - BEGIN).total_seconds())
        (leader,) = [node for node in cluster.nodes if node.name == cluster.watch.leader_name()]
        leader.process.kill()
        cluster.run((TICK + timedelta(minutes=5) - DEATH).total_seconds())
        assert cluster.watch.findings == []
        assert audit_ledger(cluster.store, BEGIN).is_clean
        yield cluster


def one(cluster: SimulatedCluster, statement: str) -> Any:
    with cluster.store.connection.snapshot() as connection:
        (row,) = connection.execute(statement).fetchall()
    return row


def takeover(cluster: SimulatedCluster) -> tuple[datetime, datetime, datetime, str]:
    """The second takeover: its gap's begin and end, when the term was taken, and how the predecessor ended."""
    gap_from, gap_until, taken_at, ended = one(
        cluster, "SELECT gap_from, gap_until, taken_at, predecessor_ended FROM takeovers WHERE term = 2"
    )
    return from_micros(gap_from), from_micros(gap_until), from_micros(taken_at), ended


both_elections = pytest.mark.parametrize("zookeeper", [True, False], ids=["zookeeper", "leader lease"])


@both_elections
def test_with_the_horizon_the_run_of_two_o_clock_starts_at_two(zookeeper: bool) -> None:
    with after_the_death("60s", MissedRules(), zookeeper=zookeeper) as cluster:
        _, _, taken_at, _ = takeover(cluster)
        assert taken_at > TICK, "nobody led at two"
        written_at, state, origin, term = one(cluster, "SELECT written_at, state, origin, term FROM claims")
        assert from_micros(written_at) <= TICK - timedelta(seconds=55)
        assert (State(state), Origin(origin), term) == (State.SUCCEEDED, Origin.SCHEDULE, 1)
        (started_at,) = one(cluster, "SELECT started_at FROM runs")
        assert TICK <= from_micros(started_at) <= TICK + timedelta(seconds=1)
        (decisions,) = one(cluster, "SELECT count(*) FROM decisions")
        assert decisions == 0, "the successor found nothing to decide"


@both_elections
def test_without_it_the_successor_finds_the_tick_and_fires_it_late(zookeeper: bool) -> None:
    with after_the_death("0s", MissedRules(), zookeeper=zookeeper) as cluster:
        gap_from, gap_until, taken_at, ended = takeover(cluster)
        assert DEATH - SESSION <= gap_from <= DEATH
        assert DEATH + SESSION * 0.6 <= taken_at <= gap_until <= DEATH + SESSION * 2
        assert ended == "vanished"
        written_at, state, origin, term = one(cluster, "SELECT written_at, state, origin, term FROM claims")
        assert from_micros(written_at) >= taken_at
        assert (State(state), Origin(origin), term) == (State.SUCCEEDED, Origin.SCHEDULE, 2)
        assert decision(cluster) == ("takeover", "latest", 1, 1, 0, 0, 0)


def decision(cluster: SimulatedCluster) -> tuple[str, str, int, int, int, int, int]:
    """The one decision on record: cause, policy, missed, fired, merged, skipped, held."""
    cause, policy, missed, fired, merged, skipped, held, reason, term = one(
        cluster, "SELECT cause, policy, missed, fired, merged, skipped, held, reason, term FROM decisions"
    )
    assert term == 2
    assert reason
    return cause, policy, missed, fired, merged, skipped, held


@pytest.mark.parametrize(
    ("policy", "fired", "skipped", "held"),
    [
        (MissedPolicy.SKIP, 0, 1, 0),
        (MissedPolicy.LATEST, 1, 0, 0),
        (MissedPolicy.ALL, 1, 0, 0),
        (MissedPolicy.HOLD, 0, 0, 1),
    ],
)
def test_beyond_its_grace_the_policy_decides(policy: MissedPolicy, fired: int, skipped: int, held: int) -> None:
    with after_the_death("0s", MissedRules(policy, grace=NO_GRACE), zookeeper=True) as cluster:
        assert decision(cluster) == ("takeover", policy.value, 1, fired, 0, skipped, held)
        (claims,) = one(cluster, "SELECT count(*) FROM claims")
        (skips,) = one(cluster, "SELECT count(*) FROM skips")
        (proposals,) = one(cluster, "SELECT count(*) FROM proposals WHERE state = 'open'")
        assert (claims, skips, proposals) == (fired, skipped + held, held)
        if fired:
            origin, state = one(cluster, "SELECT origin, state FROM claims")
            assert (Origin(origin), State(state)) == (Origin.CATCH_UP, State.SUCCEEDED)
