"""A worker stopped (SIGSTOP) behind any statement of its step stops nobody: the others go on while it stays stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import RunResult, StepRequest, StoreOptions
from tests.support import reaper
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
LEASE = timedelta(seconds=30)
LIMIT_SECONDS = 120
# BEGIN, complete, promote, pull, look ahead, COMMIT; then BEGIN, gate, paced pull, COMMIT.
STATEMENTS = 10
QUEUES = tuple(f"queue-{statements}" for statements in range(1, STATEMENTS + 1))  # one for each child


class Child:
    """One stopping worker; killed at the end whatever became of it."""

    def __init__(self, url: str, statements: int) -> None:
        self.statements = statements
        command = [sys.executable, "-m", "tests.support.stopping_worker", url, str(statements)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        reaper.watch("process", self._process.pid)

    def has_stopped(self) -> bool:
        """Whether it stands still; a child that ended instead fails the test."""
        assert self._process.poll() is None, f"stopped nowhere: it has no statement {self.statements}"
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def go_on(self) -> str:
        """Continue it; what it printed in the end."""
        os.kill(self._process.pid, signal.SIGCONT)
        said, _ = self._process.communicate(timeout=LIMIT_SECONDS)
        assert self._process.returncode == 0
        return said.strip()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        reaper.forget("process", self._process.pid)


class Housekeeper:
    """What any node does for the others: ends stuck backends, requeues lost claims, sweeps."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.terminated = 0

    def __enter__(self) -> Housekeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        store = open_store(StoreOptions(self._url))
        while not self._over.wait(0.2):
            self.terminated += store.terms.terminate_stuck()
            store.grants.requeue_expired(poison_after=100)
            store.grants.sweep()
        store.close()


@pytest.fixture
def rows(postgres_ledger: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(postgres_ledger)
    scene.guard_arrows()
    yield scene
    scene.close()


LIVE = {"overlap": int(Overlap.QUEUE)}
PACED = {"overlap": int(Overlap.ALLOW), "origin": int(Origin.CATCH_UP)}


def test_workers_go_on_while_one_is_stopped_behind_each_statement(postgres_ledger: str, rows: ClaimRows) -> None:
    stops = range(1, STATEMENTS + 1)
    keys = [(10 * stop + job, START + number * MINUTE) for stop in stops for job in range(5) for number in range(4)]
    rows.add_many(
        claim_values(job, at, queue=f"queue-{job // 10}", **(PACED if job % 10 == 4 else LIVE)) for job, at in keys
    )
    children: list[Child] = []
    try:
        with Housekeeper(postgres_ledger) as housekeeper:
            for statements in stops:
                # So that this child gets as far: one that finds the gate locked does without the paced pull.
                eventually(lambda: is_gate_free(rows), within=LIMIT_SECONDS, what="the gate of the paced class is free")
                children.append(Child(postgres_ledger, statements))
                eventually(children[-1].has_stopped, within=LIMIT_SECONDS, what=f"stopped behind {statements}")
            drain(postgres_ledger, rows)
            assert all(child.has_stopped() for child in children), "the others went on while they stayed stopped"
            assert housekeeper.terminated > 0
        assert rows.states() == {State.SUCCEEDED: len(keys)}
        rows.assert_slots_are_held_rightly()
        for child in children:
            said = child.go_on()
            assert said == "unreachable" or said.startswith("accepted"), said
        assert rows.states() == {State.SUCCEEDED: len(keys)}, "who was stopped changed nothing (invariant 4)"
        for key in keys:
            assert [run.outcome for run in rows.runs(*key)].count(State.SUCCEEDED) == 1
    finally:
        for child in children:
            child.end()


def is_gate_free(rows: ClaimRows) -> bool:
    """Whether nobody holds an advisory lock in this database."""
    held = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
     WHERE locktype = 'advisory' AND d.datname = current_database()"""
    with rows.engine.begin() as connection:
        return connection.exec_driver_sql(held).scalar() == 0


def drain(url: str, rows: ClaimRows) -> None:
    """A worker that runs everything there is, whatever the stopped ones hold."""
    store = open_store(StoreOptions(url))
    results: tuple[RunResult, ...] = ()

    def is_drained() -> bool:
        nonlocal results
        step = store.grants.step(StepRequest(1, QUEUES, 50, LEASE, 100, results))
        results = tuple(
            RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
            for grant in step.grants
        )
        return set(rows.states()) == {State.SUCCEEDED}

    eventually(is_drained, within=LIMIT_SECONDS, what="every claim is run")
    store.close()
