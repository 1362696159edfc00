"""The store as one thread of a simulated process sees it: every call is a turn, and may go wrong.

A call gives up its turn before and after; between, it runs whole, as one transaction does. So two actors' calls
interleave in every order the delays allow, and a process can die or freeze between any two. While the database is away
a call raises ``DatabaseUnreachable``: before it took effect, or after (its answer is lost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, cast

from sexton.clock import Wakeup
from sexton.errors import DatabaseUnreachable, SextonError
from sexton.store.protocol import Channel, Listener, Store
from sexton_tui.simulation.processes import Listening, LossyWakeup, Process
from sexton_tui.simulation.world import World

PARTS = ("terms", "ticks", "edits", "grants", "holds", "operations", "outputs", "races", "reads", "restores")


class Watcher(Protocol):
    """Sees every call at the moment of its effect; nothing happens between ``before``, the call and ``after``."""

    def before(self, process: Process, call: str, arguments: Sequence[Any]) -> object:
        """What is to be remembered until ``after``."""
        ...

    def after(self, process: Process, call: str, arguments: Sequence[Any], result: Any, remembered: object) -> None: ...


@dataclass(slots=True)
class Network:
    """How the way to the database is. Times are of the world's clock, in microseconds."""

    world: World
    away_until: int = 0
    cut_off: dict[str, int] = field(default_factory=dict)  # process name: until
    lost_answers: float = 0.0  # probability
    slow_calls: float = 0.0  # probability of seconds instead of milliseconds
    lost_notifications: float = 0.0

    def is_away(self, process: Process) -> bool:
        now = self.world.micros
        return self.away_until > now or (bool(self.cut_off) and self.cut_off.get(process.name, 0) > now)

    def is_clear(self, process: Process) -> bool:
        """Nothing is wrong with the way to the database."""
        return not (self.is_away(process) or self.lost_answers or self.slow_calls or self.lost_notifications)

    def delay(self) -> int:
        """One way to the database or back."""
        if self.slow_calls and self.world.random.random() < self.slow_calls:
            return self.world.draw(0.5, 7)
        return self.world.draw(0.00005, 0.003)

    def heal(self) -> None:
        """Everything works from now on."""
        self.away_until = 0
        self.cut_off.clear()
        self.lost_answers = self.slow_calls = self.lost_notifications = 0.0


class SwitchingStore:
    """A `Store` for one process; cast to it by `store_for`, as its parts are made by reflection."""

    def __init__(
        self, store: Store, process: Process, network: Network, watcher: Watcher, answer_within: float
    ) -> None:
        self._store = store
        self._process = process
        self._network = network
        self._watcher = watcher
        self._answer_within = answer_within
        for part in PARTS:
            setattr(self, part, _Part(self, part, getattr(store, part)))

    def now(self) -> datetime:
        return cast("datetime", self.call("now", self._store.now, (), {}))

    def listen(
        self, channels: Sequence[Channel], wakeup: Wakeup, also: Mapping[Channel, Wakeup] | None = None
    ) -> Listener:
        others = {channel: self._lossy(one) for channel, one in (also or {}).items()}
        return Listening(self._process, self._store.listen(channels, self._lossy(wakeup), others))

    def _lossy(self, wakeup: Wakeup) -> LossyWakeup:
        return LossyWakeup(self._process, wakeup.set, self._loss)

    def close(self) -> None:
        """Nothing: all processes share the store."""

    def call(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        world, process = self._network.world, self._process
        process.point(name)
        world.pause(self._network.delay())
        if self._network.is_away(process):
            self._fail(name)
        remembered = self._watcher.before(process, name, arguments)
        try:
            result = function(*arguments, **named)
        except SextonError as error:
            process.tell(f"{name} {type(error).__name__}")
            world.pause(self._network.delay())
            raise
        if isinstance(result, Iterator):
            result = tuple(result)
        self._watcher.after(process, name, arguments, result, remembered)
        process.point(name)
        world.pause(self._network.delay())
        lost = self._network.lost_answers
        if self._network.is_away(process) or (lost and world.random.random() < lost):
            self._fail(f"{name} (answer lost)")
        return result

    def _fail(self, name: str) -> None:
        world = self._network.world
        self._process.tell(f"{name} unreachable")
        is_refused = world.random.random() < 0.5
        world.pause(world.draw(0, 0.01) if is_refused else int(self._answer_within * 1_000_000))
        raise DatabaseUnreachable("the simulated database does not answer")

    def _loss(self) -> float:
        return 1.0 if self._network.is_away(self._process) else self._network.lost_notifications


class _Part:
    """One of the store's protocols, each of its calls a turn."""

    def __init__(self, switching: SwitchingStore, name: str, part: Any) -> None:
        self._switching = switching
        self._name = name
        self._part = part

    def __getattr__(self, method: str) -> Any:
        function = getattr(self._part, method)
        name = f"{self._name}.{method}"
        switching = self._switching

        def call(*arguments: Any, **named: Any) -> Any:
            return switching.call(name, function, arguments, named)

        setattr(self, method, call)
        return call


def store_for(store: Store, process: Process, network: Network, watcher: Watcher, answer_within: float = 10.0) -> Store:
    """``store`` as a thread of ``process`` reaches it over ``network``."""
    return cast("Store", SwitchingStore(store, process, network, watcher, answer_within))
