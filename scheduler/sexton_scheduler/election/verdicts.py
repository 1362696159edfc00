"""What answers of ZooKeeper mean for a candidate; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from sexton_scheduler.election.probe import ServerAnswer

UNSERVED_LEAST = timedelta(seconds=10)


class Client(Protocol):
    """What is asked of a connection. ``lost_at``: monotonic seconds; None while it is connected."""

    @property
    def has_ended(self) -> bool: ...
    @property
    def lost_at(self) -> float | None: ...
    @property
    def last_seen(self) -> int: ...
    @property
    def session_wanted(self) -> timedelta: ...


def hopeless(client: Client, answers: Sequence[ServerAnswer], now: float) -> str | None:
    """Why this client should make way for a fresh one; None where waiting may help. ``now``: monotonic seconds."""
    if client.has_ended:
        return "the client has ended"
    lost_at = client.lost_at
    serving = [answer for answer in answers if answer.server.serves]
    if lost_at is None or not serving:
        return None
    if all(answer.zxid is not None and answer.zxid < client.last_seen for answer in serving):
        return "ZooKeeper holds an older state than this client has seen, and would refuse it for ever"
    patience = max(UNSERVED_LEAST, 2 * client.session_wanted).total_seconds()
    return f"not served for {patience:g} s by servers that serve" if now - lost_at > patience else None
