"""A whole simulated cluster: nodes, workers, an operator and one database, from a seed to a verdict."""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, StoreOptions
from sexton.store.sqlite.store import SqliteStore
from sexton_scheduler.election import DATABASE
from sexton_tui.simulation.captured_logs import captured_logs
from sexton_tui.simulation.election import Coordinator
from sexton_tui.simulation.faults import FaultRates, Faults
from sexton_tui.simulation.history import History
from sexton_tui.simulation.judge import Judged, judge, lasting, shortest_horizon
from sexton_tui.simulation.machines import NodeMachine, Surroundings, WorkerMachine
from sexton_tui.simulation.operator_actor import ACTOR, Operator
from sexton_tui.simulation.quiet_times import QuietTimes
from sexton_tui.simulation.switching_store import Network
from sexton_tui.simulation.watch import Finding, Watch
from sexton_tui.simulation.workload import workload
from sexton_tui.simulation.world import SECOND, World

SIMULATED_ZOOKEEPER = "zookeeper://simulated:2181/sexton"
QUIET_MINUTES = 45.0  # at the end of every simulation
TOLD_EVERY = 600 * SECOND  # of virtual time, between two words about how far it is
SEARCHED_AT_ONCE = 600.0  # seconds of virtual time between two looks of a search
# The night of Berlin's change to summer time lies within a day.
BEGIN = datetime(2027, 3, 27, 12, 0, tzinfo=UTC)

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What is simulated. ``hours`` of virtual time are disturbed; a quiet time follows them.

    ``zookeeper`` None: the seed decides. ``plant`` may change the store, to see a fault of its being found.
    """

    seed: int
    hours: float = 24.0
    nodes: int = 3
    workers: int = 2
    zookeeper: bool | None = None
    begin: datetime = BEGIN
    jobs: Sequence[JobDefinition] | None = None
    rates: FaultRates | None = field(default_factory=FaultRates)
    operator_every: float | None = 600.0  # seconds between two deeds, on average
    settings: tuple[tuple[str, str], ...] = ()
    longest_run: timedelta = timedelta(seconds=150)
    failing_runs: float = 0.03
    plant: Callable[[SqliteStore, World], None] = lambda store, world: None
    tell: Callable[[str], None] | None = None  # every line of the history


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation came to. ``digest`` stands for its whole history and ledger."""

    simulation: Simulation
    judged: Judged
    findings: tuple[Finding, ...]
    counts: Counter[str]
    digest: str
    lines: int
    calls: int
    turns: int
    refused_writes: int
    refused_results: int
    last_lines: tuple[str, ...]
    settings: dict[str, str]
    hours: float

    @property
    def is_clean(self) -> bool:
        return not self.findings

    @property
    def command(self) -> str:
        """What repeats it."""
        return f"make sim SEED={self.simulation.seed} ARGS='--hours {self.simulation.hours:g}'"


class SimulatedCluster:
    """The cluster while it runs; use it in a ``with``. Most callers want `simulate`."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.world = World(simulation.seed, simulation.begin)
        self.history = History(simulation.tell)
        self._cleanup = ExitStack()
        self.store = self._open()
        self.network = Network(self.world)
        self.coordinator = Coordinator(self.world)
        self.watch = Watch(self.world, self.history, self.store)
        self._cleanup.enter_context(
            captured_logs(
                lambda what: self.watch.find("logged error", what), lambda name: self.history.count(f"log {name}")
            )
        )
        zookeeper = simulation.zookeeper
        if zookeeper is None:
            zookeeper = self.world.random.random() < 0.6
        self.settings = dict(simulation.settings) or self._drawn_settings()
        self._write_settings()
        self._write_jobs()
        self.around = Surroundings(
            world=self.world,
            history=self.history,
            store=self.store,
            network=self.network,
            coordinator=self.coordinator,
            coordinator_url=SIMULATED_ZOOKEEPER if zookeeper else DATABASE,
            watch=self.watch,
            longest_run=simulation.longest_run,
            failing_runs=simulation.failing_runs,
        )
        self.nodes = [NodeMachine(self.around, f"node{number + 1}") for number in range(simulation.nodes)]
        self.workers = [WorkerMachine(self.around, f"worker{number + 1}") for number in range(simulation.workers)]
        self.quiet = QuietTimes(self.world, self.network, self.watch)

    def run(self, seconds: float) -> None:
        """Let that much virtual time pass."""
        self.world.run(self.world.micros + int(seconds * SECOND))

    def begin_faults(self, rates: FaultRates | None, until: int) -> Faults | None:
        """Let things go wrong at these rates until then."""
        if rates is None:
            return None
        return Faults(
            self.world,
            self.history,
            self.network,
            self.coordinator,
            self.nodes,
            self.workers,
            rates,
            until,
            self.watch.leader_name,
            lambda: _accept_clock(self.store),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for machine in (*self.nodes, *self.workers):
            machine.process.kill()
        self.store.close()
        self._cleanup.close()

    def _open(self) -> SqliteStore:
        url = f"sqlite://?simulation={next(_numbers)}"
        store = open_store(StoreOptions(url=url, application="simulation", clock=self.world.now))
        assert isinstance(store, SqliteStore)  # noqa: S101 - the url says so
        self.simulation.plant(store, self.world)
        return store

    def _drawn_settings(self) -> dict[str, str]:
        draw = self.world.random.choice
        return {
            "horizon": draw(("2m", "2m", "2m", "10m", "0s")),
            "session": draw(("30s", "60s", "60s")),
            "lease": "90s",
            "heartbeat": "30s",
            "failover.database_after": draw(("60s", "120s")),
            "catch_up.hold_above": draw(("1000", "1000", "40")),
        }

    def _write_settings(self) -> None:
        # A longer session is refused until the leader lease waits as long.
        for key, value in sorted(self.settings.items(), key=lambda one: one[0] != "failover.database_after"):
            self.store.edits.set_setting(key, value, ACTOR)

    def _write_jobs(self) -> None:
        jobs = workload(self.simulation.begin) if self.simulation.jobs is None else self.simulation.jobs
        self.store.edits.edit([JobChange(ChangeKind.CREATE, definition=job) for job in jobs], ACTOR)


def simulate(simulation: Simulation, told: Callable[[float, float], None] | None = None) -> Outcome:
    """Simulate a cluster under faults, then a quiet time, and judge it. ``told``: hours done, of how many."""
    with _rare_collections(), SimulatedCluster(simulation) as cluster:
        faults = _begin(cluster)
        until = int(simulation.hours * 3600 * SECOND)
        if told is not None:
            while cluster.world.micros < until - TOLD_EVERY:
                cluster.world.run(cluster.world.micros + TOLD_EVERY)
                told(cluster.world.micros / SECOND / 3600, simulation.hours)
        cluster.world.run(until)
        return _outcome(cluster, _verdict(cluster, faults))


def search(simulation: Simulation) -> tuple[Finding, ...]:
    """What `simulate` finds, but no more than the first ten virtual minutes in which something is found.

    For a fault that is planted: what shows at once, or in the ledger at any time, needs no quiet time after it.
    """
    with _rare_collections(), SimulatedCluster(simulation) as cluster:
        faults = _begin(cluster)
        until = int(simulation.hours * 3600 * SECOND)
        while cluster.world.micros < until:
            cluster.run(min(SEARCHED_AT_ONCE, (until - cluster.world.micros) / SECOND))
            if found := (*cluster.watch.findings, *lasting(cluster.watch, simulation.begin)):
                return found
        judged = _verdict(cluster, faults)
        return (*cluster.watch.findings, *judged.findings)


def _begin(cluster: SimulatedCluster) -> Faults | None:
    """Let people act and things go wrong, for as long as the simulation says."""
    simulation = cluster.simulation
    until = int(simulation.hours * 3600 * SECOND)
    if simulation.operator_every is not None:
        process = cluster.around.process("operator", "operator")
        store = cluster.around.connect(process)
        operator = Operator(process, store, until, simulation.operator_every, cluster.settings)
        process.start("acts", operator.run)
    return cluster.begin_faults(simulation.rates, until)


def _verdict(cluster: SimulatedCluster, faults: Faults | None) -> Judged:
    """The judge's word, after a quiet time."""
    if faults is not None:
        faults.heal()
    cluster.run(QUIET_MINUTES * 60)
    horizon = shortest_horizon(cluster.store)
    return judge(cluster.watch, cluster.simulation.begin, horizon, cluster.quiet.finish())


@contextmanager
def _rare_collections() -> Iterator[None]:
    """A simulation makes millions of short-lived values and few cycles: looking for those so often costs an eighth."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _accept_clock(store: SqliteStore) -> None:
    store.edits.accept_clock(ACTOR)


def _outcome(cluster: SimulatedCluster, judged: Judged) -> Outcome:
    watch, history = cluster.watch, cluster.history
    history.note(cluster.world.now(), "judge", judged.ledger_digest)
    return Outcome(
        simulation=cluster.simulation,
        judged=judged,
        findings=(*watch.findings, *judged.findings),
        counts=history.counts,
        digest=history.digest,
        lines=history.lines,
        calls=watch.calls,
        turns=cluster.world.turns,
        refused_writes=watch.refused_writes,
        refused_results=watch.refused_results,
        last_lines=tuple(history.last),
        settings={"coordinator": cluster.around.coordinator_url.partition(":")[0], **cluster.settings},
        hours=cluster.world.micros / SECOND / 3600,
    )
