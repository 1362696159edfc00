"""A leader or an apply stopped (SIGSTOP) after any of its statements stops nobody else (invariants 1 and 7).

Each statement has a database and a real process of its own, stopped right after the statement was sent. While it stays
stopped, the others must go on within the time limits of docs/architecture.md; made to go on, it must find out.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.terms import ElectedBy
from tests.support import reaper
from tests.support.leader_scene import SECOND, batch, create, definition, lead
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
# 1 s for locks, 2 s for an idle transaction, a look every second, and a loaded machine.
SOON = 90.0


@dataclass(slots=True)
class StoppedProcess:
    """One process, stopped after its n-th statement in a database of its own."""

    statement: int
    pid: int
    url: str
    store: Store

    def is_stopped(self) -> bool:
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"


class StoppedProcesses:
    """Starts one process per database and tells which stopped and how they ended."""

    def __init__(self, action: str, urls: list[str]) -> None:
        self._urls = urls
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stopping", action, *urls],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            start_new_session=True,
        )
        reaper.watch("process", self._process.pid)

    def lines(self, count: int) -> list[dict[str, Any]]:
        """The next messages; each process sends one when it stops or ends."""
        assert self._process.stdout is not None
        return [json.loads(self._process.stdout.readline()) for _ in range(count)]

    def stopped(self) -> list[StoppedProcess]:
        """Those that stopped; the others have fewer statements, and have ended."""
        found = []
        for message in self.lines(len(self._urls)):
            if message["event"] == "stops":
                url = self._urls[message["statement"] - 1]
                options = StoreOptions(url, application="sexton scheduler")
                one = StoppedProcess(message["statement"], message["pid"], url, open_store(options))
                eventually(one.is_stopped, within=SOON, what="the process stops")
                found.append(one)
        return sorted(found, key=lambda one: one.statement)

    def go_on(self, processes: list[StoppedProcess]) -> dict[int, str]:
        """How each ended, by its statement, after SIGCONT."""
        for one in processes:
            os.kill(one.pid, signal.SIGCONT)
        return {message["statement"]: message["outcome"] for message in self.lines(len(processes))}

    def close(self) -> None:
        reaper.kill_tree(self._process.pid)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        reaper.forget("process", self._process.pid)


@contextlib.contextmanager
def stopped_after_each_statement(
    server: PostgresServer, template: str, action: str, statements: int
) -> Iterator[tuple[StoppedProcesses, list[StoppedProcess]]]:
    urls = [server.create_database(template=template) for _ in range(statements)]
    for url in urls:
        with contextlib.closing(open_store(StoreOptions(url))) as store:
            lead(store)
            create(store, definition("a"), definition("b"), definition("c"))
    processes = StoppedProcesses(action, urls)
    stopped: list[StoppedProcess] = []
    try:
        stopped = processes.stopped()
        yield processes, stopped
    finally:
        processes.close()
        for one in stopped:
            one.store.close()
        for url in urls:
            server.drop_database(url)


def at_once(check: Callable[[StoppedProcess], None], stopped: list[StoppedProcess]) -> None:
    """Check all of them at the same time: what they wait for, they wait for together."""
    failures: list[tuple[int, BaseException]] = []

    def run(one: StoppedProcess) -> None:
        try:
            check(one)
        except BaseException as error:
            failures.append((one.statement, error))

    threads = [threading.Thread(target=run, args=[one]) for one in stopped]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        statement, error = failures[0]
        raise AssertionError(f"{len(failures)} failed, the first after statement {statement}") from error


def commit_all(one: StoppedProcess, term: int) -> int:
    """Decide the next tick of every job; how many jobs moved."""
    jobs = one.store.ticks.load_jobs().jobs
    return one.store.ticks.commit(batch(one.store, term, [(job, [job.at + SECOND]) for job in jobs])).moved


def others_go_on(one: StoppedProcess) -> None:
    """The leader commits, another takes over, every job moves again and can be edited."""
    store = one.store
    term = store.terms.cluster().term
    began = time.monotonic()
    if one.store.terms.cluster().leader != "stopped":
        assert commit_all(one, term) >= 1  # the job that nobody edits is not kept waiting
    taken = store.terms.take(term, "successor", ElectedBy.DATABASE)
    assert taken is not None

    def every_job_moves() -> bool:
        store.terms.terminate_stuck()
        return commit_all(one, taken.term) == 3

    eventually(every_job_moves, within=SOON, what="all jobs are decided again")
    jobs = store.edits.current_jobs()
    done = store.edits.edit([JobChange(ChangeKind.RESUME, job.job_id) for job in jobs], "bob")
    assert len(done) == 3
    assert time.monotonic() - began < SOON
    assert one.is_stopped()


@pytest.mark.timeout(240)
def test_an_apply_stopped_after_any_statement_stops_nobody(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with stopped_after_each_statement(postgres_server, migrated_template, "apply", 24) as (processes, stopped):
        assert 12 <= len(stopped) < 24  # all of them, the last included
        at_once(others_go_on, stopped)
        outcomes = processes.go_on(stopped)
    # Only what ended before a lock was taken, or was the COMMIT itself, is done; the rest was rolled back and says so.
    assert set(outcomes.values()) == {"edited", "DatabaseUnreachable"}
    assert list(outcomes.values()).count("DatabaseUnreachable") >= 8


@pytest.mark.timeout(240)
def test_a_leader_stopped_after_any_statement_stops_nobody_and_is_stale_when_it_goes_on(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    """Invariant 3."""
    with stopped_after_each_statement(postgres_server, migrated_template, "leader", 20) as (processes, stopped):
        assert 8 <= len(stopped) < 20
        at_once(others_go_on, stopped)
        outcomes = processes.go_on(stopped)
    last = max(outcomes)  # its last commit had been carried out when it stopped
    assert {outcome for statement, outcome in outcomes.items() if statement != last} <= {"is stale", "lost the term"}
    assert outcomes[last] == "is current"
