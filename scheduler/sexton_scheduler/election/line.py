"""The line of candidates in ZooKeeper: who is first, whose a znode is, and taking one away.

Each question is bounded in time and raises what kazoo raises, a timeout included.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from sexton_scheduler.election.connection import Connection

ANSWER_WITHIN = 3.0  # seconds for all questions of one call
_IN_LINE = re.compile(r"__lock__(\d{10})$")


@dataclass(frozen=True, slots=True)
class Place:
    """A znode in the line, and the connection and session it was made in."""

    znode: str
    connection: Connection
    session_id: int


def is_first(place: Place, folder: str) -> bool:
    """Whether ZooKeeper, asked now and after a sync, has this place first, and its session as the owner."""
    client, deadline = place.connection.client, time.monotonic() + ANSWER_WITHIN
    _answer(client.sync_async(folder), deadline)
    znodes: list[str] = _answer(client.get_children_async(folder), deadline)
    stat = _answer(client.exists_async(f"{folder}/{place.znode}"), deadline)
    return first_in_line(znodes) == place.znode and _owner(stat) == place.session_id


def exists(place: Place, folder: str) -> bool:
    """Whether this place is still there, its session's own."""
    asked = place.connection.client.exists_async(f"{folder}/{place.znode}")
    return _owner(_answer(asked, time.monotonic() + ANSWER_WITHIN)) == place.session_id


def remove(place: Place, folder: str) -> bool:
    """Delete a znode of ours, and whether it is gone; else the session's end will. Raises nothing of kazoo's."""
    try:
        deleting = place.connection.client.delete_async(f"{folder}/{place.znode}")
        _answer(deleting, time.monotonic() + ANSWER_WITHIN)
    except NoNodeError:
        return True
    except (KazooException, KazooTimeoutError):
        return False
    return True


def remove_leftovers(connection: Connection, session_id: int, folder: str) -> None:
    """Delete znodes that an earlier campaign of this very session left in the line."""
    client = connection.client
    for znode in client.get_children(folder):
        if _IN_LINE.search(znode) and _owner(client.exists(f"{folder}/{znode}")) == session_id:
            remove(Place(znode, connection, session_id), folder)


def first_in_line(znodes: Sequence[str]) -> str | None:
    """The znode of the lock recipe with the lowest number; None where there is none."""
    in_line = [(found[1], znode) for znode in znodes if (found := _IN_LINE.search(znode)) is not None]
    return min(in_line)[1] if in_line else None


def _owner(stat: Any) -> int | None:
    return None if stat is None else int(stat.ephemeralOwner)


def _answer(result: Any, deadline: float) -> Any:
    return result.get(timeout=max(0.001, deadline - time.monotonic()))
