"""What a Python run has started and what left the group of its process: found and ended with a run that is stopped.
(Commands have the zygote for this, whose descendants none of theirs can leave.)
"""

from __future__ import annotations

import os
import signal
import time

from sexton.clock import Clock
from sexton_worker.zygote.commands import GIVE_UP_AFTER, LOOK_AGAIN
from sexton_worker.zygote.family import Census, Process, Strays, send


class Escaped:
    """Of the run with this token, begun at ``since`` (elapsed seconds), in the process that leads its group."""

    def __init__(self, leader: int, token: int, since: float) -> None:
        self._leader = leader
        self._strays = Strays(Census(0), leader, token, os.getpid(), since)

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
        return [one for one in self._strays.present(Census(0)) if one.group != self._leader]
