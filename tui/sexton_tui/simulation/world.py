"""Virtual time and whose turn it is: a heap of events, and greenlets that give up their turn by themselves.

An actor (one thread of a process) runs until it pauses or waits; then the earliest event is next. All that is drawn
(order, delays, faults) comes from the world's one `random.Random`, so the seed alone makes the history.

    running ──pause(d)──▶ due at now + d ──▶ running
       └────wait(w, d)──▶ due at now + d, or as soon as `w` is set

* Time passes only between turns, in whole microseconds.
* An actor of a frozen process is due when the process thaws; one of a dead process is never due again: its greenlet is
  unwound, and every call it makes on the way out ends it anew.
* The order of turns follows from the delays, and those are drawn; events of one instant come as they were made.
* An actor whose own turn is the next event just goes on: no greenlet is switched to, and nobody could tell.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from greenlet import GreenletExit, getcurrent, greenlet

SECOND = 1_000_000
_MOST_TURNS_AN_INSTANT = 200_000  # turns within one virtual second: more is a loop that does not wait


class Livelock(Exception):
    """An actor that takes turn after turn while time stands still."""


class Host(Protocol):
    """What the world asks of the process an actor belongs to."""

    name: str
    is_alive: bool
    frozen_until: int

    def point(self, call: str) -> None:
        """A moment, around ``call``, at which the process may be made to die or freeze."""
        ...

    def crashed(self, actor: Actor, error: BaseException) -> None:
        """The actor's body raised."""
        ...


class Actor:
    """One thread of a process, as a greenlet."""

    def __init__(self, world: World, host: Host, name: str, body: Callable[[], None]) -> None:
        self.name = name
        self.host = host
        self.turn = 0  # an event for another turn is out of date
        self.is_over = False
        self._world = world
        self._body = body
        self.greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            self._body()
        except GreenletExit:
            pass
        except Exception as error:
            self.host.crashed(self, error)
        self.is_over = True


@dataclass(slots=True)
class VirtualWakeup:
    """A wake-up on virtual time; whoever waits for it is due at once when it is set."""

    world: World
    flag: bool = False
    waiter: Actor | None = None

    def set(self) -> None:
        self.flag = True
        if self.waiter is not None:
            self.world.wake(self.waiter)
            self.waiter = None

    def clear(self) -> None:
        self.flag = False

    def is_set(self) -> bool:
        return self.flag


class World:
    """Time, turns and the seed. ``start`` is the instant (UTC) at which time 0 stands."""

    def __init__(self, seed: int, start: datetime) -> None:
        self.random = random.Random(seed)
        self.start = start
        self.micros = 0
        self.jumped = 0  # microseconds by which the database's clock is ahead of the hosts'
        self.turns = 0
        self.current: Actor | None = None
        self._main = getcurrent()
        self._events: list[tuple[int, int, Actor | Callable[[], None], int]] = []
        self._count = 0
        self._second = 0
        self._turns_before = 0
        self._until = 0

    # --- time -----------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """The database's clock, which a fault may have made jump."""
        return self.start + timedelta(microseconds=self.micros + self.jumped)

    def host_now(self) -> datetime:
        """What a host's clock would read if it were right."""
        return self.start + timedelta(microseconds=self.micros)

    def seconds(self) -> float:
        return self.micros / SECOND

    def draw(self, low: float, high: float) -> int:
        """Microseconds, evenly between two numbers of seconds."""
        return int((low + (high - low) * self.random.random()) * SECOND)

    # --- events ---------------------------------------------------------------------------------------

    def at(self, micros: int, event: Callable[[], None]) -> None:
        """Call ``event`` at that time; it must not pause."""
        self._push(micros, event, 0)

    def after(self, micros: int, event: Callable[[], None]) -> None:
        self._push(self.micros + micros, event, 0)

    def start_actor(self, actor: Actor) -> None:
        self._due(actor, self.micros + self.draw(0, 0.001))

    def wake(self, actor: Actor) -> None:
        """The actor's wait is over now."""
        self._due(actor, self.micros + self.draw(0, 0.002))

    def run(self, until: int) -> None:
        """Let everything happen that falls before ``until``."""
        self._until = until
        events = self._events
        while events and events[0][0] < until:
            time, _, subject, turn = heapq.heappop(events)
            if not isinstance(subject, Actor):
                if time > self.micros:
                    self.micros = time
                subject()
            elif turn == subject.turn and not subject.is_over and subject.host.is_alive:
                if subject.host.frozen_until > time:
                    self._due(subject, subject.host.frozen_until + self.draw(0, 0.01))
                    continue
                if time > self.micros:
                    self.micros = time
                self._switch(subject)
        self.micros = max(self.micros, until)

    def unwind(self, actor: Actor) -> None:
        """End the actor where it stands; never to be called by the actor itself."""
        if actor.greenlet:
            actor.greenlet.throw(GreenletExit)
        actor.is_over = True

    # --- what actors call -----------------------------------------------------------------------------

    def pause(self, micros: int) -> None:
        """Give up the turn for that long (at least a microsecond)."""
        self._pass(self._actor(), self.micros + max(1, micros))

    def wait(self, wakeup: VirtualWakeup, micros: int) -> bool:
        """Give up the turn until the wake-up is set, at most that long; whether it was set."""
        actor = self._actor()
        if wakeup.flag:
            self.pause(self.draw(0, 0.0002))
            return True
        wakeup.waiter = actor
        self._pass(actor, self.micros + max(1, micros))
        wakeup.waiter = None
        return wakeup.flag

    # --- inside ---------------------------------------------------------------------------------------

    def _actor(self) -> Actor:
        actor = self.current
        if actor is None or actor.greenlet is not getcurrent():
            raise RuntimeError("only an actor in its turn may pause")
        if not actor.host.is_alive:
            raise GreenletExit
        return actor

    def _pass(self, actor: Actor, time: int) -> None:
        """Give up the actor's turn until then."""
        events = self._events
        is_next = time < self._until and not (events and events[0][0] <= time) and actor.host.frozen_until <= time
        if is_next and self.turns - self._turns_before < _MOST_TURNS_AN_INSTANT:
            actor.turn += 1  # an event for its turn before is out of date, as ever
            self.turns += 1
            self.micros = time
            return
        self._due(actor, time)
        self._main.switch()
        if not actor.host.is_alive:
            raise GreenletExit

    def _due(self, actor: Actor, time: int) -> None:
        actor.turn += 1
        self._push(time, actor, actor.turn)

    def _push(self, time: int, subject: Actor | Callable[[], None], turn: int) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, subject, turn))

    def _switch(self, actor: Actor) -> None:
        self.turns += 1
        second = self.micros // SECOND
        if second != self._second:
            self._second, self._turns_before = second, self.turns
        elif self.turns - self._turns_before > _MOST_TURNS_AN_INSTANT:
            raise Livelock(f"{actor.name} does not wait at {self.now():%Y-%m-%dT%H:%M:%SZ}")
        self._main = getcurrent()
        self.current = actor
        actor.greenlet.parent = self._main
        actor.greenlet.switch()
        self.current = None
