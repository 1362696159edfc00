"""A ledger that is found elsewhere than where it was: its numbers jump, and nothing is decided or granted before.

Copies of a database stand for what a restored backup is: another database with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from sexton.claims import OnWorkerLost, Overlap, State
from sexton.errors import DatabaseUnreachable
from sexton.job_rules import FiringRules
from sexton.store import open_store
from sexton.store.postgres.places import JUMP
from sexton.store.protocol import RunResult, StepRequest, Store, StoreOptions
from sexton.terms import Confirmation, ElectedBy
from tests.support.leader_scene import batch, claim, create, definition, lead, read, rows, set_columns, ticks_after
from tests.support.postgres import PostgresServer

LEASE = timedelta(seconds=30)


@pytest.fixture
def store(postgres_ledger: str) -> Iterator[Store]:
    with closing(open_store(StoreOptions(postgres_ledger))) as opened:
        yield opened


def restore(server: PostgresServer, store: Store, url: str) -> str:
    """A copy of the ledger under another name; the old one is left."""
    store.close()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        name = url.rpartition("/")[2]
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    return server.create_database(template=url.rpartition("/")[2])


def pull(worker: int) -> StepRequest:
    return StepRequest(worker, ("default",), 10, LEASE, 10)


def test_a_restored_ledger_refuses_its_leader_and_its_workers_until_it_is_settled(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    """Invariants 3 and 4: by conditions in the statements; the old numbers are never given again."""
    store.terms.enroll("database:", "2026b/1/0.109", "2026b", 1)
    assert store.terms.cluster().place  # recorded when a node starts, whoever leads or races
    term = lead(store)
    (job,) = create(store, definition("a"))
    worker = store.grants.register("w", "vm", "0.1.0", 1, ["default"], 4)
    assert not store.terms.cluster().is_displaced
    url = restore(postgres_server, store, postgres_ledger)
    with closing(open_store(StoreOptions(url))) as moved:
        state = moved.terms.cluster()
        assert state.is_displaced
        result = moved.ticks.commit(batch(moved, term, [(job, ticks_after(job, 2))]))
        assert (result.is_current, result.moved) == (False, 0)
        assert moved.ticks.reserve_budget(term, 1, 50.0) is None
        assert not moved.terms.beat(term, Confirmation.CONFIRMED)
        assert moved.terms.take(term, "n2", ElectedBy.DATABASE) is None
        with pytest.raises(DatabaseUnreachable, match="have not jumped yet"):
            moved.grants.step(pull(worker))
        settled = moved.restores.settle("n2")
        assert settled is not None
        assert (settled.term >= term + JUMP, settled.token >= JUMP) == (True, True)
        assert moved.restores.settle("n3") is None
        assert not moved.terms.cluster().is_displaced
        assert not moved.ticks.commit(batch(moved, term, [(job, ticks_after(job, 2))])).is_current
        newer = lead(moved, "n2")
        assert newer == settled.term + 1
        assert moved.ticks.commit(batch(moved, newer, [(read(moved, job.job_id), ticks_after(job, 2))])).moved == 1
        set_columns(url, "claims", {}, available_at=moved.now(), start_by=None)
        grants = moved.grants.step(pull(worker)).grants
        assert {grant.token > JUMP for grant in grants} == {True}
        assert [row.action for row in rows(url, "events")].count("ledger.moved") == 1


def test_the_older_a_backup_the_further_its_numbers_jump(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    """Invariants 3 and 4: restored twice, it gives no number again that it gave when it was restored first."""
    term = lead(store)
    set_columns(postgres_ledger, "heartbeat", {"id": 1}, at=store.now() - timedelta(days=1))
    url = restore(postgres_server, store, postgres_ledger)
    with closing(open_store(StoreOptions(url))) as moved:
        settled = moved.restores.settle("n2")
        assert settled is not None
        assert settled.term >= term + JUMP + 86_400
        assert settled.token >= JUMP + 86_400 * 100_000
        assert moved.terms.cluster().term == settled.term


def test_what_may_have_run_of_a_job_that_must_not_run_twice_is_held(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    term = lead(store)
    once = FiringRules(on_worker_lost=OnWorkerLost.FAIL)
    pay, sync = create(store, definition("pay", on_worker_lost=OnWorkerLost.FAIL), definition("sync"))
    now = store.now()
    for job, firing in ((pay, once), (sync, FiringRules())):
        ticks = ticks_after(job, 4)
        claims = tuple(
            claim(job, tick, firing=firing, available_at=now if number < 3 else now + timedelta(hours=1), start_by=None)
            for number, tick in enumerate(ticks)
        )
        assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    first, parked, due, ahead = ticks_after(pay, 4)
    set_columns(postgres_ledger, "claims", {"job_id": pay.job_id, "scheduled_at": parked}, state=State.PARKED)
    worker = store.grants.register("w", "vm", "0.1.0", 1, ["default"], 4)
    set_columns(
        postgres_ledger,
        "claims",
        {"job_id": pay.job_id, "scheduled_at": first},
        state=State.RUNNING,
        token=7,
        worker_id=worker,
        granted_at=now,
        lease_expires_at=now + LEASE,
        attempt=1,
    )
    url = restore(postgres_server, store, postgres_ledger)
    with closing(open_store(StoreOptions(url))) as moved:
        settled = moved.restores.settle("n2")
        assert settled is not None
        assert settled.held == (("pay", 2),)
        states = {row.scheduled_at: State(row.state) for row in rows(url, "claims", job_id=pay.job_id)}
        assert states == {first: State.RUNNING, parked: State.HELD, due: State.HELD, ahead: State.READY}
        assert {row.state for row in rows(url, "claims", job_id=sync.job_id)} == {State.READY}
        (proposal,) = rows(url, "proposals")
        assert (proposal.job_id, proposal._mapping["count"], proposal.state) == (pay.job_id, 2, "open")
        assert "may have run" in proposal.reason
        (told,) = [row for row in rows(url, "events") if row.action == "claims.held"]
        assert due.strftime("%H:%M:%S") in told.detail
        # The run that was granted may have begun where the ledger was: its worker may say how it ended, and if it
        # does not, its lease ends it as lost, never as ready. Nor is it given back by a worker that forgot it.
        assert moved.grants.orphans(worker, []) == ()
        set_columns(url, "claims", {"token": 7}, lease_expires_at=now)
        requeued = moved.grants.requeue_expired()
        assert [(one.scheduled_at, one.state) for one in requeued] == [(first, State.LOST)]


def test_a_result_counts_where_its_grant_came_along(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    """Invariant 4: a token that the restored ledger does not know writes nothing, whatever was granted since."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 2)
    free = FiringRules(overlap=Overlap.ALLOW)
    claims = tuple(claim(job, tick, firing=free, available_at=store.now(), start_by=None) for tick in ticks)
    assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    worker = store.grants.register("w", "vm", "0.1.0", 1, ["default"], 4)
    (kept,) = store.grants.step(StepRequest(worker, ("default",), 1, LEASE, 10)).grants
    url = restore(postgres_server, store, postgres_ledger)
    (lost,) = store.grants.step(StepRequest(worker, ("default",), 1, LEASE, 10)).grants  # where the ledger was
    store.close()
    with closing(open_store(StoreOptions(url))) as moved:
        assert moved.restores.settle("n1") is not None
        (again,) = moved.grants.step(StepRequest(worker, ("default",), 1, LEASE, 10)).grants
        assert (again.scheduled_at, again.token > lost.token + 1000) == (lost.scheduled_at, True)
        results = tuple(
            RunResult(one.job_id, one.scheduled_at, one.token, one.attempt, State.SUCCEEDED, moved.now())
            for one in (kept, lost)
        )
        accepted = moved.grants.step(StepRequest(worker, ("default",), 0, LEASE, 10, results)).accepted
        assert accepted == {kept.token}


def test_a_worker_that_goes_on_after_a_restore_and_one_that_starts_are_two(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    """Invariant 4: with one id, each would give back what the other runs."""
    lead(store)
    register = ("w", "vm", "0.1.0", 1, ["default"], 4)
    url = restore(postgres_server, store, postgres_ledger)
    goes_on = store.grants.register(*register)  # where the ledger was: the backup lacks it
    with closing(open_store(StoreOptions(url))) as moved:
        settled = moved.restores.settle("n1")
        assert settled is not None
        starts = moved.grants.register(*register)
        assert moved.grants.register(*register, again=goes_on) == goes_on
        assert {row.worker_id for row in rows(url, "workers")} == {goes_on, starts}
        assert min(goes_on, starts) > 2**52  # beyond what a release that counts them gives
    with psycopg.connect(url.replace("postgresql+psycopg:", "postgresql:")) as connection:
        counted = "INSERT INTO workers (name, address, version, pid, queues, slots, started_at, seen_at)"
        counted += " VALUES ('w', '', '', 1, '[]', 1, now(), now()) RETURNING worker_id > %s"
        assert connection.execute(counted, [JUMP]).fetchone() == (True,)


def test_due_claims_of_all_jobs_are_held_where_they_are_more_than_the_limit(
    postgres_server: PostgresServer, store: Store, postgres_ledger: str
) -> None:
    """A backup of the hour when many claims were written must not fire them all."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 3)
    claims = tuple(claim(job, tick, available_at=store.now(), start_by=None) for tick in ticks)
    assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    store.edits.set_setting("catch_up.hold_above", "2", "ops")
    url = restore(postgres_server, store, postgres_ledger)
    with closing(open_store(StoreOptions(url))) as moved:
        settled = moved.restores.settle("n1")
        assert settled is not None
        assert settled.held == (("a", 3),)
        (hold,) = moved.reads.holds()
        assert (hold.job, hold.count, "may have run" in hold.reason) == ("a", 3, True)


def test_tables_made_anew_under_an_open_connection_are_not_granted_from(store: Store, postgres_ledger: str) -> None:
    """As `pg_restore --clean` leaves them: the connection was admitted before, and would know nothing (invariant 4)."""
    store.terms.enroll("database:", "2026b/1/0.109", "2026b", 1)
    term = lead(store)
    jobs = create(store, definition("a"), definition("b"))
    store.ticks.commit(batch(store, term, [(job, ticks_after(job, 1)) for job in jobs]))
    set_columns(postgres_ledger, "claims", {}, available_at=store.now(), start_by=None)
    worker = store.grants.register("w", "vm", "0.1.0", 1, ["default"], 4)
    before = store.grants.step(StepRequest(worker, ("default",), 1, LEASE, 10))
    assert len(before.grants) == 1
    with psycopg.connect(postgres_ledger.replace("postgresql+psycopg:", "postgresql:"), autocommit=True) as connection:
        connection.execute("CREATE TABLE made_anew (LIKE cluster INCLUDING ALL)")
        connection.execute("INSERT INTO made_anew SELECT * FROM cluster")
        connection.execute("DROP TABLE cluster CASCADE")
        connection.execute("ALTER TABLE made_anew RENAME TO cluster")
    assert store.grants.step(pull(worker)).grants == ()
    assert store.grants.orphans(worker, []) == ()  # whose they are is not known before it is settled
    assert store.restores.settle("n2") is not None
    assert [one.token for one in store.grants.orphans(worker, [])] == [before.grants[0].token]
    after = store.grants.step(pull(worker))
    assert len(after.grants) == 1
    assert before.grants[0].token + JUMP < after.grants[0].token
    assert before.place != after.place  # so that the worker forgets the definitions it read
