"""The one zygote that a worker has: started when it is needed, started again when it is lost.

    none ──needed──▶ present ──exited, killed──────────▶ lost ──▶ none
                        └──says nothing, asked thrice──▶ killed ─┘

One that somebody stopped (SIGSTOP) is let go on at once.

A zygote that is lost takes with it what is known of its commands; they are ended by ``zygote_loss``. The Python
processes that it watched over are told of to the next one. All methods belong to who holds the execution's lock.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

from sexton.clock import Clock
from sexton_worker.targets.zygote_link import ZygoteLink
from sexton_worker.zygote.frames import PING_FRAME, watch_frame

PING_SECONDS = 5.0
ROUSE_SECONDS = 1.0  # between looks at one that says nothing
MOST_UNANSWERED = 3
PAUSE_SECONDS = 1.0  # between two zygotes that only watch


class Watched(NamedTuple):
    """A Python process: its pidfd, and the memory of its board."""

    pidfd: int
    memory: int


class ZygoteKeeper:
    """``places``: how many commands may run at once."""

    def __init__(self, clock: Clock, places: int) -> None:
        self._clock = clock
        self._places = places
        self._watched: dict[int, Watched] = {}
        self._not_before = 0.0
        self._log = structlog.get_logger("sexton.worker.execution")
        self.present: ZygoteLink | None = None

    def link(self) -> ZygoteLink:
        """The zygote, a new one if there is none. Raises OSError."""
        if self.present is None:
            self.present = ZygoteLink(self._places)
            for pid, one in self._watched.items():
                self.present.post(watch_frame(pid), one)
        return self.present

    def watch(self, pid: int, pidfd: int, memory: int) -> None:
        """Have this Python process ended if this worker cannot do it; both must stay open until ``unwatch``."""
        self._watched[pid] = Watched(pidfd, memory)
        if self.present is not None:
            self.present.post(watch_frame(pid), self._watched[pid])
        self.keep()

    def unwatch(self, pid: int) -> None:
        """This process has been ended."""
        del self._watched[pid]
        if self.present is not None:
            self.present.withdraw(watch_frame(pid))

    def keep(self) -> float | None:
        """Have a zygote if somebody is to be watched over; the seconds until this must be tried again, None: never."""
        if self.present is None and self._watched:
            now = self._clock.elapsed()
            if now < self._not_before:
                return self._not_before - now
            self._not_before = now + PAUSE_SECONDS
            try:
                self.link()
            except OSError:  # what the machine has not got now it may have later
                return PAUSE_SECONDS
        if self.present is not None:
            self.present.flush()
        return None

    def ask(self) -> None:
        """Nothing was heard lately, though it has runs: ask it to answer, and kill it if it will not.

        Counted in tries and not in seconds: a machine that slept has not been silent.
        """
        if self.present is None:
            return
        if self.present.unanswered >= MOST_UNANSWERED:
            self.present.kill()
            return
        self.present.unanswered += 1
        self.present.post(PING_FRAME)
        self.present.flush()

    def rouse(self) -> None:
        """Let it go on if it was stopped: meanwhile no command begins, ends or meets its deadline."""
        if self.present is not None and self.present.is_stopped():
            hint = "it goes on now; a command may have stopped it"
            self._log.warning("zygote.stopped", pid=self.present.pid, hint=hint)
            self.present.go_on()

    def lose(self) -> ZygoteLink:
        """Part with the present one, which has exited."""
        link, self.present = self.present, None
        assert link is not None  # noqa: S101 - only of one that is there it can be known that it exited
        return link

    def close(self, patience: float) -> None:
        """End it, once its runs have ended or so many seconds have passed."""
        if self.present is not None:
            self.lose().end(patience)
