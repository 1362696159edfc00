"""What goes wrong in a simulated cluster, drawn from the seed.

Every fault ends by itself; after ``until`` none begins, and `Faults.heal` ends what is left, so that a judged cluster
has had its quiet time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sexton_tui.simulation.election import Coordinator
from sexton_tui.simulation.history import History
from sexton_tui.simulation.machines import Machine
from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.switching_store import Network
from sexton_tui.simulation.world import SECOND, World

# The calls around which a death or a freeze matters most; "": any.
_WRITES: dict[str, tuple[str, ...]] = {
    "node": (
        "",
        "ticks.commit",
        "ticks.commit",
        "terms.take",
        "ticks.reserve_budget",
        "ticks.decide_late",
        "coordinator",
    ),
    "worker": ("", "grants.step", "grants.step", "grants.mark_started", "grants.renew", "grants.definitions"),
}


@dataclass(frozen=True, slots=True)
class FaultRates:
    """Mean minutes between two faults of a kind, in the whole cluster."""

    kill: float = 25
    freeze: float = 25
    stop: float = 90
    blackout: float = 240  # all nodes, or all workers, die at once
    database: float = 60
    database_cut: float = 60
    weather: float = 40  # for a while, answers get lost and calls are slow
    coordinator: float = 120
    coordinator_cut: float = 60
    expiry: float = 90
    clock: float = 240  # the database's clock jumps, and in a while an operator accepts it
    deposal: float = 60  # the leader is paused in the midst of a write, and another is elected meanwhile


class Faults:
    """Draws faults for these machines until ``until`` (microseconds)."""

    def __init__(
        self,
        world: World,
        history: History,
        network: Network,
        coordinator: Coordinator,
        nodes: Sequence[Machine],
        workers: Sequence[Machine],
        rates: FaultRates,
        until: int,
        leader: Callable[[], str | None],
        accept_clock: Callable[[], None],
    ) -> None:
        self._world = world
        self._history = history
        self._network = network
        self._coordinator = coordinator
        self._nodes = nodes
        self._workers = workers
        self._until = until
        self._leader = leader
        self._accept_clock = accept_clock
        self._every(rates.kill, self._kill)
        self._every(rates.freeze, self._freeze)
        self._every(rates.stop, self._stop)
        self._every(rates.blackout, self._blackout)
        self._every(rates.database, self._database_away)
        self._every(rates.database_cut, self._database_cut)
        self._every(rates.weather, self._weather)
        self._every(rates.coordinator, self._coordinator_away)
        self._every(rates.coordinator_cut, self._coordinator_cut)
        self._every(rates.expiry, self._expire)
        self._every(rates.clock, self._clock_jumps)
        self._every(rates.deposal, self._depose)

    def heal(self) -> None:
        """All is well from now on: everything runs, everything is reached."""
        self._network.heal()
        self._coordinator.come_back()
        for name in sorted(self._coordinator.cut_off):
            self._coordinator.mend(name)
        for machine in (*self._nodes, *self._workers):
            machine.boot()

    # --- kinds ----------------------------------------------------------------------------------------

    def _kill(self) -> None:
        machine = self._any_machine()
        process = machine.process
        self._count("kills")
        self._at_some_point(process, process.kill)
        self._boot_in(machine, self._span(1, 900))

    def _freeze(self) -> None:
        process = self._any_machine().process
        micros = self._span(0.5, 400)
        self._count("freezes")
        self._at_some_point(process, lambda: process.freeze(micros))

    def _stop(self) -> None:
        machine = self._any_machine()
        self._count("clean stops")
        machine.stop()
        self._boot_in(machine, self._span(40, 300))

    def _blackout(self) -> None:
        machines = self._world.random.choice((self._nodes, self._workers, [*self._nodes, *self._workers]))
        dark = self._span(30, 3600)
        self._count("blackouts")
        for machine in machines:
            self._at_some_point(machine.process, machine.process.kill)
            self._boot_in(machine, dark + self._world.draw(0, 20))

    def _database_away(self) -> None:
        self._count("database outages")
        self._network.away_until = max(self._network.away_until, self._world.micros + self._span(0.5, 240))
        self._tell("database away")

    def _database_cut(self) -> None:
        name = self._any_machine().name
        self._count("database cut off")
        self._network.cut_off[name] = self._world.micros + self._span(0.5, 240)
        self._tell(f"database away for {name}")

    def _weather(self) -> None:
        random = self._world.random
        self._count("bad weather")
        self._network.lost_answers = random.choice((0, 0.02, 0.2))
        self._network.slow_calls = random.choice((0, 0.02, 0.1))
        self._network.lost_notifications = random.choice((0, 0.1, 1))
        self._tell("bad weather")
        self._world.after(self._span(10, 600), self._clear_up)

    def _clear_up(self) -> None:
        self._network.lost_answers = self._network.slow_calls = self._network.lost_notifications = 0.0

    def _coordinator_away(self) -> None:
        self._count("coordinator outages")
        self._tell("coordinator away")
        self._coordinator.go_away()
        self._world.after(self._span(1, 300), self._coordinator.come_back)

    def _coordinator_cut(self) -> None:
        name = self._world.random.choice(self._nodes).name
        self._count("coordinator cut off")
        self._tell(f"coordinator away for {name}")
        self._coordinator.cut(name)
        self._world.after(self._span(1, 300), lambda: self._coordinator.mend(name))

    def _clock_jumps(self) -> None:
        # Ahead as far as a bad clock source may take it; back only a little: for as long nothing is decided.
        ahead = self._world.random.random() < 0.6
        micros = self._span(3, 3600) if ahead else -self._span(3, 300)
        self._count("clock jumps")
        self._tell(f"the database's clock jumps by {micros / SECOND:.1f} s")
        self._world.jumped += micros
        # Hosts' clocks differ here by up to 6 s, so that two nodes may never agree; and a node may notice late.
        for _ in range(3):
            self._world.after(self._span(5, 900), self._accept_clock)

    def _expire(self) -> None:
        name = self._world.random.choice(self._nodes).name
        self._count("sessions expired")
        self._tell(f"session of {name} expires")
        self._coordinator.expire(name)

    def _depose(self) -> None:
        for machine in self._nodes:
            if machine.name == self._leader():
                self._pause_and_replace(machine)

    def _pause_and_replace(self, machine: Machine) -> None:
        # The successor takes the term after some 50 ms and writes 30 ms later: the pause mostly ends about then.
        process = machine.process
        micros = self._world.draw(0.02, 0.2) if self._world.random.random() < 0.7 else self._span(0.2, 6)

        def pause_and_replace() -> None:
            self._count("deposals")
            process.freeze(micros)
            self._coordinator.expire(machine.name)

        process.at_point(1, pause_and_replace, "ticks.commit")

    # --- drawing --------------------------------------------------------------------------------------

    def _every(self, mean_minutes: float, fault: Callable[[], None]) -> None:
        delay = int(self._world.random.expovariate(1 / (mean_minutes * 60)) * SECOND)

        def strike() -> None:
            if self._world.micros < self._until:
                fault()
                self._every(mean_minutes, fault)

        self._world.after(max(1, delay), strike)

    def _any_machine(self) -> Machine:
        """One of all, the leader more often than others."""
        machines = [*self._nodes, *self._workers]
        leading = [machine for machine in self._nodes if machine.name == self._leader()]
        return self._world.random.choice([*machines, *leading, *leading])

    def _at_some_point(self, process: Process, fate: Callable[[], None]) -> None:
        """Now, or between two of the next calls, mostly around one that writes."""
        random = self._world.random
        if random.random() < 0.2:
            fate()
        else:
            call = random.choice(_WRITES[process.kind])
            process.at_point(random.randrange(1, 3) if call else random.randrange(1, 12), fate, call)

    def _boot_in(self, machine: Machine, micros: int) -> None:
        self._world.after(micros, machine.boot)

    def _span(self, shortest: float, longest: float) -> int:
        """Short spans are as likely as long ones, on a logarithmic scale."""
        factor = (longest / shortest) ** self._world.random.random()
        return int(shortest * factor * SECOND)

    def _count(self, kind: str) -> None:
        self._history.count(kind)

    def _tell(self, what: str) -> None:
        self._history.note(self._world.now(), "fault", what)
