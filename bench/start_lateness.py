"""How late 10,000 runs start that are due at one instant, and spread over one second; steady, and with a kill.

    .venv/bin/python -m bench.start_lateness [--ticks 10000] [--fires 2] [--gap 6] [--slots N]

Two `sexton worker` processes, a leading and a standing-by `sexton scheduler` on a three-server ensemble, a Python
target that does nothing, with `overlap: allow` and `queue`. Lateness is `started_at - scheduled_at` of each run's row.
With the kill, the leader gets SIGKILL while the ticks are being started: its claims were written ahead (horizon 60 s).
Goals: p99 450 ms at one instant, 50 ms spread; with the kill the same. The leader's processor time goes beside it.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench import machine
from bench.cluster import BenchCluster, sleep_until
from bench.many_jobs import EPOCH, every, fill
from bench.measuring import cpu_seconds, percentile, show
from sexton.claims import Overlap
from tests.support.waiting import eventually

GOAL_MS = {"at one instant": 450.0, "over one second": 50.0}
KILL_AFTER = {"at one instant": timedelta(milliseconds=50), "over one second": timedelta(milliseconds=500)}
NOOP = "bench.targets:noop"
GRAIN = timedelta(milliseconds=10)

_LATENESS = """
SELECT 1000 * extract(epoch FROM r.started_at - r.scheduled_at)::float8 FROM runs r
WHERE r.job_id > %s AND r.job_id <= %s AND r.scheduled_at >= %s AND r.scheduled_at < %s AND r.outcome = 3
"""
_ENDED = "SELECT count(*) FROM runs WHERE job_id > %s AND job_id <= %s AND scheduled_at >= %s AND scheduled_at < %s"


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs ``first + 1 .. last`` that fall due together, ``offset`` past each whole period."""

    overlap: Overlap
    shape: str
    first: int
    last: int
    offset: timedelta


def make_groups(cluster: BenchCluster, ticks: int, period: timedelta, gap: timedelta) -> list[Group]:
    """Four groups of ``ticks`` jobs; one falls due every ``gap``."""
    groups: list[Group] = []
    for overlap in (Overlap.ALLOW, Overlap.QUEUE):
        for shape in GOAL_MS:
            offset = len(groups) * gap
            grains = 1 if shape == "at one instant" else timedelta(seconds=1) // GRAIN
            kinds = [every(period, offset + number * GRAIN, overlap, NOOP) for number in range(grains)]
            fill(cluster.url, kinds, ticks)
            groups.append(Group(overlap, shape, len(groups) * ticks, (len(groups) + 1) * ticks, offset))
    return groups


def next_period(period: timedelta, at: datetime) -> datetime:
    return EPOCH + ((at - EPOCH) // period + 1) * period


def await_runs(cluster: BenchCluster, values: tuple[object, ...], ticks: int) -> None:
    eventually(lambda: cluster.ask(_ENDED, *values) >= ticks, within=180, what="all runs have ended")


def lateness(cluster: BenchCluster, group: Group, fires: list[datetime], ticks: int) -> list[float]:
    """Milliseconds of each run of these fires; returns once all have ended."""
    found: list[float] = []
    for fire in fires:
        values = (group.first, group.last, fire, fire + timedelta(seconds=1))
        await_runs(cluster, values, ticks)
        rows = cluster.connection.execute(_LATENESS.encode(), values).fetchall()
        assert len(rows) == ticks, f"{len(rows)} runs of {ticks} ticks"  # fires equal ticks exactly
        found += [float(row[0]) for row in rows]
    return found


def show_group(group: Group, found: list[float], how: str) -> None:
    goal = GOAL_MS[group.shape]
    p50, p99 = percentile(found, 0.5), percentile(found, 0.99)
    name = f"{len(found):,} {group.shape}, {group.overlap.name.lower()}, {how}"
    show(name, f"p50 {p50:.0f} p99 {p99:.0f} max {max(found):.0f} ms", f"p99 {goal:g} ms", p99 <= goal)


def run_steady(cluster: BenchCluster, groups: list[Group], fires: int, period: timedelta, ticks: int) -> None:
    begin = next_period(period, datetime.now(UTC) + timedelta(seconds=2))
    sleep_until(begin - timedelta(seconds=1))
    leader = cluster.nodes[cluster.leader()].pid
    before = cpu_seconds(leader)
    sleep_until(begin + fires * period - timedelta(seconds=1))
    spent = cpu_seconds(leader) - before
    for group in groups:
        instants = [begin + number * period + group.offset for number in range(fires)]
        show_group(group, lateness(cluster, group, instants, ticks), "steady")
    per_thousand = 1000 * spent / (fires * len(groups) * ticks)
    show("leader's processor time per 1,000 ticks", f"{per_thousand:.4f} s", "0.02 s", per_thousand <= 0.02)


def run_killed(cluster: BenchCluster, groups: list[Group], fires: int, period: timedelta, ticks: int) -> None:
    """Each fire of each group has the leader killed in its middle."""
    instants: dict[Group, list[datetime]] = {group: [] for group in groups}
    for _ in range(fires):
        for group in groups:
            cluster.wait_warm(len(groups) * ticks)
            leader = cluster.leader()
            fire = next_period(period, datetime.now(UTC) + timedelta(seconds=1) - group.offset) + group.offset
            sleep_until(fire + KILL_AFTER[group.shape])
            cluster.kill(leader)
            instants[group].append(fire)
            time.sleep(2)  # a start takes processor time: not while these runs are started
            cluster.start_node()
    for group, ones in instants.items():
        show_group(group, lateness(cluster, group, ones, ticks), "leader killed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument("--fires", type=int, default=2)
    parser.add_argument("--killed-fires", type=int, default=1)
    parser.add_argument("--gap", type=float, default=6.0, help="seconds between the groups")
    parser.add_argument("--slots", type=int, help="of each worker; as many as the worker takes by default")
    options = parser.parse_args()
    print(machine.describe())
    gap = timedelta(seconds=options.gap)
    period = 4 * gap
    print(f"{options.ticks:,} ticks a fire, {options.fires} fires, two workers, Python no-op")
    with BenchCluster() as cluster:
        groups = make_groups(cluster, options.ticks, period, gap)
        cluster.set({"session": "2s"})
        cluster.start_node()
        cluster.start_node()
        cluster.start_worker(options.slots)
        cluster.start_worker(options.slots)
        cluster.wait_warm(len(groups) * options.ticks)
        cluster.wait_ahead(55)
        begin = next_period(period, datetime.now(UTC)) + period
        sleep_until(begin - timedelta(seconds=1))  # one period runs before anything is measured
        run_steady(cluster, groups, options.fires, period, options.ticks)
        run_killed(cluster, groups, options.killed_fires, period, options.ticks)


if __name__ == "__main__":
    main()
