"""The process in which Python jobs run: ``python -m sexton_worker.targets.python_child CONTROL PERMITS BELL BOARD``.

It says that it is ready, then runs what it is given until the worker closes the socket. Whatever a job does to its
own process ends this process at worst; the worker sees that and starts another.

The worker may send several runs at a time. Each is begun only with a *permit*, taken from a semaphore that the worker
can empty: so what was taken back is never begun, what was begun is never given to another, and the worker knows
which, however suddenly this process freezes or ends. ``targets/python_process.py`` is the other side.

Lines of JSON on the socket, to this process:
    {"at": t, "taken": k, "runs": [run, ...]}    runs in order (``Request``), given at this elapsed time
    {"forget": n}                    the last n runs were taken back; answered with "forgot"
    {"go on": k}                     the output of the run that ended last has been taken
                                     ``k``: what was taken up to the board's count k is of earlier runs
from this process:
    "ready", "forgot"
    "late"                it will begin nothing of what it has, for that came too long ago; answered with "forget"
    [token, started, ended, said, end]     ``said``: it wrote something, wait for "go on"; ``end`` null: succeeded,
                                           else {ending: exited | raised | not started, exit_code, error, exceptions}
A run that succeeded without a word is only noted on the board. The bell is rung for every message, at the end of each
list of runs, and for what was noted more than ``QUIET_SECONDS`` after the last time.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import json
import os
import socket
import sys
import termios
import time
import traceback
from collections import deque
from typing import Any

from sexton_worker.targets.board import Board
from sexton_worker.targets.python_call import call, ending_message
from sexton_worker.targets.surroundings import Refused, Request, Surroundings

QUIET_SECONDS = 0.002
LATE_SECONDS = 1.0  # a worker that does not watch over its runs may have lost their leases

_NOTHING = bytearray(4)

# Bound here, before any job can put something of its own in their places.
_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(separators=(",", ":")).encode
_clock_gettime, _CLOCK = time.clock_gettime, time.CLOCK_BOOTTIME


def main(control: int, permits: int, bell: int, board: int) -> None:
    """Serve until the socket is closed, and leave at once: nothing that a job left behind is waited for."""
    for descriptor in (control, permits, bell):
        os.set_inheritable(descriptor, False)  # a job's own children must not keep them open
    faulthandler.enable()  # so that a crash in C says where
    child = Child(socket.socket(fileno=control), permits, bell, Board(board))
    code = 1
    try:
        with contextlib.suppress(ConnectionError):
            child.serve()
        code = 0
    except MemoryError:  # its limit, or the machine's
        with contextlib.suppress(OSError):
            os.write(2, b"this Python process has no memory left\n")
    except BaseException as error:  # of what a job did to this process, or left in it
        _print_traceback(error)
    finally:
        os._exit(code)  # for the interpreter's own end waits for threads and calls what was registered


class Child:
    """The serving side of one process."""

    def __init__(self, control: socket.socket, permits: int, bell: int, board: Board) -> None:
        self._control = control
        self._permits = permits
        self._bell = bell
        self._board = board
        self._received = b""
        self._hand: deque[Request | None] = deque()  # None: the end of a list
        self._waits = False  # for "go on", or "forget"
        self._given_at = 0.0  # what was given last
        self._rung_at = 0.0
        self._is_spoiled = False
        self._taken = board.taken()
        self._is_clone = False
        self._pending = bytearray(4)
        self._pipes = [(stream, fcntl.fcntl(stream, fcntl.F_GETPIPE_SZ)) for stream in (1, 2)]
        self._surroundings = Surroundings()
        os.register_at_fork(after_in_child=self._note_fork)

    def serve(self) -> None:
        """Run what comes; return when the worker is gone, or this process is not fit for another run."""
        self._mail("ready")
        while not self._is_spoiled:
            while not self._hand or self._waits:
                if not self._receive():
                    return
            request = self._hand[0]
            if request is None:
                self._hand.popleft()
                self._ring()
            elif _elapsed() - self._given_at > LATE_SECONDS:
                self._waits = True
                self._mail("late")
            elif self._may_begin():
                self._hand.popleft()
                self._run(request)
            elif not self._receive():  # it was taken back, which the socket will say
                return

    # --- between worker and process ---------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        try:
            os.eventfd_read(self._permits)
        except BlockingIOError:
            return False
        return True

    def _receive(self) -> bool:
        """Take what has come, or wait for it; false if the worker closed the socket."""
        piece = self._control.recv(1 << 18)
        if not piece:
            return False
        *lines, self._received = (self._received + piece).split(b"\n")
        for line in lines:
            match _decode(line.decode()):
                case {"at": float(given_at), "taken": int(taken), "runs": list(runs)}:
                    self._given_at = given_at
                    self._taken = max(self._taken, taken)
                    self._hand.extend(Request(*run) for run in runs)
                    self._hand.append(None)
                case {"forget": int(count)}:
                    self._forget(count)
                case {"go on": int(taken)}:
                    self._taken = max(self._taken, taken)
                    self._waits = False
        return True

    def _forget(self, count: int) -> None:
        while count:
            count -= self._hand.pop() is not None
        self._waits = False
        self._mail("forgot")

    def _mail(self, message: object) -> None:
        self._control.sendall(_encode(message).encode() + b"\n")
        self._board.note_mail()
        self._ring()

    def _ring(self) -> None:
        self._rung_at = _elapsed()
        os.eventfd_write(self._bell, 1)

    # --- a run ------------------------------------------------------------------------------------------------------

    def _run(self, request: Request) -> None:
        started = _elapsed()
        self._board.note_begun(request.token, started)
        try:
            self._surroundings.enter(request)
        except Refused as error:
            end: dict[str, Any] | None = ending_message("not started", str(error), error.__cause__ or error)
        else:
            end, is_fit = call(request)
            self._is_spoiled |= not is_fit
            for stream in (sys.stdout, sys.stderr):
                try:  # noqa: SIM105 - for each run, and a context costs more than the flush
                    stream.flush()
                except Exception:  # noqa: S110 - the job may have closed or replaced it
                    pass
        if self._is_clone:
            # A fork that the job made and let return, or raise: the answer is its parent's to give.
            os._exit(_exit_code(end))
        self._is_spoiled |= not self._surroundings.leave(request)
        said, ended = self._has_said(), _elapsed()
        if said or end is not None:
            self._waits = said
            self._mail([request.token, started, ended, said, end])
            return
        self._board.note_ended(request.token, started, ended)
        if ended - self._rung_at > QUIET_SECONDS:
            self._ring()

    def _has_said(self) -> bool:
        """Whether something was written since the worker last said "go on", or an output is gone.

        The pipes are looked at before the count, and the worker counts before it takes: nothing falls between.
        """
        is_pending = False
        try:
            for stream, size in self._pipes:
                # They are of an unusual size: whatever else a job may have put there is told apart by it.
                self._is_spoiled |= fcntl.fcntl(stream, fcntl.F_GETPIPE_SZ) != size
                fcntl.ioctl(stream, termios.FIONREAD, self._pending)
                is_pending |= self._pending != _NOTHING
        except OSError:
            self._is_spoiled = True
        taken, self._taken = self._taken, self._board.taken()
        return is_pending or taken != self._taken or self._is_spoiled

    def _note_fork(self) -> None:
        self._is_clone = True


def _exit_code(end: dict[str, Any] | None) -> int:
    """Of a program that ends so."""
    if end is None:
        return 0
    code = end["exit_code"]
    return 1 if code is None else int(code)


def _print_traceback(error: BaseException) -> None:
    with contextlib.suppress(Exception):
        traceback.print_exception(error)


def _elapsed() -> float:
    return _clock_gettime(_CLOCK)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
