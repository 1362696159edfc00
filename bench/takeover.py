"""From kill -9 of the leader to the first committed claim of its successor.

    .venv/bin/python -m bench.takeover [--sessions 2 4 10] [--tries 4] [--jobs 100000]

Real `sexton scheduler` processes on a three-server ZooKeeper ensemble: a leader and a follower that stands by, with
100,000 jobs on 500 schedules. The kill's phase within ZooKeeper's tick and within the loop's second is varied. What
ZooKeeper takes to expire the session is shown apart from what Sexton takes after it. Goal: 1.5 x session + 0.3 s.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

from bench import machine
from bench.cluster import BenchCluster
from bench.many_jobs import bells, fill, fleet
from bench.measuring import show, spread


def one_try(cluster: BenchCluster, jobs: int, phase: float) -> tuple[float, float]:
    """Seconds from the kill to the successor's term, and from its term to the commit of its first claim."""
    cluster.wait_warm(jobs)
    leader, term = cluster.leader(), cluster.term()
    time.sleep(phase)
    killed_at = cluster.kill(leader)
    found = cluster.await_takeover(term + 1)
    cluster.start_node()
    return (found.taken_at - killed_at).total_seconds(), (found.first_claim_at - found.taken_at).total_seconds()


def measure(cluster: BenchCluster, session: float, tries: int, jobs: int, draw: random.Random) -> None:
    cluster.set({"session": f"{session:g}s"})
    for name in list(cluster.nodes):  # nodes that begin with this session, and no follower older than its leader
        cluster.kill(name)
    cluster.start_node()
    cluster.start_node()
    found = [one_try(cluster, jobs, draw.uniform(1.0, 2.0 + session / 3)) for _ in range(tries)]
    totals = [elected + planned for elected, planned in found]
    goal = 1.5 * session + 0.3
    show(f"kill -9, session {session:g} s: first claim after", spread(totals, "s"), f"{goal:g} s", max(totals) <= goal)
    show("  of which until the term was taken", spread([elected for elected, _ in found], "s"))
    show("  of which from the term to the first commit", spread([planned for _, planned in found], "s", 3))
    show("  as a share of the session", f"{statistics.median(totals) / session:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=float, nargs="*", default=[2.0, 4.0, 10.0])
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--tick-time", type=int, default=1000, help="ZooKeeper's tickTime in ms")
    options = parser.parse_args()
    print(machine.describe())
    print(f"{options.jobs:,} jobs, ZooKeeper's tickTime {options.tick_time} ms")
    with BenchCluster(tick_time=options.tick_time) as cluster:
        few = bells()
        fill(cluster.url, few, len(few))
        fill(cluster.url, fleet(), options.jobs - len(few))
        draw = random.Random(time.time_ns())
        for session in options.sessions:
            measure(cluster, session, options.tries, options.jobs, draw)


if __name__ == "__main__":
    main()
