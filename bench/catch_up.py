"""How late live ticks start while missed ones are caught up with, against how late they start with nothing beside.

    .venv/bin/python -m bench.catch_up [--missed 5000] [--live 50] [--steady 40] [--nap 0.1] [--rate 50] [--slots N]

A leader and two workers as processes, a durable PostgreSQL, 50 live ticks a second of jobs that never overlap. After a
steady stretch, jobs appear that have missed 100 ticks each (`policy: all`); their runs sleep for ``--nap`` seconds.
Then a second steady stretch. What is told: p99 of the live ticks' lateness in both steady stretches together and in the
drain (goal: twice), how long the drain took, and how far off the estimate of ``sexton status`` was meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bench import machine
from bench.cluster import BenchCluster, sleep_until
from bench.many_jobs import every, fill
from bench.measuring import percentile, show
from sexton.claims import Overlap
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import Channel, StoreOptions

GOAL = 2.0
EACH = 100  # missed ticks of a job
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
WARM = 15.0  # seconds before anything is measured
LOOK = 2.0
WINDOW = 250  # ticks
CATCH_UP = 1

_LATENESS = """
SELECT 1000 * extract(epoch FROM started_at - scheduled_at)::float8 FROM runs
WHERE job_id <= %s AND scheduled_at >= %s AND scheduled_at < %s AND started_at IS NOT NULL
ORDER BY scheduled_at
"""
_DONE = """
SELECT count(*), min(granted_at), max(finished_at) FROM claims WHERE job_id > %s AND origin = %s AND state = 3
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What the estimate said, and when."""

    at: datetime
    done_in: timedelta


def live_jobs(count: int) -> list[JobDefinition]:
    """So many jobs that tick once a second, spread over it."""
    return [every(SECOND, SECOND * number / count, Overlap.QUEUE, "bench.targets:noop") for number in range(count)]


def missed_jobs(count: int, nap: float) -> list[JobDefinition]:
    """So many minutely jobs that run all they have missed."""
    rules = MissedRules(policy=MissedPolicy.ALL, within=timedelta(days=2), max=EACH + 10)
    one = every(MINUTE, timedelta(0), Overlap.QUEUE, "bench.targets:nap", {"NAP": str(nap)})
    return [replace(one, missed=rules)] * count


def lateness(cluster: BenchCluster, live: int, begin: datetime, end: datetime) -> list[float]:
    """Milliseconds by which the live ticks of ``[begin, end)`` started late."""
    return [float(row[0]) for row in cluster.connection.execute(_LATENESS.encode(), (live, begin, end)).fetchall()]


def steady(seconds: float) -> tuple[datetime, datetime]:
    """A stretch in which nothing else happens."""
    begin = datetime.now(UTC)
    sleep_until(begin + seconds * SECOND)
    return begin, datetime.now(UTC)


def drain(cluster: BenchCluster, live: int, missed: int, nap: float) -> tuple[datetime, datetime, list[Look]]:
    """Have ticks been missed, and wait until all have run: from the first start to the last end."""
    jobs = missed // EACH
    fill(cluster.url, missed_jobs(jobs, nap), jobs, missed=EACH * MINUTE)
    cluster.connection.execute("SELECT pg_notify(%s, '')", (Channel.JOBS.value,))
    looks: list[Look] = []
    done: tuple[int, datetime | None, datetime | None] = (0, None, None)
    with contextlib.closing(open_store(StoreOptions(cluster.url))) as store:
        while done[0] < (EACH - 1) * jobs:
            time.sleep(LOOK)
            seen = store.reads.catch_up()
            if seen.done_in is not None and seen.count:
                looks.append(Look(seen.now, seen.done_in))
            row = cluster.connection.execute(_DONE.encode(), (live, CATCH_UP)).fetchone()
            done = row or done
    assert done[1] is not None
    assert done[2] is not None
    return done[1], done[2], looks


def show_late(what: str, found: list[float]) -> float:
    p99 = percentile(found, 0.99)
    show(what, f"p50 {percentile(found, 0.5):.1f} p99 {p99:.1f} max {max(found):.0f} ms, {len(found):,} ticks")
    return p99


def by_window(found: list[float]) -> list[float]:
    """p99 of each whole window in turn: what others do on the machine for a moment spoils few of them."""
    return [percentile(found[at : at + WINDOW], 0.99) for at in range(0, len(found) - WINDOW + 1, WINDOW)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", type=int, default=5000)
    parser.add_argument("--live", type=int, default=50, help="ticks a second")
    parser.add_argument("--steady", type=float, default=40.0, help="seconds of each steady stretch")
    parser.add_argument("--nap", type=float, default=0.1, help="seconds for which a caught-up run sleeps")
    parser.add_argument("--rate", type=float, default=50.0, help="catch_up.rate")
    parser.add_argument("--slots", type=int, help="of each worker; as many as the worker takes by default")
    options = parser.parse_args()
    print(machine.describe())
    beside = f"beside {options.live} live ones a second"
    print(f"{options.missed:,} missed ticks {beside}; a run of the former takes {options.nap:g} s")
    with BenchCluster(coordinated=False) as cluster:
        cluster.set({"catch_up.rate": str(options.rate), "catch_up.hold_above": str(10 * options.missed)})
        fill(cluster.url, live_jobs(options.live), options.live)
        cluster.start_node()
        for _ in range(2):
            cluster.start_worker(options.slots)
        cluster.wait_warm(options.live)
        time.sleep(WARM)
        before = steady(options.steady)
        begin, end, looks = drain(cluster, options.live, options.missed, options.nap)
        time.sleep(5)
        after = steady(options.steady)
        time.sleep(2)
        calm = [lateness(cluster, options.live, *stretch) for stretch in (before, after)]
        show_late("live ticks before", calm[0])
        show_late("live ticks after", calm[1])
        usual = show_late("live ticks with nothing beside", calm[0] + calm[1])
        drained = lateness(cluster, options.live, begin, end)
        busy = show_late("live ticks during the drain", drained)
    show("p99 in the drain against steady", f"{busy / usual:.2f}", f"at most {GOAL:g}", busy <= GOAL * usual)
    quiet, full = by_window(calm[0]) + by_window(calm[1]), by_window(drained)
    show("the same by the median of windows of 250 ticks", f"{statistics.median(full) / statistics.median(quiet):.2f}")
    took = (end - begin).total_seconds()
    show("the drain", f"{took:.1f} s, the budget alone {options.missed / options.rate:.1f} s")
    off = [(look.at + look.done_in - end).total_seconds() for look in looks if look.at < end]
    if off:
        show(
            "the estimate was off by", f"{min(off):+.1f} .. {max(off):+.1f} s, first {off[0]:+.1f} s; {len(off)} looks"
        )


if __name__ == "__main__":
    main()
