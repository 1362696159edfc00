"""The zygote: a small process that starts, drains, ends and reaps a worker's commands, whatever the worker does.

    alone ◀── "the worker is gone" ── serving ──▶ commands, each as in ``commands``; Python processes: ``python_watch``
      └── ends all, politely and then not, and leaves

It has one thread, waits for nothing but descriptors and time, and takes its orders from one socket (``frames``). It is
one for all commands, so nothing here may hang: not on a full pipe, not on a folder, not on the worker, whose ends are
kept until it takes them. The end of the socket is the end of all. Signals that are meant for the worker's group or
service do not end it. Its own death the worker sees (``targets/zygote_link.py``).
"""

from __future__ import annotations

import _socket
import array
import contextlib
import os
import signal
import sys

from sexton_worker.zygote import frames
from sexton_worker.zygote.commands import Commands
from sexton_worker.zygote.python_watch import PythonWatch
from sexton_worker.zygote.roster import Roster
from sexton_worker.zygote.waiting import Waiting, elapsed

_PIECE = 1 << 16
HOLD = 0.01  # seconds for which the ends of a busy worker wait for more: each word wakes two of its threads
MOST_HELD = 16
_MOST_DESCRIPTORS = 2  # that come with one frame
_DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_NAME = b"sexton zygote"
_NEVER = float("inf")


def main(control: int, roster: int, ahead: int, places: int, is_subreaper: bool) -> None:
    """Serve on this socket until the worker is gone and all has ended."""
    # Blocked and not ignored: what is ignored would be so in every command too.
    signal.pthread_sigmask(signal.SIG_BLOCK, _DEAF_TO)
    with open("/proc/self/comm", "wb") as file:
        file.write(_NAME)
    Zygote(control, Roster(roster, places), ahead, os.getpid() if is_subreaper else 0).serve()


class Zygote:
    """``ahead`` and ``root``: see ``Commands``."""

    def __init__(self, control: int, roster: Roster, ahead: int, root: int) -> None:
        os.set_inheritable(control, False)
        os.set_inheritable(ahead, False)
        os.set_blocking(control, False)
        self._control = _socket.socket(fileno=control)
        self._waiting = Waiting()
        self._waiting.add(control, self)
        self._frames = frames.FrameBuffer()
        self._descriptors: list[tuple[int, int] | None] = []  # that came before their frame; None: they did not
        self._outbox = bytearray()
        self._is_writing = False
        self._is_alone = False
        self._commands = Commands(roster, self._waiting, ahead, root)
        self._held_until = _NEVER
        self._python = PythonWatch(self._waiting, worker=os.getppid())
        self._bell, bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._waiting.add(self._bell, None)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Until the worker is gone and nothing is left to do."""
        until = 0.0
        while not (self._is_alone and not self._commands and not self._python):
            ready = self._waiting.wait(until)
            self._commands.forget_census()
            now = elapsed()
            for descriptor, whose in ready:
                if whose is self:
                    self._hear(now)
                elif whose is None:
                    self._reap(now)
                elif whose is self._python:
                    self._python.note_exit(descriptor)
                else:
                    self._commands.read(whose, descriptor)
            until = min(self._commands.keep_time(now), self._python.keep_time(now))
            until = min(until, self._tell(now))

    # --- the worker -------------------------------------------------------------------------------------------------

    def _hear(self, now: float) -> None:
        self._speak()
        if self._is_alone:
            return
        try:
            room = _socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
            piece, extra, flags, _ = self._control.recvmsg(_PIECE, room, _socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:  # the worker died with something unread
            piece, extra, flags = b"", [], 0
        if extra or flags & _socket.MSG_CTRUNC:
            self._take_descriptors([data for _, _, data in extra])
        if not piece:
            self._part(now)
            return
        try:
            for kind, body in self._frames.feed(piece):
                self._obey(kind, body, now)
        except frames.FrameTooLarge:  # not a worker's word
            self._part(now)

    def _take_descriptors(self, found: list[bytes]) -> None:
        """Those of one frame, for the kernel hands out no more at a time; they may be cut short for want of room."""
        came = [descriptor for data in found for descriptor in array.array("i", data[: len(data) // 4 * 4])]
        if len(came) == 2:
            self._descriptors.append((came[0], came[1]))
            return
        for descriptor in came:
            os.close(descriptor)
        self._descriptors.append(None)

    def _obey(self, kind: int, body: bytes, now: float) -> None:
        if kind == frames.RUN:
            self._commands.begin(frames.order_in(body), elapsed())
        elif kind == frames.STOP:
            token, is_urgent = frames.stop_in(body)
            self._commands.stop(token, now, is_urgent=is_urgent)
        elif kind == frames.WATCH and (descriptors := self._descriptors.pop(0)) is not None:
            self._python.add(frames.watched_in(body), *descriptors)
        elif kind == frames.LOOK and (seen := self._commands.look(frames.look_in(body))) is not None:
            self._outbox += frames.seen_frame(seen)
        elif kind == frames.PING:
            self._outbox += frames.PONG_FRAME

    def _part(self, now: float) -> None:
        """The worker is gone: nothing that runs for it may outlive it for long."""
        self._is_alone = True
        self._waiting.remove(self._control.fileno())
        self._outbox.clear()
        self._commands.stop_all(now)
        self._python.end_all(now)

    def _tell(self, now: float) -> float:
        """Of what has ended: at once where a slot is free, else together with what ends soon; when that is."""
        ends = self._commands.ends
        if ends and len(ends) < MOST_HELD and now < self._held_until and all(end.is_passed_on for end in ends):
            self._held_until = min(self._held_until, now + HOLD)
        else:
            self._outbox += b"".join(map(frames.end_frame, ends))
            ends.clear()
            self._held_until = _NEVER
        self._speak()
        return self._held_until

    def _speak(self) -> None:
        """Send what the worker takes now; the rest when it does."""
        if self._is_alone:
            self._outbox.clear()
            return
        try:
            while self._outbox:
                del self._outbox[: self._control.send(self._outbox)]
        except BlockingIOError:
            pass
        except OSError:  # it is gone, as the socket will say
            self._outbox.clear()
        if bool(self._outbox) is not self._is_writing:
            self._is_writing = bool(self._outbox)
            self._waiting.change(self._control.fileno(), is_for_writing=self._is_writing)

    # --- the children -----------------------------------------------------------------------------------------------

    def _reap(self, now: float) -> None:
        """All that have exited: leaders of runs, and who lost its parent."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 512)
        exited: list[tuple[int, int]] = []
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                exited.append(found)
        for pid, status in exited:
            code = os.waitstatus_to_exitcode(status)
            self._commands.exited(pid, code if code >= 0 else 128 - code, now)


def run(arguments: list[str]) -> None:
    """The zygote of the worker that started this interpreter with these arguments."""
    control, roster, ahead, places, is_subreaper = map(int, arguments)
    main(control, roster, ahead, places, bool(is_subreaper))
    sys.exit(0)
