"""The worker's end of a Python child: a process, the runs in its hands, and how each of them is accounted for.

    hand:   begun? | not begun ... not begun        the child takes from the left, the worker back from the right

Every run in the hand has a permit in a semaphore until the child begins it. Taking back is taking permits out: the
last n runs of the hand are the worker's again if it got n permits, whatever the child is doing. When the child is
dead, the permits that are left say how many runs never began; of the rest those with an answer have ended, and at
most one, the first without, was lost. The other side is ``targets/python_child.py``.

All methods belong to who holds the execution's lock, except where they say otherwise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sexton_worker.core.chunks import STALL_SECONDS
from sexton_worker.core.secret_masks import forms_of_all
from sexton_worker.execution import RunOrder
from sexton_worker.targets.board import Board
from sexton_worker.targets.launching import launch
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.stop_signal import StopSignal

MODULE = "sexton_worker.targets.python_child"
PIPE_BYTES = 128 * 1024  # twice the usual: the child knows its own outputs by it
LARGEST_BOOT_OUTPUT = 500
NOT_LEASED = float("inf")
LEASE_SECONDS = 1.0  # between two looks at what has been renewed
DEAF_SECONDS = 2.0  # longer than a child takes on a busy machine to begin what it has, or to answer


@dataclasses.dataclass(slots=True, eq=False)
class Task:
    """A run on its way: its order, the line that asks for it, the function, and what became of earlier tries."""

    order: RunOrder
    line: str
    function: str
    arrival: int
    is_alone: bool = False
    tries: int = 0
    ends_with_lease: bool = False
    is_limited: bool = False  # it needs a process of its own

    @property
    def token(self) -> int:
        return self.order.grant.token

    @property
    def longest(self) -> float:
        """Seconds that the run may take."""
        return self.order.rules.max_runtime.total_seconds()

    @property
    def kill_after(self) -> float:
        """Seconds from SIGTERM to SIGKILL."""
        return self.order.rules.kill_after.total_seconds()


class Letter(NamedTuple):
    """The end of a run, as the child says it: see ``python_child``."""

    token: int
    started: float
    ended: float
    said: bool
    end: dict[str, Any] | None


EndOfRun = tuple[Task, float, float, dict[str, Any] | None]  # its start, its end, and unless plain, what was said


def _message(line: bytes) -> str | Letter | None:
    """What a line of the child's says; None: it is none of the child's."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match message:
        case str():
            return message
        case [int(token), int() | float() as started, int() | float() as ended, bool(said), end] if _is_end(end):
            return Letter(token, started, ended, said, end)
    return None


def _is_end(end: object) -> bool:
    match end:
        case None:
            return True
        case {"ending": "exited" | "raised" | "not started", "exit_code": None | int(), "error": str(), **more}:
            names = more.get("exceptions", [])
            return isinstance(names, list) and all(isinstance(name, str) for name in names)
    return False


class PythonChild:
    """One process. Making it starts it, in any thread; raises OSError or ``KilledAtStart``."""

    def __init__(self, environment: Mapping[str, str], bell: int, now: float) -> None:
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self.control, control = socket.socketpair()
            ours.callback(self.control.close)
            theirs.callback(control.close)
            self.control.setblocking(False)
            self.permits = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            ours.callback(os.close, self.permits)
            self.stop = StopSignal()
            ours.callback(self.stop.close)
            self.memory = memory = Board.descriptor()  # for who else is to look at the board
            ours.callback(os.close, memory)
            self.board = Board(os.dup(memory))
            ours.callback(self.board.close)
            descriptors = [control.fileno(), self.permits, bell, memory]
            arguments = [sys.executable, "-u", "-m", MODULE, *map(str, descriptors)]
            self.group, self.outputs = launch(arguments, environment, pass_fds=descriptors, pipe_bytes=PIPE_BYTES)
            self._ends = ours.pop_all()
        self.hand: deque[Task] = deque()
        self._most_may = timedelta(0), timedelta(0), False
        self._lease = self._leased_at = NOT_LEASED  # of the first whose run must not outlive it; when that was noted
        self.moved_at = now  # when it last was seen to begin or end something
        self.head_since = now
        self.has_begun = False  # anything, ever
        self.is_ready = False
        self._recalls = 0  # how often "forget" was sent and not answered
        self.is_late = False
        self.is_quick = False  # all that is in the hand
        self.intended: Task | None = None  # the one run that it is for; it has the limits of that
        self.has_slot = False  # a spare has none until it gets a run
        self.runs = 0  # that have ended here
        self.is_due = False  # see python_recycling
        self.is_replaced = False
        self.muted: set[int] = set()  # outputs not watched, for somebody writes while no run is there
        self.outbox = bytearray()
        self._received = b""
        self._count = 0
        self._letters: deque[Letter] = deque()
        self.is_odd = False  # somebody else wrote to its socket, or read there
        self.has_lost_mail = False  # and an answer went with it
        self._poll = select.poll()
        for watched in (self.group.fileno(), self.fileno(), *self.outputs.descriptors()):
            self._poll.register(watched, select.POLLIN)

    def fileno(self) -> int:
        return self.control.fileno()

    @property
    def is_recalling(self) -> bool:
        """Whether it owes an answer for what was taken back."""
        return self._recalls > 0

    # --- giving and taking back -------------------------------------------------------------------------------------

    def give(self, tasks: Sequence[Task], now: float) -> None:
        """Put the tasks into the child's hands."""
        if not self.hand:
            self.head_since = self.moved_at = now
        self.hand.extend(tasks)
        for task in tasks:
            if task.order.secrets:
                self.outputs.mask(forms_of_all(task.order.secrets))
        self._note_times(tasks)
        if ends := [task.order.begin_by for task in tasks if task.ends_with_lease]:
            self._note_lease(now, min(self._lease, *ends))
        os.eventfd_write(self.permits, len(tasks))
        runs = ",".join(task.line for task in tasks)
        self.send(f'{{"at":{now!r},"taken":{self.board.takings},"runs":[{runs}]}}\n'.encode())

    def _note_times(self, tasks: Sequence[Task]) -> None:
        """For the zygote, which must know of each how long it may take. Most hands are all alike."""
        if len(self.hand) == len(tasks):
            first = tasks[0]
            self._most_may = first.order.rules.max_runtime, first.order.rules.kill_after, first.ends_with_lease
            self.board.note_hand(first.longest, first.kill_after, leased=first.ends_with_lease)
            self._lease = self._leased_at = NOT_LEASED
        for task in tasks:
            rules = task.order.rules
            if (rules.max_runtime, rules.kill_after, task.ends_with_lease) != self._most_may:
                self.board.note_given(task.token, task.longest, task.kill_after, leased=task.ends_with_lease)

    def note_leases(self, now: float, leases: Mapping[int, float]) -> None:
        """Let the zygote see until when the leased runs of the hand may go on: as long as the first of them."""
        if ends := [leases.get(task.token, self._lease) for task in self.hand if task.ends_with_lease]:
            self._note_lease(now, min(ends))
        else:
            self._leased_at = NOT_LEASED

    def _note_lease(self, now: float, until: float) -> None:
        self._lease = until
        self._leased_at = now
        self.board.note_lease(until)

    def leases_at(self) -> float:
        """When the leases of the hand are to be noted again."""
        return self._leased_at + LEASE_SECONDS

    def let_go_on(self) -> None:
        """The output of the run that ended last has been taken."""
        self.send(b'{"go on":%d}\n' % self.board.takings)

    def take_back(self, most: int, *, must_answer: bool = False) -> list[Task]:
        """Up to ``most`` tasks that have not begun and never will here, the last ones, in their order.

        ``must_answer``: the child waits to be told how many, be it none."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while count < most:
                os.eventfd_read(self.permits)
                count += 1
        taken = [self.hand.pop() for _ in range(count)]
        if taken or must_answer:
            self._recalls += 1
            self.send(b'{"forget":%d}\n' % count)
        taken.reverse()
        return taken

    def send(self, line: bytes) -> None:
        """Never waits: what the child does not take now lies in ``outbox`` until ``flush``."""
        self.outbox += line
        self.flush()

    def flush(self) -> None:
        try:
            while self.outbox:
                del self.outbox[: self.control.send(self.outbox)]
        except BlockingIOError:
            pass
        except ConnectionError:  # its process ends, or will be ended at its deadline
            self.outbox.clear()

    # --- what it says -----------------------------------------------------------------------------------------------

    def ends(self, now: float) -> list[EndOfRun]:
        """The runs that have ended since the last call, with their start, end and, unless plain, what was said."""
        found: list[EndOfRun] = []
        self._read_mail()
        while self.hand:
            token = self.hand[0].token
            if (times := self.board.ended(token)) is not None:
                found.append((self.hand.popleft(), *times, None))
            elif self._letters and self._letters[0].token == token:
                letter = self._letters.popleft()
                said = {"said": letter.said, "end": letter.end}
                found.append((self.hand.popleft(), letter.started, letter.ended, said))
            else:
                break
        self.is_odd |= bool(self._letters)  # of no run that it has
        if found:
            self.board.note_settled(found[-1][0].token)
            self.has_begun = True
            self.runs += len(found)
            self.moved_at = self.head_since = now
        return found

    def _read_mail(self) -> None:
        """What the board counts lies in the socket, and nothing else does, unless a job laid hands on it."""
        while self.board.mailed() > self._count:
            try:
                piece = self.control.recv(1 << 16)
            except BlockingIOError:
                self.is_odd = self.has_lost_mail = True
                return
            except ConnectionError:
                return
            if not piece:
                return
            *lines, self._received = (self._received + piece).split(b"\n")
            for line in lines:
                self._count += self._take(line)

    def _take(self, line: bytes) -> bool:
        """Take one line; false if it is none of the child's."""
        match _message(line):
            case "ready" if not self.is_ready:
                self.is_ready = True
            case "forgot" if self._recalls:
                self._recalls -= 1
            case "late":
                self.is_late = True
            case Letter() as letter if any(letter.token == task.token for task in self.hand):
                self._letters.append(letter)
            case _:
                self.is_odd = True
                return False
        return True

    def started_at(self) -> float | None:
        """When the first run of the hand began; None: it has not."""
        return self.board.begun(self.hand[0].token) if self.hand else None

    def deaf_at(self) -> float:
        """When it is too late for it to begin what it has, or to answer."""
        return self.moved_at + DEAF_SECONDS

    def deadline(self) -> float:
        """Of the first run in the hand, which is not empty."""
        return self.head_since + self.hand[0].longest

    def look_at(self) -> float:
        """When time alone may change something in the hand, which is not empty."""
        until = min(self.deadline(), self.leases_at())
        if len(self.hand) > 1:
            return min(until, self.moved_at + STALL_SECONDS)
        return until if self.started_at() is not None else min(until, self.deaf_at())

    def has_news(self) -> bool:
        """Whether it has exited, or something lies in its outputs, or one of them is closed."""
        return self.outputs.has_ended or bool(self._poll.poll(0))

    def has_output(self, descriptor: int) -> bool:
        """Whether something lies there now, or its end."""
        return any(descriptor == one for one, _ in self._poll.poll(0))

    def read_output(self, descriptor: int) -> bool:
        """Take one piece; false if the stream has ended."""
        self.board.note_taking()
        return self.outputs.read(descriptor)

    def is_fit(self) -> bool:
        """Whether it can take a run, while it has none: then nothing comes on its socket."""
        return not self.has_lost_an_output() and all(one != self.fileno() for one, _ in self._poll.poll(0))

    def has_lost_an_output(self) -> bool:
        outputs = self.outputs.descriptors()
        return self.outputs.has_ended or any(
            descriptor in outputs and events & ~select.POLLIN for descriptor, events in self._poll.poll(0)
        )

    # --- its end ----------------------------------------------------------------------------------------------------

    def end(self, patience: float = 0.0) -> int:
        """Kill what has not ended within ``patience`` seconds, group and all; exit code. From any thread."""
        code = self.group.end(patience)
        self.outputs.close()
        self._ends.close()
        return code

    def dismiss(self) -> None:
        """It will have no more to do: it leaves as soon as it is through with its run, which may catch SIGTERM."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)

    def part(self) -> None:
        """Close the socket, on which an idle child ends by itself; ``end`` must follow."""
        self.control.close()

    def why_it_died(self, code: int) -> str:
        """For a child that never became ready. Its outputs must have been drained."""
        said = self.outputs.stderr.kept().decode(errors="replace").strip().rpartition("\n")[2][-LARGEST_BOOT_OUTPUT:]
        return f"{end_of(code)} while starting" + (f": {said}" if said else "")
