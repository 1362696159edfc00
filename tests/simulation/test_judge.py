"""Each of the judge's verdicts has a damaged ledger as its test; the audit's own verdicts have theirs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sexton_tui.simulation.cluster import BEGIN, SimulatedCluster, Simulation
from sexton_tui.simulation.judge import judge

OLDEST = "(SELECT rowid FROM claims WHERE state = 3 ORDER BY scheduled_at LIMIT 1)"
# Of a job that is not just running: its slot is free.
OLDEST_AT_REST = (
    "(SELECT c.rowid FROM claims c JOIN slots s ON s.slot = c.slot WHERE c.state = 3 AND s.token IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM claims r WHERE r.slot = c.slot AND r.state IN (1, 2))"
    " ORDER BY c.scheduled_at LIMIT 1)"
)


@pytest.fixture(scope="module")
def undisturbed() -> Iterator[SimulatedCluster]:
    """A little more than an hour without faults."""
    with SimulatedCluster(Simulation(1, rates=None, operator_every=None, settings=(("horizon", "2m"),))) as cluster:
        cluster.run(4000)
        yield cluster


@pytest.fixture
def cluster(undisturbed: SimulatedCluster) -> Iterator[SimulatedCluster]:
    """The undisturbed cluster; what a test does to its ledger is undone."""
    with undisturbed.store.connection.transaction() as connection:
        raw = connection
    ledger, runs = raw.serialize(), list(undisturbed.watch.runs)
    yield undisturbed
    raw.deserialize(ledger)
    undisturbed.watch.runs[:] = runs


def findings(cluster: SimulatedCluster) -> set[str]:
    horizon = cluster.store.edits.settings().horizon
    return {finding.kind for finding in judge(cluster.watch, BEGIN, horizon, cluster.quiet.finish()).findings}


def test_an_undisturbed_hour_is_clean_and_was_written_ahead(cluster: SimulatedCluster) -> None:
    judged = judge(cluster.watch, BEGIN, cluster.store.edits.settings().horizon, cluster.quiet.finish())
    assert judged.findings == ()
    assert judged.written_ahead > 100
    assert judged.runs > 100


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("missing", f"DELETE FROM claims WHERE rowid = {OLDEST}"),
        ("never ended", f"UPDATE claims SET state = 0 WHERE rowid = {OLDEST}"),
        ("never ended", f"UPDATE claims SET state = 1, lease_expires_at = 1 WHERE rowid = {OLDEST}"),
        ("parked for ever", f"UPDATE claims SET state = 2 WHERE rowid = {OLDEST_AT_REST}"),
        (
            "written late",
            "UPDATE claims SET written_at = scheduled_at + 1 WHERE rowid ="
            " (SELECT rowid FROM claims WHERE origin = 0 ORDER BY scheduled_at LIMIT 1 OFFSET 100)",
        ),
        (
            "ended twice",
            "INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, finished_at)"
            " SELECT 1000000, job_id, scheduled_at, 2, revision, 1, 3, finished_at FROM runs"
            " WHERE outcome = 3 LIMIT 1",
        ),
        ("takeover not recorded", "DELETE FROM takeovers"),
        ("takeover not finished", "UPDATE takeovers SET gap_until = NULL"),
    ],
)
def test_damage_is_found(cluster: SimulatedCluster, kind: str, statement: str) -> None:
    with cluster.store.connection.transaction() as connection:
        connection.execute(statement)
    assert kind in findings(cluster)


def test_an_at_most_once_run_that_began_twice_is_found(cluster: SimulatedCluster) -> None:
    once = next(run for run in cluster.watch.runs if run.at_most_once)
    cluster.watch.saw_run(once)
    assert findings(cluster) == {"ran more than once"}
