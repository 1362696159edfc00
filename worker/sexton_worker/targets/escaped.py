"""What a Python run has started and what left the group of its process: found and ended with a run that is stopped.

Who was there when the run was stopped is known by where it stood, whoever its parent is later; who came after that, by
the run's token in its environment. (Commands have the zygote for this, whose descendants none of theirs can leave.)
"""

from __future__ import annotations

import os
import signal
import time

from sexton.clock import Clock
from sexton_worker.targets.environment import TOKEN, WORKER_PID
from sexton_worker.zygote.commands import GIVE_UP_AFTER, LOOK_AGAIN
from sexton_worker.zygote.family import Census, Process, send


class Escaped:
    """Of the run with this token, begun at ``since`` (elapsed seconds), in the process that leads its group."""

    def __init__(self, leader: int, token: int, since: float) -> None:
        self._leader = leader
        self._since = since
        self._marks = {f"{TOKEN}={token}".encode(), f"{WORKER_PID}={os.getpid()}".encode()}
        below = Census(leader).members(leader, {}, set(), since)
        self._known = {one.pid: one.born for one in below}

    def ask(self) -> None:
        """Have them end, as their group is asked to by others."""
        for one in self._present():
            send(one, signal.SIGTERM)
            send(one, signal.SIGCONT)

    def end(self, clock: Clock) -> None:
        """Return when they are gone, killed, or cannot be ended."""
        until = clock.elapsed() + GIVE_UP_AFTER
        while (left := self._present()) and clock.elapsed() < until:
            for one in left:
                send(one, signal.SIGKILL)
            time.sleep(LOOK_AGAIN)

    def _present(self) -> list[Process]:
        members = Census(0).members(self._leader, self._known, self._marks, self._since)
        self._known |= {one.pid: one.born for one in members}
        return [one for one in members if one.group != self._leader]
