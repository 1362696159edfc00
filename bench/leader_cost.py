"""Processor time of a leader per 1,000 ticks that it writes.

    .venv/bin/python -m bench.leader_cost [--fires 2] [--period 5]

A real `sexton scheduler` leads on a three-server ensemble; no workers. 200 and 10,000 ticks at one instant and
10,000 over one second, every 5 s; then 100 jobs at 100 ticks a second. The process's user and system time, all its
threads, whole periods; beside it what remains without an idle leader's (heartbeat, housekeeping, session). Goal 0.02 s
for 10,000.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta

from bench import machine
from bench.cluster import BenchCluster, sleep_until
from bench.many_jobs import EPOCH, every, fill
from bench.measuring import cpu_seconds, show
from sexton.jobs import JobDefinition

GOAL = 0.02
SECOND = timedelta(seconds=1)


def cases(period: timedelta) -> dict[str, tuple[list[JobDefinition], int]]:
    """Kinds of jobs, and how many jobs, by what they are."""
    at_once = [every(period, timedelta(0))]
    over_second = [every(period, timedelta(milliseconds=10 * number)) for number in range(100)]
    steadily = [every(SECOND, timedelta(milliseconds=10 * number)) for number in range(100)]
    return {
        "200 at one instant": (at_once, 200),
        "10,000 at one instant": (at_once, 10_000),
        "10,000 over one second": (over_second, 10_000),
        "100 a second, each second": (steadily, 100),
    }


def spent(cluster: BenchCluster, period: timedelta, fires: int) -> tuple[float, int]:
    """The leader's processor time, and the claims it wrote, over whole periods."""
    pid = cluster.nodes[cluster.leader()].pid
    began = EPOCH + ((datetime.now(UTC) - EPOCH) // period + 1) * period - SECOND / 2
    sleep_until(began)
    cpu, claims = cpu_seconds(pid), cluster.ask("SELECT count(*) FROM claims")
    sleep_until(began + fires * period)
    return cpu_seconds(pid) - cpu, cluster.ask("SELECT count(*) FROM claims") - claims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fires", type=int, default=2)
    parser.add_argument("--period", type=float, default=5.0)
    options = parser.parse_args()
    print(machine.describe())
    period = timedelta(seconds=options.period)
    with BenchCluster() as cluster:
        cluster.start_node()
        cluster.leader()
        time.sleep(3)
        idle, _ = spent(cluster, period, options.fires)
        seconds = options.fires * options.period
        show("an idle leader", f"{100 * idle / seconds:.2f} % of a core")
        for name, (kinds, jobs) in cases(period).items():
            cluster.kill(cluster.leader())
            cluster.empty()
            fill(cluster.url, kinds, jobs)
            cluster.start_node()
            cluster.wait_ahead(58)
            cpu, claims = spent(cluster, period, options.fires)
            whole, net = 1000 * cpu / claims, 1000 * (cpu - idle) / claims
            is_met = whole <= GOAL if jobs == 10_000 else None
            show(
                name,
                f"{whole:.4f} s per 1,000 ticks ({net:.4f} s without the idle share)",
                "" if is_met is None else f"{GOAL:g} s",
                is_met,
            )


if __name__ == "__main__":
    main()
