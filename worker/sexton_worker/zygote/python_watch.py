"""The deadlines and leases of Python runs, for a worker that is frozen or dead.

The worker ends its own Python runs at their deadlines, and at the ends of the leases that they must not outlive. For
the case that it cannot, the zygote looks at the boards that worker and Python processes share (``targets/board.py``):
which run is on, since when, how long it may take, and until when it was leased at last. So a run costs no word between
anybody. ``GRACE`` after an end at which the worker did nothing, the process is ended with its group and what the run
has started out of it, politely and then not, and the board says so. Of a dead worker all Python processes are ended at
once, likewise.
"""

from __future__ import annotations

import contextlib
import os
import signal

from sexton_worker.targets.board import Board
from sexton_worker.zygote.family import Census, Process, Spare, Strays, send, send_group
from sexton_worker.zygote.waiting import Waiting

GRACE = 1.0  # seconds that a busy worker may be late
LOOK_AGAIN = 1.0
LAST_KILL_AFTER = 5.0  # seconds; of those whose worker is dead

_NEVER = float("inf")


class _Watched:
    __slots__ = ("board", "cut", "has_exited", "is_killed", "kill_at", "pid", "pidfd", "strays")

    def __init__(self, pid: int, pidfd: int, board: Board) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.board = board
        self.cut: int | None = None  # the run that was ended here
        self.kill_at = _NEVER
        self.is_killed = False
        self.has_exited = False  # and its worker, which is there, has yet to end what it left
        self.strays: Strays | None = None  # of the run that is being ended


class PythonWatch:
    """Over the Python processes that the worker told of; ``worker``: its process."""

    def __init__(self, waiting: Waiting, worker: int) -> None:
        self._waiting = waiting
        self._worker = worker
        self._spare = Spare()
        self._watched: dict[int, _Watched] = {}  # by pidfd
        self._look_at = _NEVER
        self._is_last = False

    def __len__(self) -> int:
        return len(self._watched)

    def add(self, pid: int, pidfd: int, board: int) -> None:
        """Watch this process from now on; both descriptors are the zygote's."""
        try:
            one = _Watched(pid, pidfd, Board(board))
            self._waiting.add(pidfd, self)
        except (OSError, ValueError):  # no room for it: the worker alone watches over it
            os.close(pidfd)
            return
        self._watched[pidfd] = one
        self._look_at = 0.0

    def note_exit(self, pidfd: int) -> None:
        """The process has exited. If its run was being ended, so must be what that has started, by whoever can."""
        self._waiting.remove(pidfd)
        one = self._watched[pidfd]
        if not self._is_last:
            one.has_exited = one.cut is not None or one.board.is_parting()
            if not one.has_exited:
                self._forget(one)
        self._look_at = 0.0

    def end_all(self, now: float) -> None:
        """The worker is gone."""
        self._is_last = True
        self._look_at = 0.0
        census = self._look()
        for one in self._watched.values():
            one.kill_at = min(one.kill_at, now + min(one.board.longest_end(), LAST_KILL_AFTER))
            self._signal(one, signal.SIGTERM, census)

    def keep_time(self, now: float) -> float:
        """End what is too old; when to look again."""
        if now < self._look_at:
            return self._look_at
        census = self._look() if self._is_last else None
        for one in tuple(self._watched.values()):
            if self._is_last:
                self._end_last(one, now, census)
            else:
                self._end_late(one, now)
        nearest = min((one.kill_at for one in self._watched.values() if not one.is_killed), default=_NEVER)
        self._look_at = min(nearest, now + LOOK_AGAIN) if self._watched else _NEVER
        return self._look_at

    def _end_late(self, one: _Watched, now: float) -> None:
        present = one.board.present()
        if one.has_exited and (present is None or self._is_over(one, now)):
            self._forget(one)
            return
        if present is None:
            one.kill_at = _NEVER
            return
        token, ends_by = present.token, present.ends_by
        if one.cut != token and now >= ends_by + GRACE:
            one.cut = token
            # A worker that was frozen while it ended the run has been polite already.
            if one.board.is_parting():
                one.kill_at = max(now, ends_by + present.kill_after + 2 * GRACE)
            else:
                one.board.note_cut(token, present.why_cut)
                one.kill_at = now + present.kill_after
                self._signal(one, signal.SIGTERM, self._look())
        if one.cut == token and now >= one.kill_at:
            if not one.is_killed:
                one.is_killed = True
                one.board.note_cut(token, present.why_cut)
            self._signal(one, signal.SIGKILL, self._look())

    def _is_over(self, one: _Watched, now: float) -> bool:
        """Whether nothing is left of the run whose process has exited, or what is left cannot be ended."""
        if one.is_killed and now >= one.kill_at + LAST_KILL_AFTER:
            return True
        census = self._look()
        return census is not None and not self._members(one, census)

    def _end_last(self, one: _Watched, now: float, census: Census | None) -> None:
        """Its parent is dead: who is left of the group is found by the group alone."""
        if census is None:  # the whole machine has no descriptors
            if now >= one.kill_at:
                send_group(one.pid, signal.SIGKILL)
            return
        has_group = not one.has_exited and census.has_group(one.pid)
        members = self._members(one, census)
        if not (has_group or members) or (one.is_killed and now >= one.kill_at + LAST_KILL_AFTER):
            self._forget(one)
        elif now >= one.kill_at:
            one.is_killed = True
            if has_group:
                send_group(one.pid, signal.SIGKILL)
            self._send(members, signal.SIGKILL)

    # --- who they are -----------------------------------------------------------------------------------------------

    def _look(self) -> Census | None:
        """Who is there now; None: it cannot be told."""
        with contextlib.suppress(OSError), self._spare:
            return Census(0)
        return None

    def _members(self, one: _Watched, census: Census) -> list[Process]:
        """What its present run has started."""
        present = one.board.present()
        if present is None:
            return []
        with self._spare:
            if one.strays is None or one.strays.token != present.token:
                one.strays = Strays(census, one.pid, present.token, self._worker, present.started)
            return one.strays.present(census)

    def _signal(self, one: _Watched, number: int, census: Census | None) -> None:
        """Its group, while the process itself or its corpse keeps the id from strangers; and what its run has started,
        which is looked for before the process is gone."""
        members = self._members(one, census) if census is not None else []
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(one.pidfd, 0)
            send_group(one.pid, number)
            if number == signal.SIGTERM:
                send_group(one.pid, signal.SIGCONT)
            members = [member for member in members if member.group != one.pid]
        self._send(members, number)

    def _send(self, members: list[Process], number: int) -> None:
        with self._spare:
            for member in members:
                send(member, number)
                if number == signal.SIGTERM:
                    send(member, signal.SIGCONT)

    def _forget(self, one: _Watched) -> None:
        self._waiting.remove(one.pidfd)
        del self._watched[one.pidfd]
        os.close(one.pidfd)
        one.board.close()
