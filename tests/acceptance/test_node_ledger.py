"""What a leader writes on virtual time over a real ledger: edits, pauses, passes above the limit, outages, faults."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from sexton.claims import Origin
from sexton.decisions import PlannedJob
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import ChangeKind, JobChange
from sexton.store.tables import from_micros
from sexton_scheduler.core import planner
from sexton_scheduler.core.job_plan import JobPlan, plan_job
from sexton_scheduler.core.tick_cache import TickCache
from tests.support.virtual_nodes import TWO, VirtualCluster, cron_job

SECOND = timedelta(seconds=1)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def test_a_new_job_is_planned_when_it_is_notified(cluster: VirtualCluster) -> None:
    cluster.node("one")
    cluster.run(5)
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    cluster.run(0)
    assert len(cluster.claims(job)) >= 60


def test_a_revised_job_has_no_claims_of_its_old_schedule_ahead(cluster: VirtualCluster) -> None:
    cluster.node("one")
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    cluster.run(5)
    change = JobChange(ChangeKind.REVISE, job_id=job, definition=cron_job("often", "*/10 * * * * *"))
    (done,) = cluster.store.edits.edit([change], "tests")
    cluster.run(5)
    assert all(tick.second % 10 == 0 for tick in cluster.claims(job) if tick > done.effective_at)
    assert any(tick > done.effective_at for tick in cluster.claims(job))


def test_a_pause_is_one_growing_record_and_ends_without_a_gap(cluster: VirtualCluster) -> None:
    cluster.node("one")
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *"))
    cluster.run(5)
    cluster.store.edits.edit([JobChange(ChangeKind.PAUSE, job_id=job, why="moving house")], "ops")
    cluster.run(65)
    assert cluster.skips(job) == [("paused", 7)]  # at 10, 20 .. 70 s
    cluster.run(60)
    assert cluster.skips(job) == [("paused", 13)]
    cluster.store.edits.edit([JobChange(ChangeKind.RESUME, job_id=job)], "ops")
    cluster.run(30)
    ((_, upto, count),) = cluster.rows("SELECT after, upto, count FROM skips")
    assert count == 13
    assert cluster.claims(job)[0] == from_micros(upto) + 10 * SECOND
    assert cluster.rows("SELECT count(*) FROM decisions") == [(0,)]


def test_a_successor_lets_the_record_of_a_pause_grow_on(cluster: VirtualCluster) -> None:
    leader, _ = cluster.node("one"), cluster.node("two")
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *"))
    cluster.run(5)
    cluster.store.edits.edit([JobChange(ChangeKind.PAUSE, job_id=job)], "ops")
    cluster.run(30)
    leader.is_alive = False
    cluster.run(60)
    assert cluster.skips(job) == [("paused", 9)]


def test_a_pass_above_the_limit_holds_every_tick_it_would_fire(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s", catch_up__hold_above="10")
    jobs = cluster.apply(*(cron_job(f"job{n}", "* * * * * *", "all") for n in range(3)))
    leader, _ = cluster.node("one"), cluster.node("two")
    cluster.run(5)
    leader.is_alive = False
    cluster.run(15)
    held = cluster.rows("SELECT sum(count), count(*) FROM proposals WHERE state = 'open'")
    assert held[0][0] > 10
    assert held[0][1] == 3
    for job in jobs:
        assert [reason for reason, _ in cluster.skips(job)] == ["held"]
    assert cluster.rows(f"SELECT count(*) FROM claims WHERE origin = {int(Origin.CATCH_UP)}") == [(0,)]


def test_a_leader_without_its_database_goes_on_where_it_stopped(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 7: an answer that was lost is found out by reading."""
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *", "all"))
    leader = cluster.node("one")
    cluster.run(25)
    ticks = leader.store.ticks
    commit = ticks.commit
    lost: list[int] = []

    def committed_unheard(batch: object) -> object:
        commit(batch)  # type: ignore[arg-type]  # handed through
        lost.append(1)
        raise DatabaseUnreachable("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(ticks, "commit", committed_unheard)
        cluster.run(10)
    assert lost
    with monkeypatch.context() as patched:
        patched.setattr(leader.store.terms, "cluster", _away)
        patched.setattr(leader.store.terms, "beat", _away)
        patched.setattr(ticks, "commit", _away)
        cluster.run(45)
    cluster.run(20)
    assert leader.term == 1
    found = cluster.claims(job)
    assert found == [found[0] + n * 10 * SECOND for n in range(len(found))]
    assert found[-1] >= cluster.clock.database_now() - 10 * SECOND
    causes = cluster.rows("SELECT cause, fired FROM decisions WHERE cause <> 'claimed but not started'")
    assert [cause for cause, _ in causes] == ["late leader"]
    assert causes[0][1] >= 4
    assert cluster.rows("SELECT value FROM counters WHERE name = 'swallowed'") == []


def _away(*_: object) -> None:
    raise DatabaseUnreachable("the database does not answer")


def test_a_job_that_cannot_be_read_is_quarantined_and_stops_nobody_else(cluster: VirtualCluster) -> None:
    """Invariant 9."""
    bad, good = cluster.apply(cron_job("bad", "* * * * *"), cron_job("good", "* * * * *"))
    cluster.rows(f"UPDATE revisions SET schedule = '{{\"parts\": []}}' WHERE job_id = {bad}")
    cluster.node("one")
    cluster.run(61)
    assert cluster.claims(bad) == []
    assert len(cluster.claims(good)) == 2
    ((reason,),) = cluster.rows(f"SELECT quarantine_reason FROM jobs WHERE job_id = {bad}")
    assert "InvalidSchedule" in reason


@pytest.mark.parametrize("seconds_each", [0.5, 6.0])
def test_slow_schedules_silence_nobody(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch, seconds_each: float
) -> None:
    """Invariant 9: twenty jobs that together, or one that alone, take longer to plan than a plan may age."""
    cluster.set(horizon="0s")
    jobs = cluster.apply(*(cron_job(f"job{n}", "0 * * * *", "skip") for n in range(20)))

    calls = count()

    def slowly(job: PlannedJob, cache: TickCache, **how: Any) -> JobPlan:
        assert next(calls) < 200, "the same jobs are planned again and again"
        if seconds_each < 5 or job.job_id == jobs[0]:
            cluster.clock.seconds += seconds_each
        return plan_job(job, cache, **how)

    cluster.clock.seconds += 5 * 3600
    with monkeypatch.context() as patched:
        patched.setattr(planner, "plan_job", slowly)
        cluster.node("one")
        cluster.run(120)
    decided = [job for job in jobs if cluster.skips(job)]
    quarantined = cluster.rows("SELECT job_id, quarantine_reason FROM jobs WHERE quarantined_at IS NOT NULL")
    if seconds_each < 5:
        assert (decided, quarantined) == (jobs, [])
    else:
        ((job, reason),) = quarantined
        assert job == jobs[0]
        assert "planning its ticks took 6.0 s" in reason
        assert decided == jobs[1:]


def test_a_halted_cluster_decides_nothing_and_catches_up_afterwards(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("often", "* * * * * *", "all"))
    leader = cluster.node("one")
    cluster.run(5)
    cluster.rows("UPDATE cluster SET halted = 1")
    cluster.run(2)
    written = len(cluster.claims(job))
    cluster.run(10)
    assert len(cluster.claims(job)) == written
    cluster.rows("UPDATE cluster SET halted = 0")
    cluster.run(5)
    assert leader.term == 1
    ticks = cluster.claims(job)
    assert ticks == [ticks[0] + n * SECOND for n in range(len(ticks))]
