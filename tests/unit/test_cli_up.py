"""``sexton up`` ends what it started."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

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


class _Restarted:
    """The reads of a database that was restarted: the first call finds its connection dead."""

    is_found_dead = False

    def overview(self) -> Any:
        if not self.is_found_dead:
            self.is_found_dead = True
            raise DatabaseUnreachable("terminating connection due to administrator command")
        return SimpleNamespace(running=2)


def test_a_database_that_was_restarted_is_asked_again_for_what_still_runs(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = _Cluster()
    store = SimpleNamespace(reads=_Restarted())
    _stop(_Running(cast(Any, store), cast(Any, cluster), threading.Event(), datetime.now(UTC)))
    assert cluster.is_stopped
    assert "stopping; 2 runs still going" in capsys.readouterr().err
