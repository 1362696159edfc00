"""Warm Python children: started when needed, used again and again, replaced when a run spoils one."""

from __future__ import annotations

import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

from sexton.clock import Clock
from sexton_worker.core.machine_faults import is_machine_fault
from sexton_worker.targets.environment import INHERITED_BY_PYTHON, clean_environment
from sexton_worker.targets.frames import FrameBuffer
from sexton_worker.targets.launching import KilledAtStart, launch
from sexton_worker.targets.process_group import end_of

MODULE = "sexton_worker.targets.python_child"
BOOT_SECONDS = 60.0
PARTING_SECONDS = 2.0
LARGEST_BOOT_OUTPUT = 500


class ChildFailed(Exception):
    """A child that did not come up; the message says what it wrote."""


class NoMeans(ChildFailed):
    """The machine could not start a child; no job ran."""


class PythonChild:
    """One process: its group, its output pipes, and the socket on which it takes requests and answers."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        ours, theirs = socket.socketpair()
        arguments = [sys.executable, "-u", "-m", MODULE, str(theirs.fileno())]
        try:
            self.group, self.outputs = launch(arguments, environment, pass_fds=[theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._control = ours
        self._frames = FrameBuffer()
        self.message: dict[str, Any] | None = None  # what came last

    def fileno(self) -> int:
        return self._control.fileno()

    def receive(self) -> bool:
        """Take what has come; true with a message in ``message``, or if there will be none (``message`` None)."""
        try:
            piece = self._control.recv(65536)
        except ConnectionError:
            piece = b""
        if not piece:
            self.message = None
            return True
        self._frames.feed(piece)
        self.message = self._frames.take()
        return self.message is not None

    def send(self, frame: bytes) -> None:
        """Hand a request over. Raises OSError if the child does not take it."""
        self._control.settimeout(PARTING_SECONDS)
        self._control.sendall(frame)

    def await_ready(self, give_up: int) -> None:
        """Return once the child serves; raises ``ChildFailed``. ``give_up``: a descriptor that ends the wait."""
        deadline = self._clock.elapsed() + BOOT_SECONDS
        poll = select.poll()
        for descriptor in (self.fileno(), self.group.fileno(), give_up):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(1000)}
            if give_up in ready:
                raise ChildFailed("stopped while a Python process was started for it")
            if self.fileno() in ready and self.receive():
                if self.message is not None:
                    return
                raise ChildFailed(self._why_it_died())
            if self.group.fileno() in ready:
                raise ChildFailed(self._why_it_died())
            if self._clock.elapsed() >= deadline:
                raise ChildFailed(f"a Python process did not start within {BOOT_SECONDS:g} s")

    def is_fit(self) -> bool:
        """Whether it can take another run: alive, silent, with its outputs open."""
        poll = select.poll()
        for descriptor in (self.fileno(), self.group.fileno()):
            poll.register(descriptor, select.POLLIN)
        return not self.outputs.has_ended and not poll.poll(0)

    def part(self) -> None:
        """Close the socket, on which an idle child ends by itself; ``end`` must follow."""
        self._control.close()

    def end(self, patience: float = 0.0) -> int:
        """Kill what has not ended within ``patience`` seconds, group and all; exit code."""
        self._control.close()
        poll = select.poll()
        poll.register(self.group.fileno(), select.POLLIN)
        if not patience or not poll.poll(patience * 1000):
            self.group.signal(signal.SIGKILL)
        self.outputs.close()
        return self.group.reap()

    def _why_it_died(self) -> str:
        self.outputs.drain()
        said = self.outputs.stderr.kept().decode(errors="replace").strip().rpartition("\n")[2][-LARGEST_BOOT_OUTPUT:]
        return f"the Python process of this worker {end_of(self.end(PARTING_SECONDS))} while starting: {said}"


class PythonPool:
    """The idle children of a worker. Each of its threads takes one, runs one job in it and brings it back."""

    def __init__(self, clock: Clock, worker_environment: Mapping[str, str]) -> None:
        self._clock = clock
        self._environment = clean_environment(worker_environment, INHERITED_BY_PYTHON)
        self._lock = threading.Lock()
        self._idle: list[PythonChild] = []
        self._is_closed = False

    def take(self, give_up: int) -> PythonChild:
        """A child that waits for a request: the one used last, so that few stay warm. Raises ``ChildFailed``."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                break
            if child.is_fit():
                return child
            child.end()
        try:
            child = PythonChild(self._environment, self._clock)
        except KilledAtStart as error:
            raise NoMeans(str(error)) from None
        except OSError as error:
            if is_machine_fault(error):
                raise NoMeans(str(error)) from None
            raise ChildFailed(f"cannot start a Python process: {error}") from None
        try:
            child.await_ready(give_up)
        except ChildFailed:
            child.end()
            raise
        return child

    def bring_back(self, child: PythonChild) -> None:
        """The child's run is over; keep it if it is fit for another."""
        with self._lock:
            if not self._is_closed and child.is_fit():
                self._idle.append(child)
                return
        child.end()

    def close(self) -> None:
        """End all idle children, and those that are brought back later."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.part()
        for child in idle:
            child.end(PARTING_SECONDS)
