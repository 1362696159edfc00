"""The leader of a real cluster is killed: nodes and workers as processes, PostgreSQL, ZooKeeper; the audit judges.

Invariants 2 (one decision a tick), 3 (a stale leader writes nothing), 5 (claims are written ahead) and 7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from sexton.claims import Origin
from sexton.store.tables import claims, takeovers
from tests.support.processes import ProcessGroup
from tests.support.trial import EVERY_SECOND, LONG, Trial
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

SESSION = timedelta(seconds=2)


@pytest.fixture
def trial(processes: ProcessGroup, postgres_url: str, zookeeper_server: ZooKeeperServer) -> Iterator[Trial]:
    """A cluster on PostgreSQL, elected by ZooKeeper. (The leader lease: tests/acceptance/test_scheduler_process.)"""
    coordinator = f"zookeeper://{zookeeper_server.hosts}/{postgres_url.rpartition('/')[2]}"
    made = Trial(processes, postgres_url, coordinator)
    yield made
    made.close()


def start_three_nodes(trial: Trial) -> str:
    for number in (1, 2, 3):
        trial.start_node(f"node-{number}")
    leader = trial.wait_for_leader()
    eventually(lambda: len(trial.store.reads.nodes()) == 3, within=LONG, what="three nodes have reported")
    return leader


def gap_of(trial: Trial, term: int) -> tuple[datetime, datetime]:
    """The gap of a takeover, once its pass over missed ticks is done."""

    def closed() -> list[tuple[datetime, datetime]]:
        with trial.store.reads.snapshot() as connection:
            row = connection.execute(select(takeovers).where(takeovers.c.term == term)).one()
        return [] if row.gap_until is None else [(row.gap_from, row.gap_until)]

    return eventually(closed, within=LONG, what=f"the pass of term {term} is done")[0]


def test_every_claim_of_the_gap_was_written_before_its_tick(trial: Trial) -> None:
    trial.apply(EVERY_SECOND % ("all", "60s"), {"session": "2s"})
    trial.start_worker("worker-1")
    leader = start_three_nodes(trial)
    trial.wait_for_runs(3, after=trial.store.now())

    trial.nodes[leader].kill()
    successor = trial.wait_for_leader(other_than=leader)
    term = trial.store.terms.cluster().term
    gap_from, gap_until = gap_of(trial, term)
    trial.wait_for_runs(3, after=gap_until)

    with trial.store.reads.snapshot() as connection:
        in_gap = connection.execute(
            select(claims).where(claims.c.scheduled_at > gap_from, claims.c.scheduled_at <= gap_until)
        ).all()
    assert successor != leader
    assert len(in_gap) >= (gap_until - gap_from) // timedelta(seconds=1)
    assert all(claim.written_at < claim.scheduled_at for claim in in_gap)
    assert all(claim.term < term for claim in in_gap)
    report = trial.audit(upto=trial.store.now())
    assert report["due"] == report["decided"] > len(in_gap)


def test_without_a_horizon_every_tick_of_the_gap_is_decided_and_listed(trial: Trial) -> None:
    trial.apply(EVERY_SECOND % ("latest", "1s"), {"session": "2s", "horizon": "0s"})
    trial.start_worker("worker-1")
    leader = start_three_nodes(trial)
    trial.wait_for_runs(3, after=trial.store.now())

    trial.nodes[leader].kill()
    trial.wait_for_leader(other_than=leader)
    term = trial.store.terms.cluster().term
    gap_from, gap_until = gap_of(trial, term)
    trial.wait_for_runs(3, after=gap_until)

    listed = json.loads(trial.sexton("takeovers", str(term), "--output", "json"))
    (decision,) = listed["decisions"]
    assert decision["job"] == "bell"
    assert decision["missed"] >= (gap_until - gap_from) // timedelta(seconds=1) - 1 > 0
    assert decision["missed"] == decision["fired"] + decision["merged"]
    assert decision["fired"] == 1
    assert str(decision["missed"]) in decision["reason"]
    report = trial.audit(upto=trial.store.now())
    assert report["counts"]["missing"] == report["counts"]["double"] == 0


def test_a_leader_frozen_past_its_session_writes_nothing_when_it_wakes(trial: Trial) -> None:
    trial.apply(EVERY_SECOND % ("all", "60s"), {"session": "2s"})
    trial.start_worker("worker-1")
    leader = start_three_nodes(trial)
    frozen = trial.nodes[leader]
    trial.wait_for_runs(2, after=trial.store.now())

    frozen.freeze()
    trial.wait_for_leader(other_than=leader)
    term = trial.store.terms.cluster().term
    gap_of(trial, term)
    with trial.store.reads.snapshot() as connection:
        before = connection.execute(select(claims.c.scheduled_at).where(claims.c.term < term)).scalars().all()
    frozen.thaw()
    follows = eventually(
        lambda: [n for n in trial.store.reads.nodes() if n.name == leader and n.role == "follower"],
        within=LONG,
        what=f"{leader} follows",
    )
    trial.wait_for_runs(3, after=trial.store.now())

    with trial.store.reads.snapshot() as connection:
        after = connection.execute(select(claims.c.scheduled_at).where(claims.c.term < term)).scalars().all()
    assert follows
    assert sorted(after) == sorted(before)
    trial.audit(upto=trial.store.now())


def test_all_nodes_killed_at_once_lose_no_tick(trial: Trial) -> None:
    trial.apply(EVERY_SECOND % ("all", "60s"), {"session": "2s"})
    trial.start_worker("worker-1")
    start_three_nodes(trial)
    trial.wait_for_runs(2, after=trial.store.now())

    for node in trial.nodes.values():
        node.kill()
    trial.wait_for_runs(3, after=trial.store.now())  # the workers go on with what was claimed ahead
    trial.start_node("node-4")
    assert trial.wait_for_leader(other_than=trial.leader()) == "node-4"
    gap_of(trial, trial.store.terms.cluster().term)
    trial.wait_for_runs(2, after=trial.store.now())
    report = trial.audit(upto=trial.store.now())
    assert report["due"] == report["decided"]


def test_a_worker_killed_in_a_run_leaves_it_to_be_granted_again_under_a_higher_token(trial: Trial) -> None:
    trial.apply(
        'version: 1\njobs:\n  long:\n    schedule: "* * * * * *"\n    overlap: skip\n    shell: "sleep 3600"\n',
        {"session": "2s", "heartbeat": "1s", "lease": "3s"},
    )
    start_three_nodes(trial)
    doomed = trial.start_worker("worker-1")
    first = eventually(lambda: trial.store.reads.running(), within=LONG, what="a run is going")[0]
    trial.start_worker("worker-2")
    doomed.kill_tree()

    def granted_again() -> list[int]:
        running = trial.store.reads.running()
        return [c.token for c in running if c.scheduled_at == first.scheduled_at and c.worker == "worker-2" and c.token]

    (token,) = eventually(granted_again, within=LONG, what="the run is granted to the other worker")
    assert first.token is not None
    assert token > first.token
    runs = [run for run in trial.store.reads.runs_page(limit=50).runs if run.token == first.token]
    assert [run.worker for run in runs] == ["worker-1"]
    assert first.origin is Origin.SCHEDULE
    trial.audit(upto=trial.store.now())
