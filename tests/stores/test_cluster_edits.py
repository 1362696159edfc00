"""What operators change about the cluster as a whole: halt, a forced leader, an accepted clock; on both databases."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from sexton.cluster_views import Halt
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.terms import ElectedBy, EndedBy, NodeReport
from tests.stores.conftest import OpenAnother
from tests.support.leader_scene import rows, set_columns
from tests.support.waiting import eventually

NODE = NodeReport(
    name="n2",
    address="10.0.0.2",
    version="0.2.0",
    pid=7,
    role="follower",
    confirmation=None,
    coordinator_status="",
    jobs_warm=0,
    behind_ms=0,
    clock_offset_ms=0,
    claims_upto=None,
    inputs_id="2026b/1",
)
SILENT = timedelta(seconds=16)


@pytest.fixture
def led(store: Store) -> Store:
    """A cluster that n1 leads under term 1, with a follower n2."""
    store.terms.enroll("zookeeper://zk/sexton", "2026b/1", "2026b", 1)
    store.terms.report(replace(NODE, name="n1"))
    store.terms.report(NODE)
    assert store.terms.take(0, "n1", ElectedBy.ZOOKEEPER) is not None
    return store


def events(url: str, prefix: str) -> list[tuple[str, str, dict[str, object]]]:
    return [
        (event.actor, event.action, json.loads(event.detail))
        for event in rows(url, "events")
        if event.action.startswith(prefix)
    ]


def be_silent(url: str, store: Store, node: str) -> None:
    set_columns(url, "nodes", {"name": node}, seen_at=store.now() - SILENT)


# --- halt ------------------------------------------------------------------------------------------------


def test_a_halt_is_durable_and_says_since_when_by_whom_and_why(led: Store, ledger_url: str) -> None:
    done = led.edits.halt("alice", "the disk is full")
    assert done.changed
    assert led.terms.cluster().halted
    overview = led.reads.overview()
    assert (overview.is_halted, overview.halt) == (True, done.halt)
    assert done.halt == Halt(rows(ledger_url, "cluster")[0].halted_at, "alice", "the disk is full")
    assert events(ledger_url, "cluster.") == [("alice", "cluster.halted", {"reason": "the disk is full", "term": 1})]


def test_a_second_halt_changes_nothing_and_tells_of_the_first(led: Store, ledger_url: str) -> None:
    first = led.edits.halt("alice", "the disk is full")
    again = led.edits.halt("bob", "me too")
    assert (again.changed, again.halt) == (False, first.halt)
    assert len(events(ledger_url, "cluster.")) == 1


def test_a_lifted_halt_leaves_no_trace_but_its_events(led: Store, ledger_url: str) -> None:
    halted = led.edits.halt("alice", "")
    lifted = led.edits.lift_halt("bob")
    assert (lifted.changed, lifted.halt) == (True, halted.halt)
    again = led.edits.lift_halt("bob")
    assert (again.changed, again.halt) == (False, None)
    (cluster,) = rows(ledger_url, "cluster")
    assert (cluster.halted, cluster.halted_at, cluster.halted_by, cluster.halt_reason) == (False, None, None, None)
    *_, (actor, action, detail) = events(ledger_url, "cluster.")
    assert (actor, action, detail["halted_by"]) == ("bob", "cluster.halt_lifted", "alice")


def test_a_halt_that_nobody_signed_is_signed_by_the_next_and_can_be_lifted(led: Store, ledger_url: str) -> None:
    set_columns(ledger_url, "cluster", {"id": 1}, halted=True)
    done = led.edits.halt("alice", "why")
    assert done.changed
    assert done.halt is not None
    set_columns(ledger_url, "cluster", {"id": 1}, halted_at=None)
    lifted = led.edits.lift_halt("bob")
    assert (lifted.changed, lifted.halt) == (True, None)
    assert not led.terms.cluster().halted


def test_a_term_can_be_taken_and_left_in_a_halted_cluster_and_it_stays_halted(led: Store) -> None:
    led.edits.halt("alice", "")
    assert led.terms.take(1, "n2", ElectedBy.ZOOKEEPER) is not None
    assert led.terms.leave(2)
    assert led.terms.cluster().halted


def test_a_halt_waits_for_the_commit_under_way(postgres_ledger: str) -> None:
    """Whoever has seen `halt` return sees no commit that began before it."""
    with contextlib.closing(open_store(StoreOptions(postgres_ledger))) as store:
        store.now()  # connected before the lock is taken
        conninfo = postgres_ledger.replace("+psycopg", "")
        with contextlib.closing(psycopg.connect(conninfo, application_name="sexton scheduler")) as committing:
            committing.execute("SELECT * FROM cluster FOR SHARE")
            halting = threading.Thread(target=store.edits.halt, args=("alice", ""))
            halting.start()

            def waits() -> bool:
                found = committing.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone()
                return found is not None

            eventually(waits, within=60, what="the halt waits for the commit")
            committing.commit()
            halting.join(60)
        assert store.terms.cluster().halted


# --- a forced leader -------------------------------------------------------------------------------------


def test_a_forced_node_takes_the_term_and_the_force_stands_until_it_is_ended(led: Store, ledger_url: str) -> None:
    assert led.edits.force_leader("n2", "alice")
    assert led.terms.cluster().forced_to == "n2"
    taken = led.terms.take(1, "n2", ElectedBy.FORCED)
    assert taken is not None
    assert (taken.predecessor, taken.predecessor_ended) == ("n1", EndedBy.FORCED)
    state = led.terms.cluster()
    assert (state.leader, state.elected_by, state.forced_to) == ("n2", ElectedBy.FORCED, "n2")
    assert led.reads.overview().forced_to == "n2"
    assert not led.terms.end_force(1), "a stale leader ends nothing (invariant 3)"
    assert led.terms.end_force(2)
    assert not led.terms.end_force(2)
    assert led.terms.cluster().forced_to is None
    assert events(ledger_url, "leader.") == [
        ("alice", "leader.forced", {"node": "n2", "leader": "n1", "term": 1}),
        ("leader", "leader.force_ended", {"node": "n2", "term": 2}),
    ]


def test_a_leader_that_was_gone_before_a_force_vanished(led: Store, ledger_url: str) -> None:
    led.edits.force_leader("n2", "alice")
    be_silent(ledger_url, led, "n1")
    taken = led.terms.take(1, "n2", ElectedBy.FORCED)
    assert taken is not None
    assert (taken.predecessor, taken.predecessor_ended) == ("n1", EndedBy.VANISHED)
    # The forced node is killed and comes back while its force stands: it replaces nobody but itself.
    taken = led.terms.take(2, "n2", ElectedBy.FORCED)
    assert taken is not None
    assert (taken.predecessor, taken.predecessor_ended) == ("n2", EndedBy.VANISHED)


def test_only_the_node_that_a_force_names_takes_a_term_by_it(led: Store) -> None:
    assert led.terms.take(1, "n2", ElectedBy.FORCED) is None
    led.edits.force_leader("n2", "alice")
    assert led.terms.take(1, "n1", ElectedBy.FORCED) is None
    assert led.terms.cluster().term == 1


def test_a_term_taken_otherwise_ends_a_force(led: Store) -> None:
    led.edits.force_leader("n2", "alice")
    assert led.terms.take(1, "n1", ElectedBy.ZOOKEEPER) is not None
    assert led.terms.cluster().forced_to is None
    assert led.terms.take(2, "n2", ElectedBy.FORCED) is None


def test_a_node_unknown_silent_or_of_other_inputs_is_not_forced(led: Store, ledger_url: str) -> None:
    led.terms.report(replace(NODE, name="other", inputs_id="2019a/1"))
    led.terms.report(replace(NODE, name="silent"))
    be_silent(ledger_url, led, "silent")
    assert not any(led.edits.force_leader(node, "alice") for node in ("nobody", "silent", "other"))
    assert led.terms.cluster().forced_to is None
    assert events(ledger_url, "leader.") == []


def test_a_force_lapses_when_its_node_falls_silent_and_the_leader_clears_it(led: Store, ledger_url: str) -> None:
    led.edits.force_leader("n2", "alice")
    assert not led.terms.end_force(1), "the node is heard of"
    be_silent(ledger_url, led, "n2")
    state = led.terms.cluster()
    assert (state.forced_to, state.has_lapsed_force) == (None, True)
    assert led.terms.end_force(1)
    led.terms.report(NODE)
    state = led.terms.cluster()
    assert (state.forced_to, state.has_lapsed_force) == (None, False)
    assert [action for _, action, _ in events(ledger_url, "leader.")] == ["leader.forced", "leader.force_lapsed"]


def test_a_forced_leader_that_hands_over_takes_its_force_with_it_and_another_does_not(led: Store) -> None:
    led.edits.force_leader("n2", "alice")
    assert led.terms.leave(1)
    assert led.terms.cluster().forced_to == "n2"
    assert led.terms.take(1, "n2", ElectedBy.FORCED) is not None
    assert led.terms.leave(2)
    assert led.terms.cluster().forced_to is None


def test_a_lifted_force_leaves_who_leads_and_is_an_event(led: Store, ledger_url: str) -> None:
    assert led.edits.lift_force("bob") is None
    led.edits.force_leader("n2", "alice")
    assert led.terms.take(1, "n2", ElectedBy.FORCED) is not None
    assert led.edits.lift_force("bob") == "n2"
    assert led.edits.lift_force("bob") is None
    state = led.terms.cluster()
    assert (state.leader, state.term, state.forced_to) == ("n2", 2, None)
    assert events(ledger_url, "leader.force_lifted") == [("bob", "leader.force_lifted", {"node": "n2", "term": 2})]


def test_of_two_who_take_a_forced_term_at_once_one_wins(led: Store, open_another: OpenAnother) -> None:
    led.edits.force_leader("n2", "alice")
    other = open_another()
    won = [
        led.terms.take(1, "n2", ElectedBy.FORCED),
        other.terms.take(1, "n1", ElectedBy.ZOOKEEPER),
    ]
    assert [one is not None for one in won] == [True, False]


# --- the clock -------------------------------------------------------------------------------------------


def test_an_accepted_clock_is_a_number_that_grows(led: Store, ledger_url: str) -> None:
    assert led.terms.cluster().clock_accepts == 0
    assert [led.edits.accept_clock("alice"), led.edits.accept_clock("bob")] == [1, 2]
    assert led.terms.cluster().clock_accepts == 2
    assert events(ledger_url, "clock.") == [
        ("alice", "clock.accept_asked", {"accepts": 1}),
        ("bob", "clock.accept_asked", {"accepts": 2}),
    ]
