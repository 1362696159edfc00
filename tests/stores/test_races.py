"""What racers share, on both databases: the strategy, the pass over missed ticks, its count and its budget."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from sexton.claims import Origin
from sexton.decisions import Cause, CommitResult, CursorMove, JobDecision, TickBatch, UnfinishedPass
from sexton.races import PassShare, RaceCounts, RacePass
from sexton.store import open_store
from sexton.store.postgres import strategy
from sexton.store.protocol import JobRow, Store, StoreOptions
from sexton.terms import Confirmation, ElectedBy, NodeReport, Strategy
from tests.support.leader_scene import (
    MINUTE,
    SECOND,
    batch,
    claim,
    create,
    definition,
    lead,
    read,
    rows,
    set_columns,
    ticks_after,
)
from tests.support.waiting import eventually

HOLD_ABOVE = 10
NODE = NodeReport("n1", "here", "0.2.0", 7, "racer", None, "", 0, 0, 0, None, "2026b/1")


def race(store: Store) -> int:
    """Have the cluster race; the term."""
    store.edits.set_setting("strategy", "race", "alice")
    return store.terms.cluster().term


def missed(
    store: Store,
    term: int,
    job: JobRow,
    ticks: Sequence[datetime],
    number: int,
    *,
    paced: bool = False,
    rate: float = 1.0,
) -> TickBatch:
    """The job's ticks as fires of a pass."""
    now = store.now()
    claims = tuple(
        claim(job, at, origin=Origin.CATCH_UP, available_at=now + place * SECOND / rate, start_by=None)
        for place, at in enumerate(ticks)
    )
    return TickBatch(
        term,
        now,
        (CursorMove(job.job_id, job.seq, job.at, ticks[-1]),),
        claims,
        decisions=(decision(job, ticks),),
        share=PassShare(
            number, len(ticks), HOLD_ABOVE, rate, frozenset((job.job_id, at) for at in ticks) if paced else frozenset()
        ),
    )


def decision(job: JobRow, ticks: Sequence[datetime]) -> JobDecision:
    counts = {"merged": 0, "skipped": 0, "expired": 0, "held": 0}
    fired = len(ticks)
    return JobDecision(
        job.job_id, 1, Cause.RACE, job.at, ticks[-1], "all", missed=fired, fired=fired, reason="missed", **counts
    )


def open_pass(store: Store, term: int, found: int = 0) -> RacePass:
    opened = store.races.open_pass(term, store.races.newest_pass().number, found, HOLD_ABOVE)
    assert opened is not None
    return opened


# --- the strategy ---------------------------------------------------------------------------------


def test_the_switch_ends_the_other_strategys_writes_both_ways(store: Store, ledger_url: str) -> None:
    """Invariant 3."""
    led = lead(store)
    first, second = create(store, definition("a"), definition("b"))
    raced = race(store)
    assert raced == led + 1
    assert not store.ticks.commit(batch(store, led, [(first, ticks_after(first, 1))])).is_current
    assert store.ticks.commit(batch(store, raced, [(first, ticks_after(first, 1))])).moved == 1
    store.edits.set_setting("strategy", "leader", "alice")
    assert not store.ticks.commit(batch(store, raced, [(second, ticks_after(second, 1))])).is_current
    again = lead(store, "n2")
    assert again == raced + 2
    assert store.ticks.commit(batch(store, again, [(second, ticks_after(second, 1))])).moved == 1
    events = rows(ledger_url, "events", action="strategy.changed")
    assert [(event.actor, json.loads(event.detail)) for event in events] == [
        ("alice", {"from": "leader", "to": "race", "term": raced}),
        ("alice", {"from": "race", "to": "leader", "term": raced + 1}),
    ]


def test_nobody_takes_the_term_of_a_race_or_is_forced_to(store: Store) -> None:
    """A candidate that was elected a moment before the switch has read the new term, and must not lead under it."""
    store.terms.enroll("database:", "2026b/1", "2026b", 1)
    store.terms.report(NODE)
    term = race(store)
    for elected_by in ElectedBy:
        assert store.terms.take(term, "n1", elected_by) is None
    assert not store.edits.force_leader("n1", "alice")
    assert store.terms.cluster().term == term


def test_a_race_beats_under_its_term_and_its_last_beat_is_the_leaders_gap(store: Store, ledger_url: str) -> None:
    term = race(store)
    assert store.terms.beat(term, Confirmation.CONFIRMED)
    last = store.terms.heartbeat().at
    store.edits.set_setting("strategy", "leader", "alice")
    assert not store.terms.beat(term, Confirmation.CONFIRMED)
    beats = store.terms.heartbeat().at  # that one came too late, and is the last sign of life no more than it was
    lead(store)
    of_race, of_leader = rows(ledger_url, "takeovers")
    assert (of_race.term, of_race.node, of_race.elected_by) == (term, "the race", "race")
    assert (of_leader.predecessor, of_leader.predecessor_ended) == ("the race", "resigned")
    assert last <= of_leader.gap_from <= beats


def test_setting_the_strategy_that_is_set_changes_nothing(store: Store, ledger_url: str) -> None:
    term = race(store)
    store.edits.set_setting("strategy", "race", "bob")
    assert store.terms.cluster().term == term
    assert [event.actor for event in rows(ledger_url, "events", action="strategy.changed")] == ["alice"]


def test_a_halted_race_writes_nothing(store: Store) -> None:
    term = race(store)
    (job,) = create(store, definition("a"))
    store.edits.halt("alice", "a restore")
    result = store.ticks.commit(batch(store, term, [(job, ticks_after(job, 1))]))
    assert (result.is_current, result.moved) == (True, 0)
    assert store.races.open_pass(term, 0, 1, HOLD_ABOVE) is None


# --- the pass -------------------------------------------------------------------------------------


def test_one_of_two_who_open_the_same_pass_opens_it(store: Store) -> None:
    term = race(store)
    assert store.terms.cluster().has_open_pass  # the term begins with one
    assert store.races.newest_pass() == RacePass(0, False, 0, False, is_awaited=True)
    opened = store.races.open_pass(term, 0, 3, HOLD_ABOVE)
    assert opened == RacePass(1, True, 0, False)
    assert store.races.open_pass(term, 0, 3, HOLD_ABOVE) is None
    assert store.races.open_pass(term, 1, 3, HOLD_ABOVE) is None  # it is open
    assert store.races.end_pass(term, 1)
    assert not store.races.end_pass(term, 1)
    assert store.races.newest_pass() == RacePass(1, False, 0, False)
    assert not store.terms.cluster().has_open_pass


def test_a_pass_that_would_fire_too_much_holds_for_all_who_join(store: Store) -> None:
    term = race(store)
    (job,) = create(store, definition("a"))
    opened = open_pass(store, term, found=HOLD_ABOVE + 1)
    assert opened.holds
    assert store.races.newest_pass().holds
    result = store.ticks.commit(missed(store, term, job, ticks_after(job, 1), opened.number))
    assert (result.is_current, result.is_within, result.moved) == (True, False, 0)


def test_what_moved_is_counted_and_what_would_exceed_the_bound_is_not_written(store: Store) -> None:
    """Invariant 2: per job all or nothing; `catch_up.hold_above` over all racers together."""
    term = race(store)
    first, second, third = create(store, *(definition(name) for name in "abc"))
    number = open_pass(store, term, found=8).number
    assert store.ticks.commit(missed(store, term, first, ticks_after(first, 4), number)).moved == 1
    lost = store.ticks.commit(missed(store, term, first, ticks_after(first, 4), number))  # of another racer
    assert (lost.is_within, lost.moved) == (True, 0)
    assert store.ticks.commit(missed(store, term, second, ticks_after(second, 4), number)).moved == 1
    assert store.races.newest_pass().fired == 8
    refused = store.ticks.commit(missed(store, term, third, ticks_after(third, 3), number))
    assert (refused.is_within, refused.not_moved) == (False, (third.job_id,))
    assert store.ticks.commit(missed(store, term, third, ticks_after(third, 2), number)).moved == 1
    assert store.races.newest_pass().fired == HOLD_ABOVE


@pytest.mark.parametrize("number", [0, 2])
def test_what_belongs_to_another_pass_is_not_written(store: Store, number: int) -> None:
    term = race(store)
    (job,) = create(store, definition("a"))
    open_pass(store, term)
    assert not store.ticks.commit(missed(store, term, job, ticks_after(job, 1), number)).is_within
    assert read(store, job.job_id) == job


def test_racers_together_fire_no_more_than_the_bound(store: Store, ledger_url: str) -> None:
    """Each counts for himself that he may fire six: together they would fire 24."""
    term = race(store)
    jobs = create(store, *(definition(f"job {number}") for number in range(4)))
    number = open_pass(store, term, found=6).number
    start = threading.Barrier(len(jobs))

    def fire(job: JobRow) -> CommitResult:
        with contextlib.closing(open_store(StoreOptions(ledger_url, answer_within=60.0))) as racer:
            racer.now()
            start.wait()
            while True:
                done = racer.ticks.commit(missed(racer, term, job, ticks_after(job, 6), number))
                if done.is_within or racer.races.newest_pass().fired:
                    return done

    with ThreadPoolExecutor(len(jobs)) as pool:
        results = list(pool.map(fire, jobs))
    assert sum(result.moved for result in results) == 1
    assert store.races.newest_pass().fired == len(rows(ledger_url, "claims")) == 6


def test_starts_are_drawn_by_who_wins_and_by_nobody_else(store: Store, ledger_url: str) -> None:
    term = race(store)
    (job,) = create(store, definition("a"))
    number, ticks = open_pass(store, term, found=3).number, ticks_after(job, 3)
    free_at = store.now() + MINUTE
    set_columns(ledger_url, "budget", {"id": 1}, next_at=free_at)
    won = missed(store, term, job, ticks, number, paced=True, rate=2.0)
    assert store.ticks.commit(won).moved == 1
    assert store.ticks.commit(won).moved == 0
    claims = rows(ledger_url, "claims")
    assert [one.available_at for one in claims] == [free_at + place * SECOND / 2 for place in range(3)]
    assert rows(ledger_url, "budget")[0].next_at == free_at + 3 * SECOND / 2


def test_a_leader_goes_on_with_the_races_pass_and_the_race_with_the_leaders(store: Store, ledger_url: str) -> None:
    led = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 4)
    by_leader = decision(job, ticks)
    store.ticks.commit(
        batch(store, led, [(job, ticks)], decisions=(JobDecision(**{**fields(by_leader), "cause": Cause.TAKEOVER}),))
    )
    term = race(store)
    opened = open_pass(store, term, found=HOLD_ABOVE - 4)
    assert (opened.fired, opened.holds) == (4, False)
    store.edits.set_setting("strategy", "leader", "alice")
    led = lead(store)
    assert store.ticks.unfinished_pass().fired >= 4
    store.ticks.finish_pass(led, timedelta(0), 1)
    assert not store.races.newest_pass().is_open
    assert store.ticks.unfinished_pass() == UnfinishedPass()
    assert all(one.gap_until is not None for one in rows(ledger_url, "takeovers"))


def fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


# --- what it costs ----------------------------------------------------------------------------------


def test_what_a_process_counts_is_added_to_the_clusters_counts_once(store: Store) -> None:
    def report(name: str, pid: int, *raced: int) -> None:
        changed = {"name": name, "pid": pid, "raced": RaceCounts(*raced)}
        store.terms.report(NodeReport(**{**fields(NODE), **changed}))

    report("n1", 1, 10, 4, 6)
    report("n1", 1, 15, 8, 7)
    report("n1", 1, 15, 8, 7)  # told again after an answer that was lost
    report("n2", 2, 5, 5, 0)
    report("n1", 3, 2, 0, 2)  # started again
    overview = store.reads.overview()
    counted = {name: value for name, value in overview.counters.items() if name.startswith("race_")}
    assert counted == {"race_attempts": 22, "race_conflicts": 13, "race_ticks": 9}
    assert {node.name: node.raced for node in overview.nodes} == {"n1": RaceCounts(2, 0, 2), "n2": RaceCounts(5, 5, 0)}
    assert overview.strategy == Strategy.LEADER


# --- real locks -------------------------------------------------------------------------------------


@pytest.fixture
def other(postgres_ledger: str) -> Iterator[psycopg.Connection[Any]]:
    address = postgres_ledger.replace("+psycopg", "")
    with contextlib.closing(psycopg.connect(address, application_name="sexton scheduler other")) as connection:
        yield connection


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def postgres_store(postgres_ledger: str) -> Iterator[Store]:
    store = open_store(StoreOptions(postgres_ledger))
    yield store
    store.close()


@pytest.mark.parametrize("ends_by", ["halt", "strategy"])
def test_a_halt_and_a_switch_return_when_no_racers_statement_is_under_way(
    postgres_store: Store,
    other: psycopg.Connection[Any],
    aside: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    ends_by: str,
) -> None:
    """A racer reads the cluster row without a lock: what had begun before may go on for a moment."""
    monkeypatch.setattr(strategy, "_AWAIT_SECONDS", 60.0)
    race(postgres_store)
    (job,) = create(postgres_store, definition("a"))
    with contextlib.closing(psycopg.connect(other.info.dsn, password=other.info.password or None)) as blocking:
        blocking.execute("SELECT * FROM cursors WHERE job_id = %s FOR UPDATE", [job.job_id])
        statement = aside.submit(other.execute, "SELECT 1 FROM cursors FOR UPDATE")
        wait_for_lock(postgres_store, other.info.backend_pid)
        release = threading.Timer(0.3, blocking.rollback)
        release.start()
        if ends_by == "halt":
            postgres_store.edits.halt("alice", "a restore")
        else:
            postgres_store.edits.set_setting("strategy", "leader", "alice")
        assert not is_waiting(postgres_store, other.info.backend_pid)
        release.join()
    statement.result(60)


def wait_for_lock(store: Store, pid: int) -> None:
    eventually(lambda: is_waiting(store, pid), within=60, what="the statement waits")


def is_waiting(store: Store, pid: int) -> bool:
    with store.reads.snapshot() as connection:
        query = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid AND wait_event_type = 'Lock'")
        return bool(connection.execute(query, {"pid": pid}).scalar())


def test_what_another_racer_holds_is_passed_by(postgres_store: Store, other: psycopg.Connection[Any]) -> None:
    """Neither a cursor nor the pass is waited for: ``answer_within`` would end this test's calls."""
    term = race(postgres_store)
    held, free = create(postgres_store, definition("a"), definition("b"))
    number = open_pass(postgres_store, term, found=2).number
    other.execute("SELECT * FROM cursors WHERE job_id = %s FOR UPDATE", [held.job_id])
    both = batch(postgres_store, term, [(held, ticks_after(held, 1)), (free, ticks_after(free, 1))])
    assert postgres_store.ticks.commit(both).not_moved == (held.job_id,)
    other.rollback()
    other.execute("SELECT * FROM race_pass FOR UPDATE")
    assert not postgres_store.ticks.commit(missed(postgres_store, term, held, ticks_after(held, 1), number)).is_within
    other.rollback()
    other.execute("SELECT * FROM cluster FOR UPDATE")  # a race locks no cluster row
    assert postgres_store.ticks.commit(missed(postgres_store, term, held, ticks_after(held, 1), number)).is_within
