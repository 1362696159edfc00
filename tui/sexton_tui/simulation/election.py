"""A coordinator on virtual time: sessions, a line of candidates, and what a client knows of both.

It stands for ZooKeeper with kazoo in front. What is true (`Coordinator`) and what a client believes
(`SimulatedCandidate.standing`) differ for as long as news travels, and for as long as a process is frozen: a paused
winner goes on believing.

* A session ends when its client was not heard of for 0.8 to 1.45 times its length; while the whole coordinator is away
  no session ends, and afterwards each has its full time again.
* The first in line is elected, and told within milliseconds.
* A client that is cut off sees SUSPENDED (or AWAY), and learns of the end of its session when it is connected again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sexton.terms import ElectedBy
from sexton_scheduler.election.candidate import Standing
from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.world import World


@dataclass(slots=True, eq=False)
class Session:
    """One client's session. ``silent_from``: since when the coordinator has not heard of it; None while it does."""

    number: int
    client: SimulatedCandidate
    length: int
    is_over: bool = False
    silent_from: int | None = None


class Coordinator:
    """What is true: which sessions live, and who stands in line."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_away = False
        self.cut_off: set[str] = set()
        self._line: list[Session] = []
        self._clients: list[SimulatedCandidate] = []
        self._sessions = 0

    # --- faults ---------------------------------------------------------------------------------------

    def go_away(self) -> None:
        """The whole ensemble stops to answer."""
        self.is_away = True
        self._look_at_all()

    def come_back(self) -> None:
        self.is_away = False
        self._look_at_all()

    def cut(self, name: str) -> None:
        """The node of this name does not reach the coordinator."""
        self.cut_off.add(name)
        self._look_at_all()

    def mend(self, name: str) -> None:
        self.cut_off.discard(name)
        self._look_at_all()

    def expire(self, name: str) -> None:
        """End the session of this node, whatever the reason; its client learns of it in a moment."""
        for client in tuple(self._clients):
            session = client.session
            if client.process.name == name and session is not None and not session.is_over:
                self._end(session)
                client.process.deliver(self.world.draw(0.005, 0.5), client.look)

    # --- what clients do ------------------------------------------------------------------------------

    def is_reached_by(self, process: Process) -> bool:
        return not self.is_away and process.name not in self.cut_off

    def join(self, client: SimulatedCandidate) -> None:
        self._clients.append(client)

    def leave(self, client: SimulatedCandidate) -> None:
        """The process is gone: its session is silent from now on."""
        self.look_at(client)

    def new_session(self, client: SimulatedCandidate, length: int) -> Session:
        self._sessions += 1
        return Session(self._sessions, client, length)

    def stand(self, session: Session) -> None:
        """Join the line, at its end."""
        if session not in self._line:
            self._line.append(session)
            self._tell_first()

    def step_back(self, session: Session) -> None:
        if session in self._line:
            self._line.remove(session)
            self._tell_first()

    def is_first(self, session: Session) -> bool:
        return bool(self._line) and self._line[0] is session

    def look_at(self, client: SimulatedCandidate) -> None:
        """Whether the client is heard of may have changed."""
        session = client.session
        if session is None or session.is_over:
            return
        is_heard = client.process.is_running and self.is_reached_by(client.process)
        if is_heard or self.is_away:
            session.silent_from = None
        elif session.silent_from is None:
            since = session.silent_from = self.world.micros
            patience = int(session.length * self.world.random.uniform(0.8, 1.45))
            self.world.after(patience, lambda: self._lapse(session, since))

    # --- inside ---------------------------------------------------------------------------------------

    def _look_at_all(self) -> None:
        for client in tuple(self._clients):
            self.look_at(client)
            client.process.deliver(self.world.draw(0.002, 0.4), client.look)
        self._clients = [client for client in self._clients if client.process.is_alive or client.has_session]

    def _lapse(self, session: Session, silent_from: int) -> None:
        if session.silent_from == silent_from and not session.is_over:
            self._end(session)

    def _end(self, session: Session) -> None:
        session.is_over = True
        self.step_back(session)

    def _tell_first(self) -> None:
        if self._line:
            client = self._line[0].client
            client.process.deliver(self.world.draw(0.004, 0.017), client.look)


class SimulatedCandidate:
    """What a client believes: implements `Candidate`. ``wake`` is called whenever the standing changes."""

    elected_by = ElectedBy.ZOOKEEPER

    def __init__(self, coordinator: Coordinator, process: Process, session: timedelta) -> None:
        self.process = process
        self.session: Session | None = None
        self._coordinator = coordinator
        self._length = session
        self._standing = Standing.OUT
        self._is_wanted = False
        self.wake: Callable[[], None] = lambda: None
        coordinator.join(self)
        process.on_end.append(lambda: coordinator.leave(self))
        process.on_freeze.append(lambda: coordinator.look_at(self))
        process.on_thaw.append(self._thawed)

    @property
    def has_session(self) -> bool:
        return self.session is not None and not self.session.is_over

    # --- the protocol ---------------------------------------------------------------------------------

    def campaign(self) -> None:
        if self._standing in (Standing.OUT, Standing.LOST):
            self._is_wanted = True
            self._standing = Standing.WAITING if self._is_reached() else Standing.AWAY
            self._stand_soon()

    def standing(self) -> Standing:
        return self._standing

    def confirm(self) -> bool:
        self._round_trip()
        if not self._is_reached() or self._standing is not Standing.ELECTED or self.session is None:
            return False
        holds = not self.session.is_over and self._coordinator.is_first(self.session)
        self._round_trip()
        if not holds:
            self._become(Standing.LOST)
        return holds

    def resign(self) -> None:
        self._is_wanted = False
        session, reached = self.session, self._is_reached()
        self._standing = Standing.OUT
        self._round_trip()
        if session is not None and reached:
            self._coordinator.step_back(session)
        self._round_trip()

    def seated(self) -> None: ...

    def rest(self) -> None:
        self.resign()

    def adopt(self, session: timedelta) -> None:
        self._length = session

    def describe(self) -> str:
        return f"simulated session {0 if self.session is None else self.session.number}"

    def close(self) -> None:
        self.resign()

    # --- news from the coordinator --------------------------------------------------------------------

    def look(self) -> None:
        """See how things stand, as a client's own thread does."""
        if not self._is_reached():
            if self._standing is Standing.ELECTED:
                self._become(Standing.SUSPENDED)
            elif self._standing is Standing.WAITING:
                self._become(Standing.AWAY)
            return
        session = self.session
        if session is not None and session.is_over:
            self.session = None
            if self._standing in (Standing.ELECTED, Standing.SUSPENDED):
                self._become(Standing.LOST)
                return
        if self._standing is Standing.AWAY:
            self._become(Standing.WAITING)
        if self._standing is Standing.WAITING:
            if self.session is None:
                self._stand_soon()
            elif self._coordinator.is_first(self.session):
                self._become(Standing.ELECTED)
        elif self._standing is Standing.SUSPENDED:
            self._become(Standing.ELECTED)

    def _stand_soon(self) -> None:
        self.process.deliver(self._coordinator.world.draw(0.005, 0.2), self._stand)

    def _stand(self) -> None:
        if not self._is_wanted or not self._is_reached() or self._standing is not Standing.WAITING:
            return
        if self.session is None or self.session.is_over:
            self.session = self._coordinator.new_session(self, self._length // timedelta(microseconds=1))
        self._coordinator.step_back(self.session)  # what an earlier campaign left
        self._coordinator.stand(self.session)

    def _become(self, standing: Standing) -> None:
        if standing is not self._standing:
            self._standing = standing
            self.process.tell(f"is {standing.value}")
            self.wake()

    def _thawed(self) -> None:
        self._coordinator.look_at(self)
        self.process.deliver(self._coordinator.world.draw(0.01, 1.5), self.look)

    def _is_reached(self) -> bool:
        return self._coordinator.is_reached_by(self.process)

    def _round_trip(self) -> None:
        self.process.point("coordinator")
        self._coordinator.world.pause(self._coordinator.world.draw(0.0005, 0.01))
