"""No-op runs a second from a backlog of 60,000: the worker, its own statements in a bare loop, and its peers.

    .venv/bin/python -m bench.drain [--claims 60000] [--rounds 5] [--workers 1 2] [--slots N] [--batch 200]
        [--peers pgqueuer procrastinate graphile] [--homes ~/.cache/sexton-bench]

One PostgreSQL server, fsync and synchronous_commit on. Each round has every side once, in turn, on a database of its
own that was filled, vacuumed and checkpointed before; one small round before all warms up. The clock runs from the
first handler's start until an outside connection, which looks every 10 ms, sees nothing unfinished: processes' start-up
is out of it, the last flush in it. What is compared is the ratio within a round: its median, least and most.

Sexton keeps the history of each run. *Slots*: the runs of a job never overlap (`overlap: queue`); *allow*: they may.
Procrastinate gets 5,000 jobs, graphile-worker as it comes 20,000: they would take minutes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from bench import machine
from bench.drain_sides import BATCH, LONG, SextonSide, Side, peer_sides, plain
from bench.measuring import cpu_seconds, tree_cpu_seconds
from bench.peer_homes import HOMES
from sexton.claims import Overlap
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup, RunningProcess

POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
LOOKS_EVERY = 0.01
WARM_UP = 5000
SLOTS, ALLOW = "Sexton, slots", "Sexton, allow"
BARE_SLOTS, BARE_ALLOW = "bare loop, slots", "bare loop, allow"
# Who is compared with whom, and the least ratio that is aimed for; None: there is no goal.
COMPARED = (
    (SLOTS, BARE_SLOTS, 0.75),
    (SLOTS, "PgQueuer", 1.0),
    (SLOTS, "Procrastinate", 20.0),
    (SLOTS, "graphile-worker tuned", None),
    (SLOTS, "graphile-worker default", None),
    (ALLOW, BARE_ALLOW, None),
    (ALLOW, "PgQueuer", 1.5),
    (ALLOW, "Procrastinate", 20.0),
    (ALLOW, "graphile-worker tuned", None),
    (ALLOW, "graphile-worker default", None),
)

_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@dataclass(frozen=True, slots=True)
class Drain:
    """Jobs a second, and the microseconds of processor time that one cost the side's processes and its backends."""

    rate: float
    client_micros: float
    server_micros: float


class Trials:
    """Drains on one server."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._count = 0

    def drain(self, side: Side, workers: int, claims: int) -> Drain:
        """Fill a new database and have so many processes drain it."""
        claims = min(claims, side.most or claims)
        self._count += 1
        starts = self._folder / f"starts-{self._count}"
        url = self._server.create_database()
        with ExitStack() as stack:
            stack.callback(self._server.drop_database, url)
            processes = stack.enter_context(ProcessGroup(self._folder))
            side.fill(processes, url, claims)
            connection = stack.enter_context(psycopg.connect(plain(url), autocommit=True))
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
            running = [side.start(processes, url, starts) for _ in range(workers)]
            stack.callback(lambda: [one.kill_tree() for one in running])
            return _measure(side, connection, starts, running, claims)


def _measure(
    side: Side, connection: psycopg.Connection[Any], starts: Path, running: Sequence[RunningProcess], claims: int
) -> Drain:
    looks = _looks(running)
    while side.first_start(connection, starts) is None:
        next(looks)
    client, server = _spent(connection, running)
    while _is_true(connection, side.unfinished):
        next(looks)
    ended = datetime.now(UTC).timestamp()
    began = side.first_start(connection, starts)
    assert began is not None  # it was a number a moment ago
    clients, servers = _spent(connection, running)
    each = 1e6 / claims
    return Drain(claims / (ended - began), (clients - client) * each, (servers - server) * each)


def _looks(running: Sequence[RunningProcess]) -> Iterator[None]:
    """Pauses between looks. AssertionError when all processes have ended long ago, or it lasts for ever."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        time.sleep(LOOKS_EVERY)
        yield
    raise AssertionError("\n".join(["it does not end", *(one.report() for one in running)]))


def _spent(connection: psycopg.Connection[Any], running: Sequence[RunningProcess]) -> tuple[float, float]:
    """Processor seconds so far of the processes and of their backends."""
    server = 0.0
    for (pid,) in connection.execute(_BACKENDS).fetchall():
        try:
            server += cpu_seconds(pid)
        except OSError:  # it ended meanwhile
            continue
    return sum(tree_cpu_seconds(one.pid) for one in running), server


def _is_true(connection: psycopg.Connection[Any], statement: str) -> bool:
    row = connection.execute(statement.encode()).fetchone()
    return row is not None and bool(row[0])


def report(found: dict[str, list[Drain]], workers: int) -> None:
    """A table of the ratios, and below it what each side made."""
    of = "one worker" if workers == 1 else f"{workers} workers"
    print(f"\n| {of} | against | ratio | goal |\n|---|---|---|---|")
    for ours, theirs, goal in COMPARED:
        if ours in found and theirs in found:
            ratios = [one.rate / other.rate for one, other in zip(found[ours], found[theirs], strict=True)]
            middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
            aim = "" if goal is None else f"{goal:g}, {'met' if middle >= goal else 'MISSED'}"
            print(f"| {ours} | {theirs} | {middle:.2f} ({low:.2f} .. {high:.2f}) | {aim} |")
    print(f"\n{of}: jobs a second; microseconds of processor time for each, of its processes and of its backends")
    for name, drains in found.items():
        rate, client, server = (
            statistics.median(values)
            for values in zip(*((one.rate, one.client_micros, one.server_micros) for one in drains), strict=True)
        )
        print(f"  {name:<24} {rate:>8,.0f}/s  {client:>6.1f} + {server:>5.1f} us")


@contextmanager
def trials() -> Iterator[Trials]:
    with PostgresServer(durable=True, options=POSTGRES) as server, tempfile.TemporaryDirectory() as folder:
        yield Trials(server, Path(folder))


def sides(slots: int | None, batch: int, homes: Path, peers: Sequence[str]) -> list[Side]:
    """All that can be measured here, in the order of their turns."""
    return [
        SextonSide(BARE_SLOTS, Overlap.QUEUE, is_bare=True, batch=batch),
        SextonSide(SLOTS, Overlap.QUEUE, slots),
        SextonSide(BARE_ALLOW, Overlap.ALLOW, is_bare=True, batch=batch),
        SextonSide(ALLOW, Overlap.ALLOW, slots),
        *peer_sides(homes, peers),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--slots", type=int, help="of each worker; as many as the worker takes by default")
    parser.add_argument("--batch", type=int, default=BATCH, help="of the bare loop")
    parser.add_argument("--peers", nargs="*", default=["pgqueuer", "procrastinate", "graphile"])
    parser.add_argument("--homes", type=Path, default=HOMES, help="where the peers are installed")
    options = parser.parse_args()
    print(machine.describe())
    ones = sides(options.slots, options.batch, options.homes, options.peers)
    with trials() as trial:
        for workers in options.workers:
            for side in ones:
                trial.drain(side, workers, min(WARM_UP, options.claims))
            found: dict[str, list[Drain]] = {side.name: [] for side in ones}
            for _ in range(options.rounds):
                for side in ones:
                    found[side.name].append(trial.drain(side, workers, options.claims))
            report(found, workers)
    print(f"{options.claims:,} jobs a drain, {options.rounds} rounds; {machine.load()}")


if __name__ == "__main__":
    main()
