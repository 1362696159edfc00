"""A simulated process: its threads as actors, its death, and its freezing.

A death or a freeze is set for a moment, or for the n-th *point* from now: the moments just before and just after each
store call or question to the coordinator, or those around one kind of call. So every point between two of them is hit,
however little time it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sexton.store.protocol import Listener
from sexton_tui.simulation.history import History
from sexton_tui.simulation.virtual_clock import VirtualClock
from sexton_tui.simulation.world import SECOND, Actor, World

_COMES_ANYWAY = 300 * SECOND


@dataclass(slots=True)
class Fate:
    """What comes over a process when it has passed so many more points."""

    points: int
    call: str
    come: Callable[[], None]


class Process:
    """One incarnation of a machine's process, of a ``kind``: node, worker or operator."""

    def __init__(self, world: World, history: History, name: str, kind: str, report: Callable[[str], None]) -> None:
        self.world = world
        self.history = history
        self.name = name
        self.kind = kind
        self.is_alive = True
        self.frozen_until = 0
        self.actors: list[Actor] = []
        self.on_end: list[Callable[[], None]] = []
        self.on_freeze: list[Callable[[], None]] = []
        self.on_thaw: list[Callable[[], None]] = []
        self.clock = VirtualClock(
            world, world.random.uniform(1, 1_000_000), timedelta(seconds=world.random.uniform(-3, 3))
        )
        self._report = report
        self._fate: Fate | None = None

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Begin a thread of this process."""
        actor = Actor(self.world, self, f"{self.name}.{name}", body)
        self.actors.append(actor)
        self.world.start_actor(actor)

    def tell(self, what: str) -> None:
        self.history.note(self.world.now(), self.name, what)

    @property
    def is_frozen(self) -> bool:
        return self.frozen_until > self.world.micros

    @property
    def is_running(self) -> bool:
        return self.is_alive and not self.is_frozen

    # --- what may befall it ---------------------------------------------------------------------------

    def kill(self) -> None:
        """End all threads where they stand."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.tell("killed")
        self._end()

    def ended(self) -> None:
        """All threads have come to their end by themselves."""
        if self.is_alive:
            self.is_alive = False
            self.tell("ended")
            self._end()

    def freeze(self, micros: int) -> None:
        """Do not run for a while (`SIGSTOP`, a paused machine)."""
        if not self.is_alive:
            return
        self.frozen_until = max(self.frozen_until, self.world.micros + micros)
        self.tell(f"frozen for {micros / 1_000_000:.3f} s")
        for call in self.on_freeze:
            call()
        self.world.at(self.frozen_until, self._thaw)

    def at_point(self, points: int, fate: Callable[[], None], call: str = "") -> None:
        """Have ``fate`` come when that many points have been passed (around calls of that name; "": around any), and
        in some minutes even if they have not."""
        set_now = self._fate = Fate(points, call, fate)

        def come_anyway() -> None:
            if self._fate is set_now:
                self._fate = None
                fate()

        self.world.after(_COMES_ANYWAY, come_anyway)

    def point(self, call: str) -> None:
        """A moment just before or just after ``call``."""
        fate = self._fate
        if fate is None or fate.call not in ("", call):
            return
        fate.points -= 1
        if fate.points <= 0:
            self._fate = None
            self.world.after(0, fate.come)

    def crashed(self, actor: Actor, error: BaseException) -> None:
        self._report(f"{actor.name} died of {type(error).__name__}: {error}")

    def deliver(self, micros: int, event: Callable[[], None]) -> None:
        """Call ``event`` in that time, or when the process runs again; not at all once it is dead."""

        def arrive() -> None:
            if not self.is_alive:
                return
            if self.is_frozen:
                self.world.at(self.frozen_until + self.world.draw(0, 0.5), arrive)
            else:
                event()

        self.world.after(micros, arrive)

    # --- inside ---------------------------------------------------------------------------------------

    def _thaw(self) -> None:
        if self.is_alive and self.frozen_until <= self.world.micros:
            self.tell("thawed")
            for call in self.on_thaw:
                call()

    def _end(self) -> None:
        for actor in self.actors:
            if actor is not self.world.current:
                self.world.unwind(actor)
        for call in self.on_end:
            call()


class LossyWakeup:
    """A wake-up at the end of a notification, which may be late or lost."""

    def __init__(self, process: Process, inner: Callable[[], None], lost: Callable[[], float]) -> None:
        self._process = process
        self._inner = inner
        self._lost = lost

    def set(self) -> None:
        world = self._process.world
        if world.random.random() >= self._lost():
            self._process.deliver(world.random.randrange(100, 20_000), self._inner)

    def clear(self) -> None: ...

    def is_set(self) -> bool:
        return False


class Listening:
    """A process's listener; it ends with the process."""

    def __init__(self, process: Process, listener: Listener) -> None:
        self._listener: Listener | None = listener
        process.on_end.append(self.close)

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
