"""The machines of a simulated cluster, and how a node and a worker are put together there.

What `sexton_scheduler.node` and `sexton_worker.worker` do with threads and connections is done here with actors and
switching stores; the loops, the duties and the leader lease between are the product's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sexton.errors import SextonError
from sexton.inputs import own_inputs
from sexton.settings import ClusterSettings
from sexton.store.protocol import Channel, Store
from sexton.store.sqlite.store import SqliteStore
from sexton_scheduler.core.reach import Reach
from sexton_scheduler.election import DATABASE
from sexton_scheduler.election.candidate import Candidate, NodeIdentity
from sexton_scheduler.election.database import DatabaseCandidate
from sexton_scheduler.heartbeat import HeartbeatLoop
from sexton_scheduler.housekeeping import DUTIES, Housekeeper, perform, terminate_stuck
from sexton_scheduler.loop import LoopOptions, NodeLoop
from sexton_scheduler.node_state import NodeState
from sexton_tui.simulation.election import Coordinator, SimulatedCandidate
from sexton_tui.simulation.history import History
from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.runs import VirtualExecution, drawn_duration
from sexton_tui.simulation.switching_store import Network, store_for
from sexton_tui.simulation.watch import Watch
from sexton_tui.simulation.world import World
from sexton_worker.heartbeat import HeartbeatLoop as WorkerHeartbeatLoop
from sexton_worker.lease_book import LeaseBook
from sexton_worker.loop import WorkerLoop, WorkerSettings

BEAT_ANSWERS_WITHIN = 5.0
# Seconds between calls of a duty, times this, so that a simulated hour takes less than a second.
DUTY_STRETCH = 60.0
# A simulated call is one transaction that runs whole: no backend ever waits for a client stopped in its midst.
SIMULATED_DUTIES = tuple(duty for duty in DUTIES if duty.run is not terminate_stuck)
LONGEST_BREAK = 180.0  # between two successful duties; stretched likewise
POLL = timedelta(seconds=60)
HEARTBEAT_PAUSE = 7.5
SLOTS = 8
LOOK = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every process of a simulated cluster stands in. ``coordinator_url``: what nodes enroll with."""

    world: World
    history: History
    store: SqliteStore
    network: Network
    coordinator: Coordinator
    coordinator_url: str
    watch: Watch
    longest_run: timedelta
    failing_runs: float

    def process(self, name: str, kind: str) -> Process:
        def report(what: str) -> None:
            self.watch.find("crash", what)

        return Process(self.world, self.history, name, kind, report)

    def connect(self, process: Process, answer_within: float = 10.0) -> Store:
        return store_for(self.store, process, self.network, self.watch, answer_within)


class Machine:
    """A place where one process runs after the other."""

    kind = ""

    def __init__(self, around: Surroundings, name: str) -> None:
        self.name = name
        self._around = around
        self.process = self._start()

    def boot(self) -> None:
        """Start a new process, if none is alive."""
        if not self.process.is_alive:
            self.process = self._start()

    def stop(self) -> None:
        """Ask the process to end cleanly (SIGTERM)."""
        raise AssertionError("each kind of machine has its own")

    def _start(self) -> Process:
        process = self._around.process(self.name, self.kind)
        process.tell("starts")
        self._populate(process)
        return process

    def _populate(self, process: Process) -> None:
        raise AssertionError("each kind of machine has its own")


class NodeMachine(Machine):
    """A machine with a scheduler node."""

    kind = "node"

    def stop(self) -> None:
        self.process.tell("is asked to stop")
        self.process.deliver(1000, self._state.stop)

    def _populate(self, process: Process) -> None:
        around, clock = self._around, process.clock
        identity = NodeIdentity(self.name, self.name, "simulated", 1)
        inputs = own_inputs()
        state = self._state = NodeState(clock.wakeup(), clock.wakeup())
        store = around.connect(process)
        keeper = Housekeeper(
            around.connect(process), clock, state, identity, inputs.inputs_id, reach=Reach(LONGEST_BREAK)
        )
        beat = HeartbeatLoop(around.connect(process, BEAT_ANSWERS_WITHIN), clock, state)

        def run() -> None:
            settings = _until_it_answers(process, lambda: _enroll(store, around.coordinator_url))
            state.settings = settings
            candidate, lease = self._candidates(process, store, state, settings)
            loop = NodeLoop(store, clock, state, candidate, lease, LoopOptions(self.name, inputs.inputs_id, POLL, LOOK))
            process.start("heartbeat", beat.run)
            process.start("duties", lambda: _keep(process, keeper))
            store.listen([Channel.JOBS], state.wakeup)
            loop.run()
            state.stop()
            around.world.after(0, process.ended)

        process.start("loop", run)

    def _candidates(
        self, process: Process, store: Store, state: NodeState, settings: ClusterSettings
    ) -> tuple[Candidate, DatabaseCandidate | None]:
        around, clock = self._around, process.clock
        if around.coordinator_url == DATABASE:
            return DatabaseCandidate(store, clock, settings.session), None
        candidate = SimulatedCandidate(around.coordinator, process, settings.session)
        candidate.wake = state.wakeup.set
        lease = DatabaseCandidate(store, clock, settings.failover_database_after, empty_seat_at_once=False)
        return candidate, lease


class WorkerMachine(Machine):
    """A machine with a worker."""

    kind = "worker"

    def stop(self) -> None:
        self.process.tell("is asked to stop")
        self.process.deliver(1000, self._loop.drain)

    def _populate(self, process: Process) -> None:
        around, clock = self._around, process.clock
        wakeup, book = clock.wakeup(), LeaseBook()
        duration = drawn_duration(process, around.longest_run)
        execution = VirtualExecution(process, SLOTS, duration, around.failing_runs, around.watch.saw_run)
        execution.wake = wakeup.set
        store = around.connect(process)
        own = WorkerSettings(
            self.name, ("default",), slots=SLOTS, poll=POLL, address=self.name, version="simulated", pid=1
        )
        loop = self._loop = WorkerLoop(store, clock, execution, book, wakeup, own, around.world.random.random)
        beating = around.connect(process, BEAT_ANSWERS_WITHIN)
        stops = clock.wakeup()
        beat = WorkerHeartbeatLoop(beating, clock, execution, book, stops, HEARTBEAT_PAUSE, loop.heed_drain)

        def run() -> None:
            store.listen([Channel.WORK], wakeup, {Channel.STOPS: stops})
            loop.run()
            beat.end()
            around.world.after(0, process.ended)

        process.start("loop", run)
        process.start("heartbeat", beat.run)


def _enroll(store: Store, coordinator_url: str) -> ClusterSettings:
    inputs = own_inputs()
    store.terms.enroll(coordinator_url, inputs.inputs_id, inputs.zone_data, inputs.engine)
    return store.edits.settings()


def _until_it_answers(process: Process, ask: Callable[[], ClusterSettings]) -> ClusterSettings:
    while True:
        try:
            return ask()
        except SextonError:
            process.world.pause(process.world.draw(0.5, 1.5))


def _keep(process: Process, keeper: Housekeeper) -> None:
    """Perform each duty when it is due, one at a time."""
    world, wakeup = process.world, process.clock.wakeup()
    due = {duty.name: world.seconds() + world.random.uniform(0, duty.every) for duty in SIMULATED_DUTIES}
    while not keeper.state.is_stopping:
        duty = min(SIMULATED_DUTIES, key=lambda one: due[one.name])
        process.clock.wait(wakeup, due[duty.name] - world.seconds())
        due[duty.name] = world.seconds() + duty.every * DUTY_STRETCH
        perform(duty, keeper)
