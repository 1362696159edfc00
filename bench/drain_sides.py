"""Who drains a backlog of no-ops in `bench/drain.py`: Sexton's worker, its bare statements, and the peers.

Each side fills an empty database in its own way, and drains it with one or more processes of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg

from bench.peer_homes import GRAPHILE, PGQUEUER, PROCRASTINATE, interpreter, node_modules
from sexton.claims import Overlap
from sexton.jobs import JobDefinition
from sexton.store.schema import upgrade
from sexton.targets import PythonTarget, Target
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.source_tree import ROOT

LONG = 180.0  # a limit that only a hang reaches
JOBS = 10_000
BATCH = 200
NOOP = PythonTarget("bench.targets:noop")
START = datetime(2026, 1, 1, tzinfo=UTC)

_FILL = (
    "INSERT INTO slots (slot, number) SELECT n, 1 FROM generate_series(1, %(jobs)s) n",
    """INSERT INTO revisions (job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at,
        applied_by)
       SELECT n, 1, replace(%(definition)s, 'job-@', 'job-' || n), %(schedule)s, %(firing)s, '', now(), now(), 'bench'
       FROM generate_series(1, %(jobs)s) n""",
    # In the order in which a leader writes them: all jobs tick together, minute after minute.
    """INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at,
        at_most_once, term, written_at)
       SELECT n %% %(jobs)s + 1, at, 1, 0, 'default', 0, %(overlap)s, n %% %(jobs)s + 1, at, false, 1, at
       FROM (SELECT n, %(start)s + (n / %(jobs)s) * interval '1 minute' AS at
        FROM generate_series(0, %(claims)s - 1) n) ticks""",
)
_UNFINISHED_CLAIMS = """SELECT EXISTS (SELECT 1 FROM claims WHERE state = 1)
 OR EXISTS (SELECT 1 FROM claims WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3))
   AND queue = 'default' AND priority = 0)
 OR EXISTS (SELECT 1 FROM claims WHERE state = 2)"""


class Side(Protocol):
    """``unfinished``: a statement that is true until every run's completion is committed; ``most``: how many jobs it
    is given at the most."""

    @property
    def name(self) -> str: ...
    @property
    def unfinished(self) -> str: ...
    @property
    def most(self) -> int | None: ...

    def fill(self, processes: ProcessGroup, url: str, claims: int) -> None:
        """Make the tables of an empty database, and a backlog in them."""
        ...

    def start(self, processes: ProcessGroup, url: str, starts: Path) -> RunningProcess:
        """One process that drains. Those but Sexton's note their first call in ``starts``."""
        ...

    def first_start(self, connection: psycopg.Connection[Any], starts: Path) -> float | None:
        """When the first run was started, in seconds of the machine's clock; None: none was yet."""
        ...


@dataclass(frozen=True, slots=True)
class SextonSide:
    """`sexton worker` over a backlog of so many jobs, which run ``target``; ``is_bare``: its statements alone."""

    name: str
    overlap: Overlap
    slots: int | None = None
    is_bare: bool = False
    batch: int = BATCH
    target: Target = NOOP
    jobs: int = JOBS
    most: int | None = None
    unfinished: str = _UNFINISHED_CLAIMS

    def fill(self, processes: ProcessGroup, url: str, claims: int) -> None:
        upgrade(url)
        definition = JobDefinition("job-@", ({"every_ms": 60_000},), self.target)
        values = {
            "jobs": self.jobs,
            "claims": claims,
            "start": START,
            "overlap": int(self.overlap),
            "definition": definition.to_text(),
            "schedule": definition.schedule_text(definition.name),
            "firing": definition.firing_text(definition.name),
        }
        with psycopg.connect(plain(url)) as connection:
            for statement in _FILL:
                connection.execute(statement.encode(), values)

    def start(self, processes: ProcessGroup, url: str, starts: Path) -> RunningProcess:
        if self.is_bare:
            command = [sys.executable, "-m", "bench.bare_loop", str(self.batch)]
            return processes.start(command, env=_environment(url, starts), name="bare")
        more = [] if self.slots is None else ["--slots", str(self.slots)]
        name = f"worker-{len(processes.processes)}"
        environment = {
            "SEXTON_DATABASE": url,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        return processes.sexton("worker", "--name", name, *more, env=environment, name=name)

    def first_start(self, connection: psycopg.Connection[Any], starts: Path) -> float | None:
        if self.is_bare:
            return _first_line(starts)
        row = connection.execute("SELECT extract(epoch FROM min(started_at))::float8 FROM runs").fetchone()
        return None if row is None else row[0]


@dataclass(frozen=True, slots=True)
class PeerSide:
    """A peer by its command; with ``--prepare`` that fills the queue."""

    name: str
    command: tuple[str, ...]
    unfinished: str
    environment: tuple[tuple[str, str], ...] = ()
    most: int | None = None

    def fill(self, processes: ProcessGroup, url: str, claims: int) -> None:
        environment = {**_environment(url, Path(os.devnull)), "BENCH_JOBS": str(claims), **dict(self.environment)}
        prepared = processes.start([*self.command, "--prepare"], env=environment, name="prepare")
        assert prepared.wait(LONG) == 0, prepared.report()

    def start(self, processes: ProcessGroup, url: str, starts: Path) -> RunningProcess:
        environment = {**_environment(url, starts), **dict(self.environment)}
        return processes.start(self.command, env=environment, name="peer")

    def first_start(self, connection: psycopg.Connection[Any], starts: Path) -> float | None:
        return _first_line(starts)


def peer_sides(homes: Path, names: Sequence[str]) -> list[PeerSide]:
    """Those of the named peers that can be installed; of each that cannot, a line says why."""
    found: list[PeerSide] = []
    if "pgqueuer" in names and (python := interpreter(PGQUEUER, homes)):
        command = (str(python), "-m", "bench.peer_programs.pgqueuer_drain")
        found.append(PeerSide("PgQueuer", command, "SELECT EXISTS (SELECT 1 FROM pgqueuer)"))
    if "procrastinate" in names and (python := interpreter(PROCRASTINATE, homes)):
        command = (str(python), "-m", "bench.peer_programs.procrastinate_drain")
        unfinished = "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
        found.append(PeerSide("Procrastinate", command, unfinished, most=5000))
    if "graphile" in names and (modules := node_modules(GRAPHILE, homes)):
        script = str(ROOT / "bench" / "peer_programs" / "graphile_drain.cjs")
        unfinished = "SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs)"
        modules_of = (("NODE_PATH", str(modules)),)
        found.append(PeerSide("graphile-worker tuned", ("node", script, "--tuned"), unfinished, modules_of))
        found.append(PeerSide("graphile-worker default", ("node", script), unfinished, modules_of, most=20_000))
    return found


def plain(url: str) -> str:
    """The address as libpq and its kin know it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def _environment(url: str, starts: Path) -> dict[str, str]:
    given = filter(None, [os.environ.get("PYTHONPATH")])
    return {
        "BENCH_DATABASE": plain(url),
        "BENCH_STARTS": str(starts),
        "BENCH_JOBS": "0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *given]),
    }


def _first_line(starts: Path) -> float | None:
    lines = starts.read_text().split() if starts.exists() else []
    return min(map(float, lines)) if lines else None
