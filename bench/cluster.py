"""The cluster that is measured: three ZooKeeper servers, a durable PostgreSQL, and Sexton's own commands as processes.

PostgreSQL keeps the instant of each commit (``track_commit_timestamp``), so that "the first committed claim" is read
from the ledger afterwards and nothing polls while it is measured.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from sexton.store.schema import upgrade
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually
from tests.support.zookeeper import Ensemble, ZooKeeperServer

LONG = 900.0  # a limit that only a hang reaches
POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB", "track_commit_timestamp": "on"}
SERVERS = 3

_FIRST_COMMIT = "SELECT min(pg_xact_commit_timestamp(xmin)) FROM claims WHERE term = %s"
_TAKEOVER = "SELECT node, taken_at, gap_until, planning_ms FROM takeovers WHERE term = %s"


@dataclass(frozen=True, slots=True)
class Takeover:
    """A term's beginning, and the commit of its first claim."""

    node: str
    taken_at: datetime
    first_claim_at: datetime
    planning_ms: float


class BenchCluster:
    """Enter it for servers and an empty ledger; fill that, then start nodes and workers."""

    def __init__(self, *, coordinated: bool = True, tick_time: int = 1000) -> None:
        self._coordinated = coordinated
        self._tick_time = tick_time
        self._stack = contextlib.ExitStack()
        self._started = 0
        self.nodes: dict[str, RunningProcess] = {}
        self.workers: dict[str, RunningProcess] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._postgres = stack.enter_context(PostgresServer(durable=True, options=POSTGRES))
            self.url = self._postgres.create_database()
            self.coordinator = self._start_ensemble(stack) if self._coordinated else "database:"
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._processes = stack.enter_context(ProcessGroup(folder))
            upgrade(self.url)
            plain = self.url.replace("postgresql+psycopg://", "postgresql://", 1)
            self.connection = stack.enter_context(psycopg.connect(plain, autocommit=True))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.report(), file=sys.stderr)
        self._stack.close()

    def _start_ensemble(self, stack: contextlib.ExitStack) -> str:
        ensemble = Ensemble.of(SERVERS)
        servers = [
            stack.enter_context(_launched(ZooKeeperServer(tick_time=self._tick_time, number=number, ensemble=ensemble)))
            for number in ensemble.ports
        ]
        for server in servers:
            server.wait_until_ready()
        return f"zookeeper://{','.join(server.hosts for server in servers)}/sexton"

    # --- processes ------------------------------------------------------------------------------------

    def set(self, settings: Mapping[str, str]) -> None:
        """Settings of the cluster, as `sexton settings set` writes them."""
        with contextlib.closing(open_store(StoreOptions(self.url))) as store:
            for key, value in settings.items():
                store.edits.set_setting(key, value, "bench")

    def empty(self) -> None:
        """Forget all jobs and claims; no node may run meanwhile."""
        self.connection.execute("TRUNCATE jobs, revisions, cursors, slots, claims, runs, decisions, skips")

    def start_node(self) -> str:
        """One more node; its name."""
        self._started += 1
        name = f"node-{self._started}"
        self.nodes[name] = self._start("scheduler", "--name", name, "--log", "json", name=name)
        return name

    def start_worker(self, slots: int | None = None) -> str:
        """One more worker; its name."""
        self._started += 1
        name = f"worker-{self._started}"
        more = [] if slots is None else ["--slots", str(slots)]
        self.workers[name] = self._start("worker", "--name", name, *more, name=name)
        return name

    def run(self, *arguments: str) -> None:
        """A command to its end."""
        process = self._start(*arguments, name=arguments[0])
        code = process.wait(LONG)
        assert code == 0, process.report()

    def start_program(self, command: list[str], environment: Mapping[str, str], name: str) -> RunningProcess:
        """Any other program; it ends with the cluster."""
        return self._processes.start(command, env=environment, name=name)

    def create_database(self) -> str:
        """An empty database beside Sexton's on the same server."""
        return self._postgres.create_database()

    @property
    def folder(self) -> Path:
        """A scratch folder that goes with the cluster."""
        return self._processes.folder

    def _start(self, *arguments: str, name: str) -> RunningProcess:
        environment = {
            "SEXTON_DATABASE": self.url,
            "SEXTON_COORDINATOR": self.coordinator,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        return self._processes.sexton(*arguments, env=environment, name=name)

    def kill(self, node: str) -> datetime:
        """End a node with SIGKILL; the instant."""
        process = self.nodes.pop(node)
        at = datetime.now(UTC)
        process.signal(signal.SIGKILL)
        process.wait(30)
        return at

    def end(self, node: str) -> datetime:
        """Send a node SIGTERM; the instant. It goes on until it has handed over."""
        at = datetime.now(UTC)
        self.nodes.pop(node).signal(signal.SIGTERM)
        return at

    # --- asking ---------------------------------------------------------------------------------------

    def ask(self, statement: str, *values: Any) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self.connection.execute(statement.encode(), values).fetchone()
        return None if row is None else row[0]

    def term(self) -> int:
        return int(self.ask("SELECT term FROM cluster WHERE id = 1"))

    def leader(self) -> str:
        """The leading node's name, once there is one of ours that lives."""
        found = eventually(
            lambda: [name for name in [self.ask("SELECT leader FROM cluster WHERE id = 1")] if name in self.nodes],
            within=LONG,
            what="a leader",
        )
        return str(found[0])

    def wait_warm(self, jobs: int) -> None:
        """Return once every node has said that it holds so many jobs, and the leader's pass is over."""
        names = sorted(self.nodes)
        eventually(
            lambda: (
                self.ask("SELECT count(*) FROM nodes WHERE name = ANY(%s) AND jobs_warm = %s", names, jobs)
                == len(names)
            ),
            within=LONG,
            what=f"{', '.join(names)} hold {jobs} jobs",
        )
        self.await_takeover(self.term())

    def await_takeover(self, term: int) -> Takeover:
        """The takeover of a term, once its pass over what was missed is done."""
        node, taken_at, _, planning_ms = eventually(
            lambda: [row for row in self.connection.execute(_TAKEOVER, [term]) if row[2] is not None],
            within=LONG,
            what=f"term {term} has caught up",
        )[0]
        first = eventually(lambda: self.ask(_FIRST_COMMIT, term), within=LONG, what=f"a claim of term {term}")
        return Takeover(node, taken_at, first, planning_ms)

    def wait_ahead(self, seconds: float) -> None:
        """Return once claims are written so far ahead."""
        eventually(
            lambda: self.ask("SELECT max(scheduled_at) >= now() + make_interval(secs => %s) FROM claims", seconds),
            within=LONG,
            what=f"claims {seconds:g} s ahead",
        )

    def report(self) -> str:
        """The ends of all outputs."""
        return "\n".join(process.report() for process in self._processes.processes)


@contextlib.contextmanager
def _launched(server: ZooKeeperServer) -> Any:
    """A member that is launched and not waited for: none answers before most of them are there."""
    server.launch()
    try:
        yield server
    finally:
        server.destroy()


def sleep_until(instant: datetime) -> None:
    """Sleep until then by the machine's clock, which is the database's too."""
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))
