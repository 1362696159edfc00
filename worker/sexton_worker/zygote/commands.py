"""The commands that run, from their start to their end.

    running ──deadline, stop──▶ terminating (SIGTERM to all of it) ──kill_after──▶ killed (SIGKILL to all of it)
       └─────────── the leader exits ───────┴──────────────────┴──────▶ over

When one is over, the next of those that were sent ahead (``ahead``) begins in its slot, at once.

A run that nobody stopped is over when its *leader* has exited, whoever else still holds its pipes: what it leaves in
the background lives on, and is no longer read. A run that was stopped is over when everything that belongs to it is
gone (``family``), also who left its group or session; what cannot be ended is told of.
"""

from __future__ import annotations

import os
import signal
from collections import deque

from sexton_worker.zygote import ahead
from sexton_worker.zygote.family import Census, Process, Spare, send, send_group
from sexton_worker.zygote.frames import (
    BY_ITSELF,
    KILLED_AT_ONCE,
    LEASE_OVER,
    RAN,
    STOPPED,
    TIMED_OUT,
    TOO_LATE,
    End,
    Order,
    Seen,
    order_in_frame,
)
from sexton_worker.zygote.program import unpacked
from sexton_worker.zygote.roster import Roster
from sexton_worker.zygote.run_outputs import RunOutputs
from sexton_worker.zygote.spawning import NotStarted, start
from sexton_worker.zygote.waiting import Waiting, elapsed

LISTEN_AFTER = 0.005  # seconds; most of the short runs are over by then, and are spared four system calls
LOOK_AGAIN = 0.05  # seconds between looks at what is left of a run whose leader is gone
URGENT_KILL_AFTER = 5.0  # seconds; when the worker itself ends, or is dead
LEASE_GRACE = 1.0  # seconds after its end in which the worker itself may stop the run
GIVE_UP_AFTER = 5.0  # seconds of SIGKILL; who still lives then waits for a device, or is another user's

_NEVER = float("inf")
_MARKS = (b"SEXTON_TOKEN", b"SEXTON_WORKER_PID")


class _Command:
    __slots__ = (
        "code", "deadline", "is_killed", "kill_after", "kill_at", "known", "lease", "look_at", "outputs", "own", "pid",
        "place", "program", "since", "token", "why",
    )  # fmt: skip

    def __init__(self, order: Order, pid: int, since: float, lease: float, outputs: RunOutputs) -> None:
        self.token = order.token
        self.place = order.place
        self.pid = pid
        self.since = since
        self.deadline = since + order.max_runtime
        self.lease = lease
        self.kill_after = order.kill_after
        self.program = order.program
        self.own = order.own
        self.outputs = outputs
        self.why = BY_ITSELF
        self.kill_at = _NEVER
        self.look_at = _NEVER  # at what is left, once the leader is gone
        self.is_killed = False
        self.known: dict[int, float] = {}
        self.code: int | None = None  # once the leader exited

    def marks(self) -> set[bytes]:
        """What is in the environment of all that belongs to it, and of nobody else."""
        env = {**unpacked(self.program)[1], **self.own}
        return {name + b"=" + env[name] for name in _MARKS if name in env} or {b"\0"}  # which none has


def _due(command: _Command) -> float:
    if command.kill_at == _NEVER:
        return min(command.deadline, command.lease + LEASE_GRACE)
    return command.look_at if command.is_killed else min(command.look_at, command.kill_at)


class Commands:
    """``ahead``: where orders that were sent ahead are taken; ``root``: whose descendants all processes of a run are, 0
    if they may go elsewhere. ``ends`` fills with what has ended."""

    def __init__(self, roster: Roster, waiting: Waiting, ahead: int, root: int) -> None:
        self._roster = roster
        self._waiting = waiting
        self._ahead = ahead
        self._root = root
        self._is_alone = False
        self._unheard: deque[_Command] = deque()  # as they began
        self._by_pid: dict[int, _Command] = {}
        self._by_token: dict[int, _Command] = {}
        self._census: Census | None = None
        self._look_again = LOOK_AGAIN
        self._spare = Spare()
        self._next_due = _NEVER  # not later than the first time that is due
        self.ends: list[End] = []

    def __len__(self) -> int:
        return len(self._by_token)

    # --- what the worker asks ---------------------------------------------------------------------------------------

    def begin(self, order: Order, now: float) -> None:
        """Start it, unless its time to begin is over; if it ends with that, the next begins in its slot."""
        if (end := self._start(order, now)) is not None:
            self._end(end)

    def _end(self, end: End) -> None:
        """The slot goes to the next that was sent ahead and can be started."""
        self.ends.append(end)
        while not self._is_alone and (frame := ahead.taken(self._ahead)) is not None:
            end.is_passed_on = True
            failed = self._start(order_in_frame(frame), elapsed())
            if failed is None:
                return
            end = failed
            self.ends.append(end)

    def _start(self, order: Order, now: float) -> End | None:
        """None: it runs."""
        if now >= order.begin_by:
            return End(order.token, TOO_LATE, now, now)
        self._roster.note(order.place, order.token, now)
        try:
            pid, stdout, stderr = start(order, self._roster)
        except NotStarted as error:
            return End(order.token, error.how_far, now, now, errno=error.errno)
        outputs = RunOutputs(order, stdout, stderr, self._waiting)
        command = _Command(order, pid, now, self._roster.lease(order.place), outputs)
        self._roster.note_process(order.place, pid)
        self._by_pid[pid] = self._by_token[order.token] = command
        self._unheard.append(command)
        self._next_due = min(self._next_due, _due(command))
        return None

    def stop(self, token: int, now: float, *, is_urgent: bool) -> None:
        """End this run, politely first; nothing if it has ended."""
        command = self._by_token.get(token)
        if command is None:
            return
        self._terminate(command, STOPPED, now)
        if is_urgent:
            self._hurry(command, now)

    def look(self, token: int) -> Seen | None:
        """What this run has written so far; None if it has ended."""
        command = self._by_token.get(token)
        if command is None:
            return None
        return command.outputs.look(token)

    def stop_all(self, now: float) -> None:
        """Nobody is there any more who would want their results; nothing more is begun."""
        self._is_alone = True
        for command in tuple(self._by_token.values()):
            self._terminate(command, STOPPED, now)
            self._hurry(command, now)

    def _hurry(self, command: _Command, now: float) -> None:
        command.kill_at = min(command.kill_at, now + URGENT_KILL_AFTER)
        self._next_due = 0.0

    # --- what happens -----------------------------------------------------------------------------------------------

    def read(self, command: object, descriptor: int) -> None:
        """Take one piece of an output."""
        assert isinstance(command, _Command)  # noqa: S101 - as it was given to the waiting
        command.outputs.read(descriptor)

    def exited(self, pid: int, code: int, now: float) -> None:
        """This child of the zygote was reaped; it may be no run's leader."""
        command = self._by_pid.pop(pid, None)
        if command is None:
            return
        command.code = code
        if command.why == BY_ITSELF:
            self._finish(command, now)
        else:
            command.look_at = now
            self._next_due = 0.0

    def keep_time(self, now: float) -> float:
        """Do what is due; when the next thing will be."""
        listen_at = self._listen(now)
        if now < self._next_due:
            return min(listen_at, self._next_due)
        for command in tuple(self._by_token.values()):
            if command.kill_at == _NEVER and now >= _due(command):
                command.lease = self._roster.lease(command.place)  # renewed meanwhile, unless the worker is frozen
                if now >= _due(command):
                    self._terminate(command, TIMED_OUT if now >= command.deadline else LEASE_OVER, now)
            if now >= command.kill_at and not command.is_killed:
                command.is_killed = True
                self._signal(command, signal.SIGKILL)
            if now >= command.look_at:
                self._look(command, now)
        self._next_due = min(map(_due, self._by_token.values()), default=_NEVER)
        return min(listen_at, self._next_due)

    def _listen(self, now: float) -> float:
        """To the runs that have lasted for a while; when there is the next."""
        while self._unheard:
            command = self._unheard[0]
            if self._by_token.get(command.token) is command:
                if now < command.since + LISTEN_AFTER:
                    return command.since + LISTEN_AFTER
                self._listen_to(command, now)
            self._unheard.popleft()
        return _NEVER

    def _listen_to(self, command: _Command, now: float) -> None:
        try:
            command.outputs.listen(command)
        except OSError as error:  # say that it began, so that it is not begun again unasked
            send_group(command.pid, signal.SIGKILL)
            if command.code is None:
                os.waitpid(command.pid, 0)
            self._forget(command)
            self._end(End(command.token, KILLED_AT_ONCE, command.since, now, errno=error.errno or 0))

    def forget_census(self) -> None:
        """Time has passed: who is there must be looked up again."""
        self._census = None

    # --- ending -----------------------------------------------------------------------------------------------------

    def _terminate(self, command: _Command, why: int, now: float) -> None:
        if command.kill_at != _NEVER:
            return
        command.why = why
        command.kill_at = now + command.kill_after
        self._next_due = 0.0
        self._signal(command, signal.SIGTERM)
        self._signal(command, signal.SIGCONT)  # a stopped process would not notice

    def _signal(self, command: _Command, number: int) -> None:
        members = self._members(command) or []
        if command.code is None or any(one.group == command.pid for one in members):
            send_group(command.pid, number)
        with self._spare:
            for one in members:
                if one.group != command.pid:
                    send(one, number)

    def _members(self, command: _Command) -> list[Process] | None:
        """Who belongs to the run, without those who are leaving; None: it cannot be told now."""
        if self._census is None:
            began = elapsed()
            try:
                with self._spare:
                    self._census = Census(self._root)
            except OSError:  # the whole machine has no descriptors
                return None
            self._look_again = max(LOOK_AGAIN, 4 * (elapsed() - began))
        with self._spare:
            members = self._census.members(command.pid, command.known, command.marks(), command.since)
        command.known = {one.pid: one.born for one in members}
        return members

    def _look(self, command: _Command, now: float) -> None:
        """Its leader is gone: whether everybody else is too."""
        members = self._members(command)
        if members == [] or now >= command.kill_at + GIVE_UP_AFTER:
            self._finish(command, now, tuple(one.pid for one in members or ()))
            return
        if command.is_killed:
            self._signal(command, signal.SIGKILL)
        command.look_at = now + self._look_again

    def _finish(self, command: _Command, now: float, survivors: tuple[int, ...] = ()) -> None:
        how_far, errno = self._roster.failure(command.place)
        command.outputs.drain()
        (stdout, stdout_bytes, stdout_spooled), (stderr, stderr_bytes, stderr_spooled) = command.outputs.finish()
        self._forget(command)
        self._end(
            End(
                command.token,
                how_far if how_far and command.why == BY_ITSELF else RAN,
                command.since,
                now,
                code=command.code or 0,
                errno=errno,
                why=command.why,
                is_killed=command.is_killed,
                stdout=stdout,
                stderr=stderr,
                stdout_bytes=stdout_bytes,
                stderr_bytes=stderr_bytes,
                stdout_spooled=stdout_spooled,
                stderr_spooled=stderr_spooled,
                survivors=survivors,
            )
        )

    def _forget(self, command: _Command) -> None:
        command.outputs.close()
        self._by_pid.pop(command.pid, None)
        del self._by_token[command.token]
