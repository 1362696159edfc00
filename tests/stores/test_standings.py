"""What an edit would meet: claims ahead, runs in flight, proposals, usual durations; on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, insert, text

from sexton.claims import State
from sexton.decisions import NewProposal
from sexton.job_standing import JobStanding, NamedTick, RunsInFlight
from sexton.store import tables
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from sexton.store.read_standing import read_standings
from sexton.store.resuming import skip_tick
from tests.support.claim_rows import START, claim_values
from tests.support.leader_scene import MINUTE, SECOND, batch, create, definition, lead, set_columns, ticks_after


def standing(store: Store, job: JobRow) -> JobStanding:
    return store.reads.standings([job.job_id]).of(job.job_id)


def test_a_job_that_nothing_was_decided_of_has_nothing_to_meet(store: Store) -> None:
    (job,) = create(store, definition("a"))
    found = store.reads.standings([job.job_id])
    made_at = found.of(job.job_id).made_at
    assert made_at is not None
    assert found.of(job.job_id) == JobStanding(job.job_id, made_by="test", made_at=made_at)
    assert abs(found.now - store.now()) < MINUTE
    assert found.of(99) == JobStanding(99)
    assert store.reads.standings([]).jobs == {}


def test_what_it_says_is_what_an_edit_then_does(store: Store, ledger_url: str) -> None:
    """Claims of a worker stay, and the edit counts from the last of them; the others are withdrawn."""
    term = lead(store)
    job, other = create(store, definition("a"), definition("b"))
    ticks = ticks_after(job, 30, step=MINUTE)
    store.ticks.commit(batch(store, term, [(job, ticks), (other, ticks[:7])]))
    set_columns(
        ledger_url,
        "claims",
        {"scheduled_at": ticks[12], "job_id": job.job_id},
        state=int(State.RUNNING),
        token=1,
        attempt=1,
        granted_at=ticks[0],
        lease_expires_at=ticks[29],
    )
    found = store.reads.standings([job.job_id, other.job_id])
    one = found.of(job.job_id)
    assert (one.ahead, one.ahead_upto, one.decided_upto) == (17, ticks[29], ticks[12])
    assert one.in_flight == (RunsInFlight(1, 1, ticks[0]),)
    assert (found.of(other.job_id).decided_upto, found.of(other.job_id).in_flight) == (None, ())
    (done,) = store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, definition("a", MINUTE))], "alice")
    assert (done.effective_at, done.withdrawn) == (ticks[12], 17)
    after = standing(store, job)
    assert (one.made_by, after.made_by) == ("test", "alice")
    assert one.made_at is not None
    assert after.made_at is not None
    assert after.made_at > one.made_at
    assert (after.ahead, after.decided_upto, after.in_flight) == (0, ticks[12], one.in_flight)


def test_a_tick_named_not_to_run_is_told_for_an_edit_takes_that_back(store: Store) -> None:
    lead(store)
    job, other = create(store, definition("a", 60 * MINUTE), definition("b"))
    plan, _ = skip_tick(store, job.job_id, None, "ana", "storage moves")
    one = standing(store, job)
    assert one.named == (NamedTick(plan.changed, "ana"),)
    assert standing(store, other).named == ()
    (done,) = store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, definition("a", MINUTE))], "ben")
    assert done.effective_at < plan.changed
    assert one.decided_upto is None  # what is named holds no edit up
    assert standing(store, job).named == ()


def test_runs_in_flight_are_told_by_revision(store: Store, ledger_url: str) -> None:
    (job,) = create(store, definition("a"))
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        for number, revision in ((0, 1), (1, 1), (2, 2)):
            running = {"state": int(State.RUNNING), "token": number + 1, "attempt": 1, "revision": revision}
            at = START + number * MINUTE
            leased = {"granted_at": at + SECOND, "lease_expires_at": at + MINUTE}
            connection.execute(insert(tables.claims), claim_values(job.job_id, at, **running, **leased))
    engine.dispose()
    since = (START + SECOND, START + 2 * MINUTE + SECOND)
    assert standing(store, job).in_flight == (RunsInFlight(1, 2, since[0]), RunsInFlight(2, 1, since[1]))


def test_a_pause_says_why_and_a_job_without_one_says_nothing(store: Store) -> None:
    one, two, three = create(store, definition("a"), definition("b", enabled=False), definition("c"))
    store.edits.edit([JobChange(ChangeKind.PAUSE, one.job_id, why="storage moves")], "alice")
    found = store.reads.standings([one.job_id, two.job_id, three.job_id])
    assert [found.of(job.job_id).pause_reason for job in (one, two, three)] == ["storage moves", "enabled: false", None]


def test_open_proposals_are_counted_with_their_ticks(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    proposals = tuple(
        NewProposal(job.job_id, 1, job.at - 9 * MINUTE, job.at + number * SECOND, 60, job.at, job.at + MINUTE)
        for number in (0,)
    )
    store.ticks.commit(batch(store, term, [(job, ticks_after(job, 1))], proposals=proposals))
    assert (standing(store, job).proposals, standing(store, job).held_ticks) == (1, 60)
    set_columns(ledger_url, "proposals", {"job_id": job.job_id}, state="rejected")
    assert standing(store, job).proposals == 0


def test_the_usual_duration_is_that_of_the_newest_runs_of_each_job(store: Store, ledger_url: str) -> None:
    job, other, none = create(store, definition("a"), definition("b"), definition("c"))
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        rows = [run(job.job_id, number, number * SECOND) for number in range(1, 61)]
        rows += [run(other.job_id, 100, 7 * SECOND), run(other.job_id, 101, 9 * SECOND, State.READY)]
        rows.append(run(other.job_id, 102, None, State.LOST))
        connection.execute(insert(tables.runs), rows)
    engine.dispose()
    found = store.reads.standings([job.job_id, other.job_id, none.job_id], 20)
    assert found.of(job.job_id).durations == tuple(number * SECOND for number in range(60, 40, -1))
    usual = found.of(job.job_id).usual_duration
    assert usual is not None
    assert (usual.runs, usual.p50, usual.p95) == (20, 50 * SECOND, 59 * SECOND)
    assert found.of(other.job_id).durations == (7 * SECOND,)
    assert found.of(none.job_id).usual_duration is None


def test_queues_are_served_by_the_workers_that_are_there(store: Store) -> None:
    store.grants.register("w1", "", "1", 1, ["default", "gpu"], 2)
    gone = store.grants.register("w2", "", "1", 2, ["reports"], 2)
    store.grants.unregister(gone)
    found = store.reads.standings([])
    assert (found.served_queues, found.workers) == (frozenset({"default", "gpu"}), 1)


def run(job_id: int, number: int, took: timedelta | None, outcome: State = State.SUCCEEDED) -> dict[str, Any]:
    at = START + number * MINUTE
    return {
        "token": number,
        "job_id": job_id,
        "scheduled_at": at,
        "attempt": 1,
        "revision": 1,
        "worker_id": 1,
        "outcome": int(outcome),
        "started_at": None if took is None else at,
        "finished_at": at + (took or SECOND),
    }


class TestCost:
    """However long the histories are, only what lies ahead is read, and a few newest rows of the jobs asked for."""

    @pytest.fixture
    def connection(self, ledger_url: str) -> Iterator[Connection]:
        engine = create_engine(ledger_url)
        with engine.begin() as connection:
            claims = [
                claim_values(job, START + number * MINUTE, state=int(State.SUCCEEDED))
                for job in range(1, 21)
                for number in range(500)
            ]
            connection.execute(insert(tables.claims), claims)
            rows = [run(number % 20 + 1, number, SECOND) for number in range(10_000)]
            connection.execute(insert(tables.runs), rows)
            connection.execute(text("ANALYZE"))
            yield connection
        engine.dispose()

    def test_no_statement_walks_a_history(self, connection: Connection) -> None:
        statements: list[tuple[str, Any]] = []

        def keep(_1: object, _2: object, statement: str, parameters: Any, _3: object, _4: object) -> None:
            statements.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", keep)
        read_standings(connection, START + timedelta(days=3), [1, 2], 20)
        event.remove(connection, "before_cursor_execute", keep)
        assert len(statements) == 9, "one for each question, however many jobs"
        seen = sum(self.rows_seen(connection, statement, parameters) for statement, parameters in statements)
        assert seen <= 200, "2 jobs, 20 newest runs of each"

    def rows_seen(self, connection: Connection, statement: str, parameters: Any) -> int:
        """Rows of claims and runs that a statement takes from its tables; on SQLite that it seeks them, as 0."""
        if connection.dialect.name == "sqlite":
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            for step in (row[-1] for row in plan):
                assert not step.startswith(("SCAN c", "SCAN r", "SCAN n", "SCAN s", "SCAN p")) or "INDEX" in step, step
            return 0
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
        found = connection.exec_driver_sql(explained, parameters).scalar_one()
        plan = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
        return sum(
            int(node["Actual Rows"] * node["Actual Loops"])
            for node in nodes(plan)
            if node.get("Relation Name") in ("claims", "runs")
        )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def test_the_moment_of_a_standing_is_the_databases(store: Store) -> None:
    before = store.now()
    now: datetime = store.reads.standings([]).now
    assert before <= now <= store.now()
