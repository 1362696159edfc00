"""Commits that meet takeovers, edits and each other on real concurrent connections."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta

import psycopg
import pytest

from sexton.decisions import CommitResult
from sexton.store import open_store
from sexton.store.postgres.edit_writes import CHANGES_LOCK, NUMBER
from sexton.store.postgres.tick_commit import COMMIT, commit_values
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.terms import ElectedBy
from tests.support.leader_scene import SECOND, batch, create, definition, lead, read, rows, ticks_after
from tests.support.waiting import eventually

RACERS = 8
RACED_JOBS = 12
RACED_TICKS = 40


@pytest.fixture
def postgres_store(postgres_ledger: str) -> Iterator[Store]:
    store = open_store(StoreOptions(postgres_ledger, application="sexton waiting"))
    yield store
    store.close()


@pytest.fixture
def other(postgres_ledger: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with contextlib.closing(psycopg.connect(postgres_ledger.replace("+psycopg", ""))) as connection:
        yield connection


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def wait_for_lock(url: str) -> None:
    """Return once the store under test waits for a lock."""
    with contextlib.closing(psycopg.connect(url.replace("+psycopg", ""), autocommit=True)) as watching:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND application_name = 'sexton waiting' AND datname = current_database()"
        )

        def is_waiting() -> bool:
            return bool((watching.execute(query).fetchone() or (0,))[0])

        eventually(is_waiting, within=60, what="the store waits for a lock")


def in_another_thread(
    aside: ThreadPoolExecutor, url: str, work: Callable[[Store], CommitResult]
) -> Future[CommitResult]:
    def run() -> CommitResult:
        with contextlib.closing(open_store(StoreOptions(url, application="sexton waiting"))) as store:
            return work(store)

    return aside.submit(run)


def test_a_stale_term_that_waited_for_the_takeover_writes_nothing(
    postgres_store: Store,
    postgres_ledger: str,
    other: psycopg.Connection[tuple[object, ...]],
    aside: ThreadPoolExecutor,
) -> None:
    """Invariant 3, at its narrowest: the statement had begun before the term was raised."""
    term = lead(postgres_store)
    (job,) = create(postgres_store, definition("a"))
    late = batch(postgres_store, term, [(job, ticks_after(job, 3))])
    other.execute("UPDATE cluster SET term = term + 1, leader = 'n2'")
    waiting = in_another_thread(aside, postgres_ledger, lambda store: store.ticks.commit(late))
    wait_for_lock(postgres_ledger)
    other.commit()
    result = waiting.result(60)
    assert (result.is_current, result.moved, result.not_moved) == (False, 0, (job.job_id,))
    assert rows(postgres_ledger, "claims") == []
    assert read(postgres_store, job.job_id) == job


def test_a_plan_grown_old_while_it_waited_writes_nothing(
    postgres_store: Store,
    postgres_ledger: str,
    other: psycopg.Connection[tuple[object, ...]],
    aside: ThreadPoolExecutor,
) -> None:
    term = lead(postgres_store)
    (job,) = create(postgres_store, definition("a"))
    other.execute("SELECT * FROM cluster FOR UPDATE")
    planned_at = postgres_store.now() + SECOND  # time enough to begin to wait, on any machine
    old = batch(postgres_store, term, [(job, ticks_after(job, 3))], planned_at=planned_at)
    waiting = in_another_thread(aside, postgres_ledger, lambda store: store.ticks.commit(old))
    wait_for_lock(postgres_ledger)
    assert postgres_store.now() < planned_at + 5 * SECOND  # it was fresh when it began to wait
    eventually(lambda: postgres_store.now() > planned_at + 5 * SECOND, within=60, what="the plan is old")
    other.commit()
    result = waiting.result(60)
    assert (result.is_current, result.is_fresh, result.moved) == (True, False, 0)
    assert rows(postgres_ledger, "claims") == []


def test_a_takeover_waits_for_a_commit_in_flight_and_keeps_it(
    postgres_store: Store,
    postgres_ledger: str,
    other: psycopg.Connection[tuple[object, ...]],
    aside: ThreadPoolExecutor,
) -> None:
    term = lead(postgres_store)
    (job,) = create(postgres_store, definition("a"))
    flying = batch(postgres_store, term, [(job, ticks_after(job, 3))])
    other.execute(COMMIT.encode(), commit_values(flying))

    def take() -> None:
        with contextlib.closing(open_store(StoreOptions(postgres_ledger, application="sexton waiting"))) as store:
            assert store.terms.take(term, "n2", ElectedBy.DATABASE) is not None

    waiting = aside.submit(take)
    wait_for_lock(postgres_ledger)
    other.commit()
    waiting.result(60)
    assert len(rows(postgres_ledger, "claims")) == 3
    assert not postgres_store.ticks.commit(flying).is_current


def test_a_commit_passes_by_a_job_that_is_being_edited(
    postgres_store: Store, postgres_ledger: str, other: psycopg.Connection[tuple[object, ...]]
) -> None:
    term = lead(postgres_store)
    edited, free = create(postgres_store, definition("a"), definition("b"))
    other.execute("SELECT * FROM cursors WHERE job_id = %s FOR UPDATE", [edited.job_id])
    ticks = ticks_after(free, 2)
    result = postgres_store.ticks.commit(batch(postgres_store, term, [(edited, ticks), (free, ticks)]))
    assert (result.moved, result.not_moved) == (1, (edited.job_id,))
    other.rollback()
    assert {row.job_id for row in rows(postgres_ledger, "claims")} == {free.job_id}


def test_numbers_of_changes_become_visible_in_their_order(
    postgres_store: Store,
    postgres_ledger: str,
    other: psycopg.Connection[tuple[object, ...]],
    aside: ThreadPoolExecutor,
) -> None:
    """Else a follower that has read number 6 would never look at number 5."""
    first, second = create(postgres_store, definition("a"), definition("b"))
    mark = postgres_store.ticks.load_jobs().mark
    other.execute(NUMBER.encode(), {"lock": CHANGES_LOCK, "job_ids": [first.job_id]})

    def pause() -> None:
        with contextlib.closing(open_store(StoreOptions(postgres_ledger, application="sexton waiting"))) as store:
            store.edits.edit([JobChange(ChangeKind.PAUSE, second.job_id)], "alice")

    waiting = aside.submit(pause)
    wait_for_lock(postgres_ledger)
    assert postgres_store.ticks.load_jobs(mark).jobs == ()
    other.commit()
    waiting.result(30)
    assert [job.job_id for job in postgres_store.ticks.load_jobs(mark).jobs] == [first.job_id, second.job_id]


def test_eight_racers_over_the_same_ticks_produce_each_exactly_once(store: Store, ledger_url: str) -> None:
    """Invariants 2 and 6: losing is normal, and nothing is swallowed."""
    store.edits.set_setting("strategy", "race", "test")
    term = store.terms.cluster().term
    jobs = create(store, *(definition(f"job {number}") for number in range(RACED_JOBS)))
    ends = {job.job_id: ticks_after(job, RACED_TICKS)[-1] for job in jobs}
    counts: Counter[str] = Counter()
    start = threading.Barrier(RACERS)

    def race(racer: Store) -> None:
        start.wait()
        while True:
            known = [job for job in racer.ticks.load_jobs().jobs if job.at < ends[job.job_id]]
            if not known:
                return
            ahead = [(job, next_ticks(job.at, ends[job.job_id])) for job in known]
            result = racer.ticks.commit(batch(racer, term, ahead))
            counts["won"] += result.moved
            counts["lost"] += len(result.not_moved)
            counts["swallowed"] += result.swallowed
            assert result.is_current

    def race_with_own_store() -> None:
        with contextlib.closing(open_store(StoreOptions(ledger_url, answer_within=60.0))) as racer:
            race(racer)

    with ThreadPoolExecutor(RACERS) as pool:
        for one in [pool.submit(race_with_own_store) for _ in range(RACERS)]:
            one.result()
    written = Counter((row.job_id, row.scheduled_at) for row in rows(ledger_url, "claims"))
    assert written == Counter((job.job_id, at) for job in jobs for at in ticks_after(job, RACED_TICKS))
    assert counts["swallowed"] == 0
    assert counts["lost"] > 0  # else it was no race


def next_ticks(after: datetime, end: datetime) -> list[datetime]:
    """At most two of the ticks on whole seconds in (after, end]."""
    first = after.replace(microsecond=0) + SECOND
    return [at for at in (first, first + timedelta(seconds=1)) if at <= end]
