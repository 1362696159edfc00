"""200 jobs due at one instant: how late each is started, by Sexton and by its peers on the same PostgreSQL.

    .venv/bin/python -m bench.peers [--jobs 200] [--rounds 3] [--fires 2] [--homes ~/.cache/sexton-bench]

Every 5 s, by the finest schedule that each one has; the job writes down when it was called. Sexton: one scheduler, two
workers, three ZooKeeper servers. Procrastinate and PgQueuer: two processes that share the work. APScheduler: one, for
a second would fire every tick twice. Rounds are interleaved; the first fire of a round warms up. Peers are installed
with pinned versions into environments of their own; one that cannot be installed is named and left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import machine
from bench.cluster import BenchCluster
from bench.many_jobs import every, fill
from bench.measuring import percentile, show
from bench.peer_homes import HOMES, PEERS, Peer, interpreter
from sexton.claims import Overlap
from tests.support.processes import RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LONG = 300.0  # a limit that only a hang reaches
SEXTON = "Sexton"


class Rings:
    """The file into which the jobs write when they were called."""

    def __init__(self, path: Path, jobs: int, period: int) -> None:
        self.path = path
        self._jobs = jobs
        self._period = period

    def environment(self, url: str) -> dict[str, str]:
        return {
            "BENCH_DATABASE": url,
            "BENCH_JOBS": str(self._jobs),
            "BENCH_PERIOD": str(self._period),
            "BENCH_RINGS": str(self.path),
            "PYTHONPATH": str(ROOT),
        }

    def times(self) -> list[float]:
        return [float(line) for line in self.path.read_text().split()] if self.path.exists() else []

    def measure(self, fires: int, who: str) -> list[float]:
        """Milliseconds of lateness of the calls of ``fires`` fires, once all jobs have been called for a first one.

        A call belongs to the fire before it: one that comes a whole period late counts for the next, or for none.
        """
        eventually(lambda: len(self.times()) >= self._jobs, within=LONG, what=f"{who} has called every job once")
        first = (datetime.now(UTC).timestamp() // self._period + 1) * self._period
        until = first + fires * self._period
        time.sleep(max(0.0, until - datetime.now(UTC).timestamp()))
        called = [at for at in self.times() if first <= at < until]
        if len(called) != self._jobs * fires:
            print(f"  {who}: {len(called)} calls for {self._jobs * fires} ticks before the next were due")
        assert called, f"{who} fired nothing in {fires * self._period} s"
        return [1000 * (at % self._period) for at in called]


def sexton_round(cluster: BenchCluster, rings: Rings, jobs: int, fires: int, period: int) -> list[float]:
    cluster.empty()
    ring = "bench.peer_programs.ringing:ring"
    env = {"BENCH_RINGS": str(rings.path)}
    fill(cluster.url, [every(timedelta(seconds=period), timedelta(0), Overlap.ALLOW, ring, env)], jobs)
    cluster.start_node()
    workers = [cluster.start_worker() for _ in range(2)]
    try:
        return rings.measure(fires, SEXTON)
    finally:
        for name in list(cluster.nodes):
            cluster.kill(name)
        for name in workers:
            cluster.workers.pop(name).kill_tree()


def peer_round(cluster: BenchCluster, peer: Peer, python: Path, rings: Rings, fires: int) -> list[float]:
    url = cluster.create_database().replace("postgresql+psycopg://", "postgresql://", 1)
    command, environment = [str(python), "-m", f"bench.peer_programs.{peer.program}"], rings.environment(url)
    prepared = cluster.start_program([*command, "--prepare"], environment, peer.program)
    assert prepared.wait(LONG) == 0, prepared.report()
    sides: list[RunningProcess] = [
        cluster.start_program(command, environment, peer.program) for _ in range(peer.processes)
    ]
    try:
        return rings.measure(fires, peer.name)
    except Exception:
        print("\n".join(side.report() for side in sides))
        raise
    finally:
        for side in sides:
            side.kill_tree()


def report(found: dict[str, list[list[float]]], goal: float) -> None:
    for name, rounds in found.items():
        p50s = [percentile(one, 0.5) for one in rounds]
        p99s = [percentile(one, 0.99) for one in rounds]
        text = f"p50 {statistics.median(p50s):.0f} ms, p99 {statistics.median(p99s):.0f} ms"
        if name == SEXTON:
            show(f"{name}: lateness", text, f"p99 {goal:g} ms", statistics.median(p99s) <= goal)
            continue
        ratios = [
            percentile(theirs, 0.99) / percentile(ours, 0.99)
            for theirs, ours in zip(rounds, found[SEXTON], strict=True)
        ]
        text += f"; p99 {statistics.median(ratios):.1f} x Sexton's ({min(ratios):.1f} .. {max(ratios):.1f})"
        show(f"{name}: lateness", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fires", type=int, default=2)
    parser.add_argument("--period", type=int, default=5)
    parser.add_argument("--homes", type=Path, default=HOMES, help="where the peers are installed")
    options = parser.parse_args()
    print(machine.describe())
    print(f"{options.jobs} jobs due at one instant, {options.fires} fires a round, {options.rounds} rounds")
    pythons = {peer: python for peer in PEERS if (python := interpreter(peer, options.homes)) is not None}
    found: dict[str, list[list[float]]] = {SEXTON: [], **{peer.name: [] for peer in pythons}}
    with BenchCluster() as cluster:
        for number in range(options.rounds):

            def rings(number: int = number, side: str = "") -> Rings:
                return Rings(cluster.folder / f"rings-{number}-{side}", options.jobs, options.period)

            own = rings(side="sexton")
            found[SEXTON].append(sexton_round(cluster, own, options.jobs, options.fires, options.period))
            for peer, python in pythons.items():
                found[peer.name].append(peer_round(cluster, peer, python, rings(side=peer.program), options.fires))
    report(found, goal=30.0)


if __name__ == "__main__":
    main()
