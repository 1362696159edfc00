"""``sexton up`` ends what it started."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, cast

from sexton.errors import DatabaseUnreachable
from sexton_tui.cli.up import _Running, _stop


class _Away:
    """The reads of a database that does not answer."""

    def overview(self) -> None:
        raise DatabaseUnreachable("no answer")


class _Store:
    reads = _Away()


class _Cluster:
    is_stopped = False

    def stop(self) -> tuple[str, ...]:
        self.is_stopped = True
        return ()


def test_the_processes_are_ended_in_order_although_the_database_is_away() -> None:
    cluster = _Cluster()
    running = _Running(cast(Any, _Store()), cast(Any, cluster), threading.Event(), datetime.now(UTC))
    _stop(running)
    assert cluster.is_stopped
