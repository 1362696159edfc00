"""Nodes that race on virtual time over a real ledger: who decides what, missed ticks, switching, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sexton.races import RaceCounts
from sexton.store.ledger_snapshot import audit_ledger
from sexton_scheduler import tick_writer
from sexton_scheduler.election.candidate import Standing
from tests.acceptance.test_node_loop import ScriptedCandidate
from tests.support.virtual_nodes import TWO, VirtualCluster, VirtualNode, cron_job

SECOND = timedelta(seconds=1)
PATIENT = {"start_within": timedelta(hours=1)}  # no worker runs here


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO)
    made.set(strategy="race")
    yield made
    made.close()


def start(cluster: VirtualCluster, count: int = 3) -> list[VirtualNode]:
    return [cluster.node(f"racer {number}") for number in range(count)]


def roles(cluster: VirtualCluster) -> list[str]:
    return [node.state.role for node in cluster.nodes]


def away(cluster: VirtualCluster, seconds: float) -> None:
    """All nodes are frozen for so long."""
    cluster.clock.seconds += seconds


def assert_clean(cluster: VirtualCluster) -> None:
    report = audit_ledger(cluster.store, TWO, cluster.clock.wall())
    assert report.is_clean, report.differences
    assert report.due == report.decided > 0


def test_every_racer_tries_and_one_decides(cluster: VirtualCluster) -> None:
    """Invariants 2 and 6; the cost is counted."""
    cluster.set(horizon="0s")
    cluster.apply(cron_job("a", "*/10 * * * * *"))
    racers = start(cluster)
    cluster.run(60)
    assert roles(cluster) == ["racer"] * 3
    raced = RaceCounts()
    for node in racers:
        raced = raced.plus(node.state.raced)
    assert (raced.ticks, raced.attempts, raced.conflicts) == (6, 18, 12)
    assert raced.attempts_a_tick == 3.0
    assert cluster.rows("SELECT name, value FROM counters WHERE name LIKE 'race%' ORDER BY name") == [
        ("race_attempts", 18),
        ("race_conflicts", 12),
        ("race_ticks", 6),
    ]
    assert cluster.rows("SELECT leader FROM cluster") == [(None,)]
    assert_clean(cluster)


def test_a_racer_lost_delays_nobody(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("a", "* * * * * *"))
    first, *_ = start(cluster)
    cluster.run(10)
    first.is_alive = False
    cluster.run(10)
    (late,) = cluster.rows("SELECT max(written_at - scheduled_at) FROM claims")[0]
    assert late <= 1_000_000  # a turn of virtual time takes 250 ms
    assert len(cluster.claims(job)) >= 19
    assert cluster.rows("SELECT count(*) FROM decisions") == [(0,)]


def test_what_all_of_them_missed_is_one_pass(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    every, held = cluster.apply(
        cron_job("a", "*/10 * * * * *", "all", **PATIENT), cron_job("b", "* * * * *", "hold", **PATIENT)
    )
    start(cluster)
    cluster.run(30)
    away(cluster, 300)
    cluster.run(30)
    assert cluster.skips(held) == [("held", 4)]  # the fifth is within its grace
    assert cluster.skips(every) == []
    assert cluster.rows("SELECT number, is_open, fired FROM race_pass") == [(2, 0, 31)]  # the first began the term
    recorded = cluster.rows("SELECT job_id, cause, missed, fired, held FROM decisions ORDER BY job_id")
    assert recorded == [(every, "race", 30, 30, 0), (held, "race", 5, 1, 4)]
    assert_clean(cluster)


def test_a_pass_whose_racer_dies_is_gone_on_with_and_holds_what_it_held(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`catch_up.hold_above` counts all racers and the whole pass: the rest alone would not exceed it."""
    monkeypatch.setattr(tick_writer, "BATCH_ROWS", 1)
    cluster.set(horizon="0s", catch_up__hold_above="40")
    jobs = cluster.apply(*(cron_job(f"job {number}", "*/10 * * * * *", "all") for number in range(2)))
    first, *_ = start(cluster)
    cluster.run(5)
    away(cluster, 300)
    first.loop.step()  # counts sixty, and decides one job of the two
    assert sorted(len(cluster.skips(job)) for job in jobs) == [0, 1]
    first.is_alive = False
    cluster.run(30)
    assert [cluster.skips(job) for job in jobs] == [[("held", 30)], [("held", 30)]]
    assert cluster.rows("SELECT is_open, fired, holds FROM race_pass") == [(0, 0, 1)]
    assert_clean(cluster)


def test_a_racer_that_slept_takes_nothing_for_missed_that_others_decided(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s", catch_up__hold_above="10")
    (job,) = cluster.apply(cron_job("a", "*/10 * * * * *", "all", **PATIENT))
    sleeper, *_ = start(cluster)
    cluster.run(5)
    sleeper.is_alive = False
    cluster.run(300)
    sleeper.is_alive = True
    passes = cluster.rows("SELECT number FROM race_pass")
    cluster.run(30)
    assert cluster.rows("SELECT number FROM race_pass") == passes
    assert cluster.skips(job) == []
    assert_clean(cluster)


def test_claims_nobody_started_are_decided_by_racers_once(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("a", "*/10 * * * * *", "latest"))
    start(cluster)
    cluster.run(200)
    merged, newest = cluster.rows(
        "SELECT state, count(*) FROM claims WHERE state = 9 OR origin = 1 GROUP BY 1 ORDER BY 1 DESC"
    )
    assert (merged[0], newest) == (9, (0, 1))  # all others are merged into the newest
    assert cluster.rows("SELECT is_open FROM race_pass") == [(0,)]
    assert_clean(cluster)
    assert cluster.claims(job)


def test_switching_back_and_forth_loses_and_doubles_nothing(cluster: VirtualCluster) -> None:
    """Invariants 2 and 3. No coordinator is asked in a race; back, its candidates campaign again."""
    cluster.apply(cron_job("a", "* * * * * *"), cron_job("b", "*/10 * * * * *"))
    candidates = [ScriptedCandidate(), ScriptedCandidate()]
    for number, candidate in enumerate(candidates):
        cluster.node(f"n{number}", candidate)
    cluster.run(20)
    assert [candidate.campaigns for candidate in candidates] == [0, 0]
    cluster.set(strategy="leader")
    cluster.run(1)
    assert roles(cluster) == ["follower"] * 2
    assert [candidate.campaigns for candidate in candidates] == [1, 1]
    candidates[0].now = Standing.ELECTED
    cluster.run(20)
    assert roles(cluster) == ["leader", "follower"]
    cluster.set(strategy="race")
    cluster.run(20)
    assert roles(cluster) == ["racer"] * 2
    assert [candidate.now for candidate in candidates] == [Standing.OUT] * 2
    assert cluster.rows("SELECT count(*) FROM counters WHERE name = 'swallowed'") == [(0,)]
    assert cluster.rows("SELECT count(*) FROM decisions") == [(0,)]  # the horizon covered it all
    assert_clean(cluster)


def test_the_empty_seat_after_a_race_is_taken_at_once(cluster: VirtualCluster) -> None:
    """Who races gives nothing up when it leaves, and so has no turn to wait for."""
    start(cluster)
    cluster.run(5)
    cluster.set(strategy="leader")
    cluster.run(1)
    assert "leader" in roles(cluster)


def test_a_node_with_other_inputs_does_not_race(cluster: VirtualCluster) -> None:
    """Invariant 8."""
    cluster.apply(cron_job("a", "*/10 * * * * *"))
    start(cluster, 1)
    cluster.run(5)
    cluster.rows("UPDATE cluster SET inputs_id = '1999a/1/0'")
    cluster.run(5)
    assert roles(cluster) == ["follower"]


def test_a_halt_and_a_doubted_clock_stop_racers_too(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("a", "* * * * * *"))
    start(cluster, 1)
    cluster.run(5)
    cluster.store.edits.halt("alice", "a restore")
    cluster.run(2)
    halted = len(cluster.claims(job))
    cluster.run(5)
    assert len(cluster.claims(job)) == halted
    cluster.store.edits.lift_halt("alice")
    cluster.run(2)
    decided = len(cluster.claims(job))
    assert decided > halted
    cluster.clock.database_ahead = timedelta(hours=1)
    cluster.run(30)
    assert len(cluster.claims(job)) <= decided + 1  # a lone node waits for a minute


def test_a_stopped_racer_just_goes(cluster: VirtualCluster) -> None:
    racer, other = start(cluster, 2)
    cluster.run(5)
    racer.state.stop()
    cluster.run(1)
    assert racer.loop.is_done
    assert other.state.role == "racer"
    assert cluster.rows("SELECT strategy, term FROM cluster") == [("race", 1)]
