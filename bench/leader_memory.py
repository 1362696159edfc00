"""Memory of a scheduler process with 100,000 and 1,000,000 jobs on 500 schedules: at its peak, and while it leads.

    .venv/bin/python -m bench.leader_memory [--jobs 100000 1000000] [--schedules 500]

A real process reads the jobs, takes the term, decides, and leads for 10 s. Peak is VmHWM, steady is VmRSS. Goal:
350 MiB with 1,000,000 jobs, at the peak too.
"""

from __future__ import annotations

import argparse
import time

from bench import machine
from bench.cluster import BenchCluster
from bench.many_jobs import fill, fleet
from bench.measuring import cpu_seconds, peak_mib, resident_mib, show

GOAL_MIB = {1_000_000: 350.0}


def one(jobs: int, schedules: int) -> None:
    with BenchCluster(coordinated=False) as cluster:
        if jobs:
            fill(cluster.url, fleet(schedules), jobs)
        began = time.monotonic()
        pid = cluster.nodes[cluster.start_node()].pid
        if jobs:
            cluster.wait_warm(jobs)
        else:
            cluster.leader()
        ready = time.monotonic() - began
        time.sleep(10)
        peak, steady, goal = peak_mib(pid), resident_mib(pid), GOAL_MIB.get(jobs)
        show(
            f"{jobs:,} jobs",
            f"steady {steady:.0f} MiB, peak {peak:.0f} MiB",
            "" if goal is None else f"{goal:g} MiB",
            None if goal is None else peak <= goal,
        )
        show("  from its start to its first decisions", f"{ready:.1f} s, {cpu_seconds(pid):.1f} s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="*", default=[0, 100_000, 1_000_000])
    parser.add_argument("--schedules", type=int, default=500)
    options = parser.parse_args()
    print(machine.describe())
    for jobs in options.jobs:
        one(jobs, options.schedules)


if __name__ == "__main__":
    main()
