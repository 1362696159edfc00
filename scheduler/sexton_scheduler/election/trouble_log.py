"""Troubles with ZooKeeper, said once an outage, and shown as long as they last."""

from __future__ import annotations

import threading
from typing import Any

from sexton_scheduler.election.troubles import Trouble

# What connecting does not mend: the server lets anybody connect, and says no later.
_SEEN_LATER = ("login", "permission", "acl", "answer")


class TroubleLog:
    """Noted from any thread, kazoo's too, for which nothing here waits; said by whoever calls ``say``."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._lock = threading.Lock()  # held for moments
        self._now: Trouble | None = None
        self._noted: set[str] = set()  # kinds, in this outage
        self._unsaid: list[Trouble | None] = []  # None: reached

    @property
    def now(self) -> Trouble | None:
        """What keeps this node from ZooKeeper now, as far as it is known."""
        return self._now

    def note(self, trouble: Trouble | None) -> None:
        """Show it from now on, and have it said if its kind was not in this outage. None is no trouble."""
        if trouble is None:
            return
        with self._lock:
            self._now = trouble
            if trouble.kind not in self._noted:
                self._noted.add(trouble.kind)
                self._unsaid.append(trouble)

    def connected(self) -> None:
        """A server gave a session."""
        self._mend(keep=_SEEN_LATER)

    def admitted(self) -> None:
        """ZooKeeper let this node do what it must."""
        self._mend(keep=())

    def say(self) -> None:
        """Log what was noted since the last time."""
        with self._lock:
            unsaid, self._unsaid = self._unsaid, []
        for one in unsaid:
            if one is None:
                self._log.info("zookeeper.reached")
            else:
                (self._log.error if one.needs_operator else self._log.warning)("zookeeper.trouble", reason=one.sentence)

    def _mend(self, keep: tuple[str, ...]) -> None:
        with self._lock:
            if self._noted and not self._noted.intersection(keep):
                self._unsaid.append(None)
            self._noted.intersection_update(keep)
            if self._now is not None and self._now.kind not in keep:
                self._now = None
