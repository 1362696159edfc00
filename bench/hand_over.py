"""Clean hand-over: from SIGTERM of the leader, or its leaving after `sexton leader resign`, to the successor's claim.

    .venv/bin/python -m bench.hand_over [--tries 5] [--jobs 100000]

Real `sexton scheduler` processes on a three-server ZooKeeper ensemble, 100,000 jobs on 500 schedules. The end is the
commit of the successor's first claim. Goal: 200 ms.
"""

from __future__ import annotations

import argparse
import random
import time
from datetime import datetime

from bench import machine
from bench.cluster import BenchCluster
from bench.many_jobs import bells, fill, fleet
from bench.measuring import show, spread
from tests.support.waiting import eventually

GOAL_MS = 200.0
_LEFT = "SELECT at FROM events WHERE action = 'leader.left' AND (detail::jsonb ->> 'term')::bigint = %s"


def one_try(cluster: BenchCluster, jobs: int, *, by_signal: bool, phase: float) -> tuple[float, float, float]:
    """Milliseconds until the leader had left (0 when it was asked to), until the next term, until its first claim."""
    cluster.wait_warm(jobs)
    leader, term = cluster.leader(), cluster.term()
    time.sleep(phase)
    began = cluster.end(leader) if by_signal else None
    if began is None:
        cluster.run("leader", "resign")
    found = cluster.await_takeover(term + 1)
    left: datetime = eventually(lambda: cluster.ask(_LEFT, term), within=60, what=f"the leader of term {term} left")
    if by_signal:
        cluster.start_node()
    began = began or left
    steps = (left - began, found.taken_at - left, found.first_claim_at - found.taken_at)
    return tuple(1000 * step.total_seconds() for step in steps)  # type: ignore[return-value]  # three of them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=100_000)
    options = parser.parse_args()
    print(machine.describe())
    print(f"{options.jobs:,} jobs")
    draw = random.Random(time.time_ns())
    with BenchCluster() as cluster:
        few = bells()
        fill(cluster.url, few, len(few))
        fill(cluster.url, fleet(), options.jobs - len(few))
        cluster.start_node()
        cluster.start_node()
        for name, by_signal in (("SIGTERM", True), ("leader resign", False)):
            phases = [draw.uniform(1.0, 3.0) for _ in range(options.tries)]
            found = [one_try(cluster, options.jobs, by_signal=by_signal, phase=phase) for phase in phases]
            totals = [sum(steps) for steps in found]
            show(f"{name}: first claim after", spread(totals, "ms", 0), f"{GOAL_MS:g} ms", max(totals) <= GOAL_MS)
            for number, step in enumerate(("until it had left", "until the next term", "from the term to the claim")):
                show(f"  of which {step}", spread([steps[number] for steps in found], "ms", 0))


if __name__ == "__main__":
    main()
