"""Alerts in the database: raised once, told once, whichever node looks and whichever tells; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import create_engine, func, select

from sexton.alerts import CLUSTER, AlertKind, Condition, alert_changes
from sexton.claims import State
from sexton.decisions import Cause, JobDecision, LatePlan, LateVerdict, SkipReason
from sexton.job_rules import AlertRules
from sexton.store import tables
from sexton.store.protocol import Store
from sexton.store.protocol.alerts import Turn
from tests.support.held_scene import approve, hold_gap
from tests.support.leader_scene import MINUTE, SECOND, batch, claim, create, definition, lead, set_columns

NOTHING = timedelta(0)
OpenAnother = Callable[..., Store]


def at_once(open_another: OpenAnother, call: Callable[[Store], Any]) -> list[Any]:
    """What four nodes get that call at the same time, each on a connection of its own."""

    def one(_: int) -> Any:
        with closing(open_another()) as store:
            return call(store)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, range(4)))


def turn(store: Store) -> Turn:
    """A look now, whoever had the last one."""
    taken = store.alerts.take_turn(NOTHING)
    assert taken is not None
    return taken


def no_leader(store: Store) -> Condition:
    return Condition(AlertKind.NO_LEADER, CLUSTER, store.now() - MINUTE, "no node leads")


def add_run(url: str, job_id: int, tick: datetime, outcome: State, ended_at: datetime) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        tokens = connection.execute(select(func.coalesce(func.max(tables.runs.c.token), 0))).scalar_one()
        run = {"token": tokens + 1, "job_id": job_id, "scheduled_at": tick, "attempt": 1, "revision": 1}
        known = {"worker_id": 1, "outcome": outcome, "finished_at": ended_at}
        connection.execute(tables.runs.insert().values(**run, **known))
    engine.dispose()


def look(store: Store, watched_for: timedelta = MINUTE) -> tuple[list[str], list[str]]:
    """What a node's look raises and recovers, done."""
    mine = turn(store)
    changes = alert_changes(store.alerts.signs(mine), watched_for, timedelta(days=1))
    assert all(store.alerts.raise_alert(one, mine) for one in changes.raised)
    assert all(store.alerts.recover(kind, job_id, mine) for kind, job_id in changes.recovered)
    return [one.sentence for one in changes.raised], [str(kind) for kind, _ in changes.recovered]


def test_the_turn_to_look_is_one_node_s_at_a_time(store: Store, open_another: OpenAnother) -> None:
    turns = at_once(open_another, lambda one: one.alerts.take_turn(MINUTE))
    (first,) = [one for one in turns if one is not None]
    assert first.before is None
    assert store.alerts.take_turn(MINUTE) is None
    assert turn(store).before == first.looked_at


def test_a_turn_that_lies_in_the_future_is_nobody_s(store: Store, ledger_url: str) -> None:
    """The database's clock was set back."""
    set_columns(ledger_url, "alert_watch", {"id": 1}, looked_at=store.now() + timedelta(hours=1))
    assert store.alerts.take_turn(MINUTE) is not None


def test_of_many_who_raise_it_one_does(store: Store, open_another: OpenAnother) -> None:
    mine, condition = turn(store), no_leader(store)
    raised = at_once(open_another, lambda one: one.alerts.raise_alert(condition, mine))
    assert sorted(raised) == [False, False, False, True]
    assert not store.alerts.raise_alert(condition, turn(store)), "the next look finds it open"
    (view,) = store.alerts.listed()
    assert (view.kind, view.job, view.is_open, view.told_at) == ("no_leader", None, True, None)


def test_an_old_look_changes_nothing(store: Store) -> None:
    """A node that was frozen between its look and its word."""
    mine = turn(store)
    stale = replace(mine, looked_at=mine.looked_at - MINUTE)
    assert not store.alerts.raise_alert(no_leader(store), stale)
    assert store.alerts.raise_alert(no_leader(store), mine)
    assert not store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, stale)
    assert not store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, mine), "it does not know better than the raise"
    assert store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, turn(store))
    assert not store.alerts.raise_alert(no_leader(store), mine)


def test_of_many_who_would_tell_it_one_does_and_then_its_recovery(store: Store, open_another: OpenAnother) -> None:
    store.alerts.raise_alert(no_leader(store), turn(store))
    taken = at_once(open_another, lambda one: one.alerts.take_delivery(MINUTE))
    (due,) = [one for one in taken if one is not None]
    assert (due.attempt, due.job, due.cluster_id) == (1, None, store.terms.cluster().cluster_id)
    assert store.alerts.settle(due)
    assert store.alerts.take_delivery(MINUTE) is None, "told once"
    store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, turn(store))
    recovery = store.alerts.take_delivery(MINUTE)
    assert recovery is not None
    assert recovery.recovered_at is not None
    assert not store.alerts.settle(due), "the delivery of another attempt"
    assert store.alerts.settle(recovery)
    assert store.alerts.take_delivery(MINUTE) is None
    (view,) = store.alerts.listed()
    assert view.told_at is not None
    assert view.recovery_told_at is not None
    assert store.alerts.listed(only_open=True) == ()


def test_a_delivery_whose_teller_died_is_another_s_after_the_lease(store: Store) -> None:
    store.alerts.raise_alert(no_leader(store), turn(store))
    lost = store.alerts.take_delivery(NOTHING)
    again = store.alerts.take_delivery(MINUTE)
    assert lost is not None
    assert again is not None
    assert again.attempt == 2
    assert not store.alerts.settle(lost), "it was frozen, and comes too late"
    assert store.alerts.settle(again)


def test_what_could_not_be_told_is_put_off_and_says_why(store: Store) -> None:
    store.alerts.raise_alert(no_leader(store), turn(store))
    due = store.alerts.take_delivery(MINUTE)
    assert due is not None
    assert store.alerts.postpone(due, "answered 500", MINUTE)
    assert store.alerts.take_delivery(MINUTE) is None
    (view,) = store.alerts.listed()
    assert (view.error, view.attempts, view.told_at) == ("answered 500", 1, None)


def test_one_that_recovers_while_it_is_told_is_told_as_recovered_afterwards(store: Store) -> None:
    store.alerts.raise_alert(no_leader(store), turn(store))
    due = store.alerts.take_delivery(MINUTE)
    assert due is not None
    store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, turn(store))
    assert store.alerts.take_delivery(MINUTE) is None, "not before the news it belongs to"
    assert store.alerts.settle(due)
    recovery = store.alerts.take_delivery(MINUTE)
    assert recovery is not None
    assert recovery.recovered_at is not None


def test_a_job_that_comes_back_soon_after_its_end_was_told_is_told_later(store: Store, ledger_url: str) -> None:
    """A job that flaps is no storm. The cluster's own troubles are told at once, and so is what was never told."""

    def told() -> list[tuple[AlertKind, bool]]:
        found = []
        while (due := store.alerts.take_delivery(MINUTE)) is not None:
            store.alerts.settle(due)
            found.append((due.kind, due.recovered_at is not None))
        return found

    flapping = Condition(AlertKind.FAILING, 7, store.now(), "job flap failed")
    for condition in (flapping, no_leader(store)):
        assert store.alerts.raise_alert(condition, turn(store))
    assert told() == [(AlertKind.FAILING, False), (AlertKind.NO_LEADER, False)]
    for condition in (flapping, no_leader(store)):
        assert store.alerts.recover(*condition.key, turn(store))
    assert told() == [(AlertKind.FAILING, True), (AlertKind.NO_LEADER, True)]
    for _ in range(2):
        for condition in (flapping, no_leader(store)):
            assert store.alerts.raise_alert(condition, turn(store))
        assert told() == [(AlertKind.NO_LEADER, False)]
        for condition in (flapping, no_leader(store)):
            assert store.alerts.recover(*condition.key, turn(store))
        assert told() == [(AlertKind.NO_LEADER, True)]
    set_columns(ledger_url, "alerts", {"job_id": 7}, next_try_at=store.now())
    assert told() == [(AlertKind.FAILING, True)], "all of it is told then, as it is"


def test_an_open_alert_is_told_as_it_stands(store: Store) -> None:
    first = turn(store)
    condition = no_leader(store)
    store.alerts.raise_alert(condition, first)
    assert not store.alerts.reword(replace(condition, sentence="older news"), first)
    assert store.alerts.reword(replace(condition, sentence="nobody yet"), turn(store))
    due = store.alerts.take_delivery(MINUTE)
    assert due is not None
    assert (due.sentence, due.since, due.episode) == ("nobody yet", condition.since, 1)
    store.alerts.recover(*condition.key, turn(store))
    assert not store.alerts.reword(condition, turn(store))


def test_one_that_comes_back_is_a_new_episode(store: Store) -> None:
    store.alerts.raise_alert(no_leader(store), turn(store))
    old = store.alerts.take_delivery(MINUTE)
    assert old is not None
    store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, turn(store))
    assert store.alerts.raise_alert(no_leader(store), turn(store))
    new = store.alerts.take_delivery(MINUTE)
    assert new is not None
    assert (new.episode, new.attempt, new.recovered_at) == (2, 1, None)
    assert not store.alerts.settle(old)


# --- what a look finds --------------------------------------------------------------------------------------------


def test_a_tick_that_nobody_starts_is_told_and_recovers_with_the_job_s_next_run(store: Store, ledger_url: str) -> None:
    term = lead(store)
    late, patient = create(
        store, definition("late", owner="ops"), definition("patient", alert=AlertRules(late=timedelta(hours=1)))
    )
    tick = (store.now() - 2 * MINUTE).replace(microsecond=0)
    for job in (late, patient):
        set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=tick - SECOND)
    jobs = [(replace(job, at=tick - SECOND), [tick]) for job in (late, patient)]
    assert store.ticks.commit(batch(store, term, jobs)).moved == 2
    (sentence,), recovered = look(store)
    assert sentence.startswith(f"job late: tick {tick:%Y-%m-%dT%H:%M:%SZ} has not started 2m")
    assert recovered == []
    assert look(store) == ([], []), "once"
    due = store.alerts.take_delivery(MINUTE)
    assert due is not None
    assert (due.job, due.owner, due.tick) == ("late", "ops", tick)
    set_columns(
        ledger_url,
        "claims",
        {"job_id": late.job_id},
        state=State.SUCCEEDED,
        attempt=1,
        granted_at=store.now(),
        finished_at=store.now(),
    )
    assert look(store) == ([], ["late"])


def test_ticks_that_were_decided_not_to_run_are_told(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("late"))
    ticks = [job.at.replace(microsecond=0) + number * SECOND for number in (1, 2, 3)]
    claims = tuple(claim(job, at, start_by=store.now() - MINUTE) for at in ticks)
    assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    counts = {"missed": 3, "fired": 0, "merged": 0, "skipped": 3, "expired": 0, "held": 0}
    why = "policy skip: not started within 1s"
    decision = JobDecision(job.job_id, 1, Cause.NOT_STARTED, ticks[0], ticks[-1], "skip", reason=why, **counts)
    verdicts = tuple(LateVerdict(at, SkipReason.SKIPPED.value) for at in ticks)
    assert store.ticks.decide_late(LatePlan(term, job.job_id, job.seq, verdicts, decision, None)) == 3
    (sentence,), _ = look(store)
    assert sentence == f"job late: 3 ticks up to {ticks[-1]:%Y-%m-%dT%H:%M:%SZ} did not run: {why}"
    assert look(store) == ([], [])
    (found,) = store.alerts.signs(turn(store)).missed
    assert (found.count, found.due_at) == (3, ticks[-1])
    set_columns(ledger_url, "decisions", {"job_id": job.job_id}, skipped=0, merged=3)
    assert store.alerts.signs(turn(store)).missed == (), "what was merged runs, in another tick"
    set_columns(ledger_url, "jobs", {"job_id": job.job_id}, paused_at=store.now())
    assert look(store) == ([], ["late"]), "a paused job is not waited for"


def test_so_many_failures_in_a_row_as_the_job_says_are_told_until_one_succeeds(store: Store, ledger_url: str) -> None:
    job, quiet = create(store, definition("fails", alert=AlertRules(failures=2)), definition("quiet"))
    first = store.now().replace(microsecond=0) - MINUTE

    def run(job_id: int, number: int, outcome: State) -> None:
        add_run(ledger_url, job_id, first + number * SECOND, outcome, store.now())

    run(job.job_id, 1, State.SUCCEEDED)
    run(job.job_id, 2, State.FAILED)
    run(job.job_id, 3, State.READY)  # it is tried again
    for number in (1, 2, 3):
        run(quiet.job_id, number, State.FAILED)
    assert look(store) == ([], [])
    run(job.job_id, 3, State.TIMED_OUT)
    (sentence,), _ = look(store)
    assert (
        sentence == f"job fails failed 2 times in a row, the last time at tick {first + 3 * SECOND:%Y-%m-%dT%H:%M:%SZ}"
    )
    run(job.job_id, 4, State.FAILED)
    assert look(store) == ([], [])
    run(job.job_id, 5, State.SUCCEEDED)
    assert look(store) == ([], ["failing"])


def test_held_ticks_and_quarantined_jobs_are_told(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    (held,), _ = look(store)
    assert held == "job held: 5 missed ticks wait for an answer; `sexton holds list` shows them"
    approve(store)
    set_columns(ledger_url, "jobs", {"job_id": job.job_id}, quarantined_at=store.now(), quarantine_reason="a bound")
    raised, recovered = look(store)
    assert "job held is quarantined: a bound" in raised
    assert recovered == ["held"]
