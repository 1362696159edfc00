"""``sexton up`` ends what it started."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sexton.errors import DatabaseUnreachable
from sexton.jobfiles.load import load_job_text
from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from sexton_tui.cli.up import _apply, _report, _Running, _stop
from tests.support.ledgers import make_ledger


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


def test_a_queue_that_no_worker_serves_is_told_at_the_start_and_in_each_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_ledger(url := f"sqlite:///{tmp_path}/ledger.db")
    jobs = "version: 1\njobs:\n"
    for name, queue in (("a", "app01"), ("b", "app01"), ("c", "default")):
        jobs += f"  {name}: {{schedule: '0 5 * * *', shell: 'true', queue: {queue}}}\n"
    with closing(open_store(StoreOptions(url))) as store:
        running = _Running(store, cast(Any, _Cluster()), threading.Event(), datetime.now(UTC))
        worker = store.grants.register("worker-1", "vm", "0.1.0", 1, ["default"], 4)
        _apply(store, load_job_text(jobs), tmp_path)
        told = capsys.readouterr().err
        assert "no worker serves queue app01: the claims of 2 jobs wait; to serve it: sexton worker" in told
        assert "queue default" not in told
        store.edits.trigger(store.edits.find_job("a").job_id, "ana")
        store.edits.trigger(store.edits.find_job("c").job_id, "ana")
        _report(running)
        assert capsys.readouterr().out.endswith("failed 0; no worker serves queue app01: 1 claim due\n")
        store.grants.unregister(worker)
        _report(running)
        assert capsys.readouterr().out.endswith("; no worker serves queues app01, default: 2 claims due\n")
