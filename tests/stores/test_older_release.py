"""Workers of the release before beside those of this one, on one PostgreSQL of this one's schema."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import func, select, update

from sexton.claims import Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import Grant, RunResult, StepRequest, StoreOptions
from sexton.store.tables import cluster, runs
from tests.support.claim_rows import ClaimRows, now
from tests.support.older_release import OlderGrant, OlderWorker

LEASE = timedelta(seconds=30)
JOBS, TICKS = 6, 25


@pytest.fixture
def rows(postgres_ledger: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(postgres_ledger)
    scene.guard_arrows()
    yield scene
    scene.assert_slots_are_held_rightly()
    scene.close()


@pytest.fixture
def older(postgres_ledger: str, rows: ClaimRows) -> Iterator[OlderWorker]:
    with closing(OlderWorker(postgres_ledger)) as worker:
        yield worker


def test_mixed_workers_run_every_claim_once_and_no_slot_twice(rows: ClaimRows, postgres_ledger: str) -> None:
    rows.add_slot_rows(3, 3)  # a group of three
    for _ in range(TICKS):
        for job in range(1, JOBS + 1):
            rows.add(job, overlap=int((Overlap.QUEUE, Overlap.ALLOW)[job % 2 if job != 3 else 0]))
    over = threading.Event()
    faults: list[BaseException] = []

    def guarded(work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            faults.append(error)
            raise
        finally:
            if faults:
                over.set()

    def as_older(number: int) -> None:
        with closing(OlderWorker(postgres_ledger, f"older-{number}")) as worker:
            held: list[OlderGrant] = []
            while not over.is_set() or held:
                ended = [(grant, State.SUCCEEDED) for grant in held]
                held = worker.step(ended, 0 if over.is_set() else 4, LEASE)
                worker.renew([grant.token for grant in held], LEASE)
                worker.sweep()

    def as_now(number: int) -> None:
        with closing(open_store(StoreOptions(postgres_ledger))) as store:
            worker = store.grants.register(f"now-{number}", "vm", "0.2.0", 1, ["default"], 4)
            held: tuple[Grant, ...] = ()
            while not over.is_set() or held:
                ended = tuple(result(grant) for grant in held)
                room = 0 if over.is_set() else 4
                held = store.grants.step(StepRequest(worker, ("default",), room, LEASE, 10, ended)).grants
                store.grants.requeue_expired()

    work = [(as_older, 1), (as_older, 2), (as_now, 1), (as_now, 2)]
    threads = [threading.Thread(target=guarded, args=one) for one in work]
    for thread in threads:
        thread.start()
    while not over.is_set() and rows.states() != {State.SUCCEEDED: JOBS * TICKS}:
        over.wait(0.1)
    over.set()
    for thread in threads:
        thread.join()
    assert not faults
    assert rows.states() == {State.SUCCEEDED: JOBS * TICKS}
    with rows.engine.begin() as connection:
        by_claim = select(func.count()).select_from(runs).group_by(runs.c.job_id, runs.c.scheduled_at)
        assert set(connection.execute(by_claim).scalars()) == {1}
        workers = connection.execute(select(runs.c.worker_id).distinct()).scalars().all()
    assert len(workers) > 1


def test_what_an_older_worker_left_is_taken_over_and_the_other_way_round(
    rows: ClaimRows, older: OlderWorker, postgres_ledger: str
) -> None:
    at = rows.add()
    with closing(open_store(StoreOptions(postgres_ledger))) as store:
        (grant,) = older.step([], 4, LEASE)
        rows.expire_leases([grant.token])
        (requeued,) = store.grants.requeue_expired()
        assert requeued.token == grant.token
        assert older.renew([grant.token], LEASE) == ([], [])
        (again,) = store.grants.step(StepRequest(9, ("default",), 4, LEASE, 10)).grants
        rows.expire_leases([again.token])
        assert older.requeue() == 1
        (third,) = older.step([], 4, LEASE)
        assert (third.scheduled_at, third.attempt) == (at, 3)
        older.step([(grant, State.FAILED)], 0, LEASE)  # its first token: refused
        assert rows.state(1, at) == State.RUNNING
        older.step([(third, State.SUCCEEDED)], 0, LEASE)
    assert rows.state(1, at) == State.SUCCEEDED


def test_an_older_worker_is_told_by_its_renewal_that_a_run_is_cancelled(
    rows: ClaimRows, older: OlderWorker, postgres_ledger: str
) -> None:
    at = rows.add()
    (grant,) = older.step([], 4, LEASE)
    rows.change(1, at, cancel_requested=True)
    assert older.renew([grant.token], LEASE) == ([grant.token], [grant.token])
    older.step([(grant, State.CANCELLED)], 0, LEASE)
    assert rows.state(1, at) == State.CANCELLED


def test_an_older_worker_that_comes_where_jobs_are_younger_pulls_nothing(rows: ClaimRows, postgres_ledger: str) -> None:
    with rows.engine.begin() as connection:
        connection.execute(update(cluster).values(job_format=2))
    rows.add(origin=int(Origin.MANUAL))
    with pytest.raises(psycopg.errors.RaiseException, match=r"need a younger Sexton \(format 2\) than 0.1.0"):
        OlderWorker(postgres_ledger)


def result(grant: Grant) -> RunResult:
    return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
