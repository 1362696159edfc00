"""One catch-up budget for the cluster: two workers, a change of leaders amid it, on virtual time over a real ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate

from sexton.claims import Overlap
from sexton.job_rules import CatchUpOrder, MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store.tables import from_micros, to_micros
from sexton.targets import CommandTarget
from tests.support.virtual_nodes import TWO, VirtualCluster
from tests.support.virtual_worker import VirtualWorker

RATE, AT_ONCE = 4, 3
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
STEP = SECOND / 4  # of virtual time


def job(name: str, cron: str, policy: MissedPolicy, order: CatchUpOrder = CatchUpOrder.OLDEST) -> JobDefinition:
    missed = MissedRules(policy=policy, grace=SECOND, order=order)
    return JobDefinition(name, ({"cron": cron},), CommandTarget(("true",)), missed=missed, overlap=Overlap.ALLOW)


def test_the_budget_is_one_over_two_workers_and_a_change_of_leaders() -> None:
    cluster = VirtualCluster(TWO - 30 * SECOND)
    cluster.set(horizon="0s", catch_up__rate=str(RATE), catch_up__concurrency=str(AT_ONCE))
    oldest, newest, live = cluster.apply(
        job("oldest", "* * * * *", MissedPolicy.ALL),
        job("newest", "* * * * *", MissedPolicy.ALL, CatchUpOrder.NEWEST),
        job("live", "* * * * * *", MissedPolicy.LATEST),
    )
    # At 4 a second the quick runs of the first job are bounded by the rate, the others by how many go on at once.
    workers = [VirtualWorker(cluster.open(), {oldest: STEP, newest: SECOND}, AT_ONCE) for _ in range(2)]
    cluster.workers += workers
    try:
        first = cluster.node("one")
        cluster.run(10)
        first.is_alive = False
        cluster.clock.seconds += 25 * 60
        second, gap_end = cluster.node("two"), cluster.clock.wall()
        cluster.run(14)
        for worker in workers:
            worker.beat()
        told_at, told = cluster.clock.wall(), cluster.store.reads.catch_up()
        second.is_alive = False
        cluster.node("three")
        cluster.run(25)
        rows = cluster.rows("SELECT granted_at, finished_at, job_id, scheduled_at FROM claims WHERE origin = 1")
        runs = [(from_micros(begin), from_micros(end), job_id, from_micros(tick)) for begin, end, job_id, tick in rows]
        assert_within_the_budget([(begin, end) for begin, end, *_ in runs])
        of_gap = sorted(run for run in runs if run[3] < gap_end)
        for job_id, order in ((oldest, 1), (newest, -1)):
            ticks = [tick for _, _, of_job, tick in of_gap if of_job == job_id]
            assert ticks == sorted(ticks)[::order]
            assert len(ticks) == 25
        assert told.count > 15
        assert told.done_in is not None
        assert abs(max(end for _, end, *_ in of_gap) - told_at - told.done_in) < 2 * SECOND
        # Live ticks first: while the second one leads and catches up, none of them waits.
        at = f"BETWEEN {to_micros(told_at - 5 * SECOND)} AND {to_micros(told_at)}"
        late = cluster.rows(f"SELECT granted_at - scheduled_at FROM claims WHERE job_id = {live} AND scheduled_at {at}")
        assert len(late) >= 5
        assert max(late) <= (STEP // MICROSECOND,)
    finally:
        for worker in workers:
            worker.store.close()
        cluster.close()


def assert_within_the_budget(runs: list[tuple[datetime, datetime]]) -> None:
    """Never more starts in a second than the rate, to a step of virtual time; never more at once."""
    begins = sorted(begin for begin, _ in runs)
    assert len(begins) >= 50
    assert all(later - earlier >= SECOND - STEP for earlier, later in zip(begins, begins[RATE:], strict=False))
    changes = sorted([(end, -1) for _, end in runs] + [(begin, 1) for begin, _ in runs])
    at_once = accumulate(change for _, change in changes)
    assert max(at_once) <= AT_ONCE
