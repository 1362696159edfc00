"""The deadlines and leases of Python runs, for a worker that is frozen or dead.

The worker ends its own Python runs at their deadlines, and at the ends of the leases that they must not outlive. For
the case that it cannot, the zygote looks at the boards that worker and Python processes share (``targets/board.py``):
which run is on, since when, how long it may take, and until when it was leased at last. So a run costs no word between
anybody. ``GRACE`` after an end at which the worker did nothing, the process is ended with its group, politely and then
not, and the board says so. Of a dead worker all Python processes are ended at once.
"""

from __future__ import annotations

import os
import signal

from sexton_worker.targets.board import Board
from sexton_worker.zygote.family import group_exists, send_group
from sexton_worker.zygote.waiting import Waiting

GRACE = 1.0  # seconds that a busy worker may be late
LOOK_AGAIN = 1.0
LAST_KILL_AFTER = 5.0  # seconds; of those whose worker is dead

_NEVER = float("inf")


class _Watched:
    __slots__ = ("board", "cut", "is_killed", "kill_at", "pid", "pidfd")

    def __init__(self, pid: int, pidfd: int, board: Board) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.board = board
        self.cut: int | None = None  # the run that was ended here
        self.kill_at = _NEVER
        self.is_killed = False


class PythonWatch:
    """Over the Python processes that the worker told of."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
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
        """The process has exited. What is left of its group is its worker's to end, or nobody's but ours."""
        self._waiting.remove(pidfd)
        if not self._is_last:
            self._forget(self._watched[pidfd])
        self._look_at = 0.0

    def end_all(self, now: float) -> None:
        """The worker is gone."""
        self._is_last = True
        self._look_at = 0.0
        for one in self._watched.values():
            one.kill_at = min(one.kill_at, now + min(one.board.longest_end(), LAST_KILL_AFTER))
            self._signal(one, signal.SIGTERM)

    def keep_time(self, now: float) -> float:
        """End what is too old; when to look again."""
        if now < self._look_at:
            return self._look_at
        for one in tuple(self._watched.values()):
            if self._is_last:
                self._end_last(one, now)
            else:
                self._end_late(one, now)
        nearest = min((one.kill_at for one in self._watched.values() if not one.is_killed), default=_NEVER)
        self._look_at = min(nearest, now + LOOK_AGAIN) if self._watched else _NEVER
        return self._look_at

    def _end_late(self, one: _Watched, now: float) -> None:
        present = one.board.present()
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
                self._signal(one, signal.SIGTERM)
        if one.cut == token and now >= one.kill_at and not one.is_killed:
            one.is_killed = True
            one.board.note_cut(token, present.why_cut)
            self._signal(one, signal.SIGKILL)

    def _end_last(self, one: _Watched, now: float) -> None:
        """Its parent is dead: who is left of the group is found by the group alone."""
        if not group_exists(one.pid) or (one.is_killed and now >= one.kill_at + LAST_KILL_AFTER):
            self._forget(one)
        elif now >= one.kill_at:
            one.is_killed = True
            send_group(one.pid, signal.SIGKILL)

    def _signal(self, one: _Watched, number: int) -> None:
        """Its group, while the process itself or its corpse keeps the id from strangers."""
        try:
            signal.pidfd_send_signal(one.pidfd, 0)
        except OSError:
            return
        send_group(one.pid, number)
        if number == signal.SIGTERM:
            send_group(one.pid, signal.SIGCONT)

    def _forget(self, one: _Watched) -> None:
        self._waiting.remove(one.pidfd)
        del self._watched[one.pidfd]
        os.close(one.pidfd)
        one.board.close()
