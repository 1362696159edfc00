"""The commands that run, from their start to their end.

    running ──deadline, stop──▶ terminating (SIGTERM to all of it) ──kill_after──▶ killed (SIGKILL to all of it)
       └─────────── the leader exits ───────┴──────────────────┴──────▶ over

A run that nobody stopped is over when its *leader* has exited, whoever else still holds its pipes: what it leaves in
the background lives on, and is no longer read. A run that was stopped is over when everything that belongs to it is
gone (``family``), also who left its group or session; what cannot be ended is told of.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios

from sexton_worker.core.output_stream import OutputStream
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
)
from sexton_worker.zygote.roster import Roster
from sexton_worker.zygote.spawning import NotStarted, start
from sexton_worker.zygote.spool_file import SpoolFile, spool_files
from sexton_worker.zygote.waiting import Waiting, elapsed

PIECE = 64 * 1024
LOOK_AGAIN = 0.05  # seconds between looks at what is left of a run whose leader is gone
URGENT_KILL_AFTER = 5.0  # seconds; when the worker itself ends, or is dead
LEASE_GRACE = 1.0  # seconds after its end in which the worker itself may stop the run
GIVE_UP_AFTER = 5.0  # seconds of SIGKILL; who still lives then waits for a device, or is another user's

_NEVER = float("inf")
_MARKS = (b"SEXTON_TOKEN", b"SEXTON_WORKER_PID")


class _Command:
    __slots__ = (
        "code", "deadline", "is_killed", "kill_after", "kill_at", "known", "lease", "look_at", "marks", "pid", "place",
        "since", "spools", "streams", "tails", "token", "why",
    )  # fmt: skip

    def __init__(self, order: Order, pid: int, since: float, streams: tuple[int, int]) -> None:
        self.token = order.token
        self.place = order.place
        self.pid = pid
        self.since = since
        self.deadline = since + order.max_runtime
        self.lease = order.lease
        self.kill_after = order.kill_after
        self.marks = {name + b"=" + order.env[name] for name in _MARKS if name in order.env} or {
            b"\0"
        }  # which none has
        self.streams: list[int] = list(streams)
        self.spools: tuple[SpoolFile, ...] = spool_files(order.spool, order.spool_limit)
        wholes = tuple(spool.write for spool in self.spools) or (None, None)
        self.tails = {stream: OutputStream(order.secrets, whole) for stream, whole in zip(streams, wholes, strict=True)}
        self.why = BY_ITSELF
        self.kill_at = _NEVER
        self.look_at = _NEVER  # at what is left, once the leader is gone
        self.is_killed = False
        self.known: dict[int, float] = {}
        self.code: int | None = None  # once the leader exited


def _due(command: _Command) -> float:
    if command.kill_at == _NEVER:
        return min(command.deadline, command.lease + LEASE_GRACE)
    return command.look_at if command.is_killed else min(command.look_at, command.kill_at)


class Commands:
    """``root``: whose descendants all processes of a run are, 0 if they may go elsewhere. ``ends`` fills with what
    has ended."""

    def __init__(self, roster: Roster, waiting: Waiting, root: int) -> None:
        self._roster = roster
        self._waiting = waiting
        self._root = root
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
        """Start it, unless its time to begin is over."""
        if now >= order.begin_by:
            self.ends.append(End(order.token, TOO_LATE, now, now))
            return
        self._roster.note(order.place, order.token, now, order.lease)
        try:
            pid, *streams = start(order, self._roster)
        except NotStarted as error:
            self.ends.append(End(order.token, error.how_far, now, now, errno=error.errno))
            return
        stdout, stderr = streams
        command = _Command(order, pid, now, (stdout, stderr))
        self._roster.note_process(order.place, pid)
        self._by_pid[pid] = self._by_token[order.token] = command
        self._next_due = min(self._next_due, _due(command))
        try:
            for descriptor in streams:
                self._waiting.add(descriptor, command)
        except OSError as error:  # it cannot be listened to: say that it began, so that it is not begun again unasked
            send_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._forget(command)
            self.ends.append(End(order.token, KILLED_AT_ONCE, now, now, errno=error.errno or 0))

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
        stdout, stderr = command.tails.values()
        return Seen(token, stdout.newest(), stderr.newest(), stdout.total, stderr.total)

    def stop_all(self, now: float) -> None:
        """Nobody is there any more who would want their results."""
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
        if descriptor not in command.streams:  # its run ended a moment ago
            return
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if piece:
            command.tails[descriptor].feed(piece)
        else:
            self._close(command, descriptor)

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
        if now < self._next_due:
            return self._next_due
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
        return self._next_due

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
            members = self._census.members(command.pid, command.known, command.marks, command.since)
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
        code = command.code or 0
        for descriptor in tuple(command.streams):
            self._drain(command, descriptor)
        stdout, stderr = command.tails.values()
        stdout.finish()
        stderr.finish()
        spooled = [spool.close() for spool in command.spools] or [0, 0]
        self._forget(command)
        self.ends.append(
            End(
                command.token,
                how_far if how_far and command.why == BY_ITSELF else RAN,
                command.since,
                now,
                code=code,
                errno=errno,
                why=command.why,
                is_killed=command.is_killed,
                stdout=stdout.kept(),
                stderr=stderr.kept(),
                stdout_bytes=stdout.total,
                stderr_bytes=stderr.total,
                stdout_spooled=spooled[0],
                stderr_spooled=spooled[1],
                survivors=survivors,
            )
        )

    def _drain(self, command: _Command, descriptor: int) -> None:
        """Take what lies in the pipe now, and no more: somebody may go on writing for ever."""
        (left,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))
        while left > 0 and (piece := os.read(descriptor, min(PIECE, left))):
            command.tails[descriptor].feed(piece)
            left -= len(piece)

    def _forget(self, command: _Command) -> None:
        for descriptor in tuple(command.streams):
            self._close(command, descriptor)
        self._by_pid.pop(command.pid, None)
        del self._by_token[command.token]

    def _close(self, command: _Command, descriptor: int) -> None:
        command.streams.remove(descriptor)
        self._waiting.remove(descriptor)
        os.close(descriptor)
