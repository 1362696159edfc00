"""Troubles with ZooKeeper, said once an outage, and shown as long as they last."""

from __future__ import annotations

import threading
from typing import Any

from sexton_scheduler.election.troubles import Trouble

# What connecting does not mend: the server lets anybody connect, and says no later.
_SEEN_LATER = ("login", "permission", "acl", "answer", "replaced")


class TroubleLog:
    """Noted from any thread, kazoo's too, for which nothing here waits; said by whoever calls ``say``."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._lock = threading.Lock()  # held for moments
        self._now: Trouble | None = None
        self._noted: set[str] = set()  # kinds, in this outage
        self._unsaid: list[tuple[str, str, str]] = []  # level, event, reason

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
            level = "error" if trouble.needs_operator else "warning"
            self._add(trouble.kind, (level, "zookeeper.trouble", trouble.sentence))

    def replaced(self, reason: str) -> None:
        """A client had to make way for a fresh one; said once an outage."""
        with self._lock:
            self._add("replaced", ("warning", "zookeeper.client_replaced", reason))

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
        for level, event, reason in unsaid:
            getattr(self._log, level)(event, **({"reason": reason} if reason else {}))

    def _add(self, kind: str, said: tuple[str, str, str]) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            self._unsaid.append(said)

    def _mend(self, keep: tuple[str, ...]) -> None:
        with self._lock:
            if self._noted and not self._noted.intersection(keep):
                self._unsaid.append(("info", "zookeeper.reached", ""))
            self._noted.intersection_update(keep)
            if self._now is not None and self._now.kind not in keep:
                self._now = None
