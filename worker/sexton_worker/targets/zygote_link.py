"""The worker's end of one zygote (``sexton_worker/zygote``): its process, and the socket to it.

The zygote is a small interpreter of its own, started by ``exec``: no site packages, nothing of the worker's memory, and
nothing of its environment or of any job's on its command line. All methods belong to who holds the execution's lock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import sexton_worker
from sexton_worker.targets.process_group import ProcessGroup
from sexton_worker.zygote import ahead, frames
from sexton_worker.zygote.roster import Roster

_PACKAGES = Path(sexton_worker.__file__).parent.parent
_PIECE = 1 << 16
_INTERPRETER = (sys.executable, "-I", "-S", "-c")
_PROGRAM = "sexton_worker.zygote.process"
_ZYGOTE = f"""
import sys
sys.path.append(sys.argv[1])
from {_PROGRAM} import run
run(sys.argv[2:])
"""
# To be a subreaper outlasts exec: so it is arranged by an interpreter that loads what that takes, and the zygote is
# another that does not.
_LAUNCHER = """
import os, sys
PR_SET_CHILD_SUBREAPER = 36
try:
    import ctypes
    is_subreaper = ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
except Exception:  # runs go without the help of this
    is_subreaper = False
*interpreter, program = sys.argv[1:6]
os.execv(interpreter[0], [*interpreter, program, *sys.argv[6:], str(int(is_subreaper))])
"""


class ZygoteLink:
    """Making it starts a zygote for that many orders at once. Raises OSError, with nothing left over."""

    def __init__(self, places: int) -> None:
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self._control, control = socket.socketpair()
            ours.callback(self._control.close)
            theirs.callback(control.close)
            self._control.setblocking(False)
            memory = Roster.descriptor(places)
            theirs.callback(os.close, memory)
            self._roster = Roster(os.dup(memory), places)
            ours.callback(self._roster.close)
            self._put, self._take = _ends(ours)
            descriptors = [control.fileno(), memory, self._take]
            process = subprocess.Popen(
                [
                    *_INTERPRETER, _LAUNCHER, *_INTERPRETER, _ZYGOTE,
                    str(_PACKAGES), *map(str, descriptors), str(places),
                ],
                # All three must be there: what the zygote opens may not get their numbers.
                stdin=subprocess.DEVNULL,
                stdout=_complaints(),
                stderr=_complaints(),
                env={"PATH": os.defpath},
                pass_fds=descriptors,
                start_new_session=True,
            )  # fmt: skip
            try:
                self._group = ProcessGroup(process)
            except OSError:
                process.kill()
                process.wait()
                raise
            self._ends = ours.pop_all()
        self._frames = frames.FrameBuffer()
        self._outbox: deque[tuple[bytes | memoryview, Sequence[int]]] = deque()
        self.is_given_up = False
        self.unanswered = 0  # pings since it last said anything

    @property
    def pid(self) -> int:
        return self._group.pid

    def fileno(self) -> int:
        """Readable once it said something, or is gone."""
        return self._control.fileno()

    def exit_fileno(self) -> int:
        """Readable once its process is gone, whoever else may hold its end of the socket."""
        return self._group.fileno()

    @property
    def has_mail(self) -> bool:
        """Whether it has yet to take something."""
        return bool(self._outbox)

    # --- saying and hearing -----------------------------------------------------------------------------------------

    def post(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send with the next ``flush``; the descriptors, which stay the caller's, must be open until then."""
        self._outbox.append((frame, descriptors))

    def withdraw(self, frame: bytes) -> None:
        """Do not send this any more, with its descriptors, if it has not been."""
        with contextlib.suppress(StopIteration):
            self._outbox.remove(next(entry for entry in self._outbox if entry[0] == frame))

    def flush(self) -> None:
        """Send what the zygote takes now. Never waits; of a zygote that is gone the watch will tell."""
        outbox = self._outbox
        if len(outbox) > 1 and not any(descriptors for _, descriptors in outbox):
            together = b"".join(frame for frame, _ in outbox)
            outbox.clear()
            outbox.append((together, ()))
        try:
            while outbox:
                frame, descriptors = outbox[0]
                if descriptors:
                    sent = socket.send_fds(self._control, [frame], list(descriptors))
                else:
                    sent = self._control.send(frame)
                if sent == len(frame):
                    outbox.popleft()
                else:
                    outbox[0] = (memoryview(frame)[sent:], ())
        except BlockingIOError:
            pass
        except OSError:
            outbox.clear()

    def send_ahead(self, frame: bytes) -> bool:
        """An order that the zygote may begin once another of its runs has ended; whether there was room for it."""
        return ahead.put(self._put, frame)

    def take_ahead(self) -> bytes | None:
        """The first of the orders that were sent ahead and not begun: it will not be. None: there is none."""
        return ahead.taken(self._take)

    def receive(self) -> list[tuple[int, bytes]]:
        """The frames that came since the last call. Of its end the watch will tell."""
        found: list[tuple[int, bytes]] = []
        with contextlib.suppress(OSError, frames.FrameTooLarge):
            while piece := self._control.recv(_PIECE):
                self.unanswered = 0
                found += self._frames.feed(piece)
                if len(piece) < _PIECE:
                    break
        return found

    # --- its end ----------------------------------------------------------------------------------------------------

    def begun(self, place: int, token: int) -> tuple[int, float] | None:
        """Process (0: not known) and start of the run, if it may have begun; of a zygote that has exited."""
        return self._roster.begun(place, token)

    def note_lease(self, place: int, lease: float) -> None:
        """The run there may go on until then (elapsed seconds); costs no word."""
        self._roster.note_lease(place, lease)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it, as far as can be seen."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] == b"T"
        except (OSError, IndexError):
            return False

    def go_on(self) -> None:
        """Undo a stop."""
        self._group.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Give it up: it will have exited in a moment; ``end`` must follow."""
        self.is_given_up = True
        self._group.signal(signal.SIGKILL)

    def end(self, patience: float = 0.0) -> int:
        """Part with it; exit code. It leaves when its runs have ended, and is killed after so many seconds. From any
        thread."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        code = self._group.end(patience)
        self._ends.close()
        return code


def _ends(ours: contextlib.ExitStack) -> tuple[int, int]:
    """Where orders are put that are sent ahead, and where they are taken, which is for both sides. Messages, each of
    which one of both gets. Raises OSError."""
    found = []
    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET):
        end.setblocking(False)
        found.append(end.detach())
        ours.callback(os.close, found[-1])
    return found[0], found[1]


def _complaints() -> int:
    """Where its own tracebacks go."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # there is no standard error
        return subprocess.DEVNULL
