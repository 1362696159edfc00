"""Who leads: the term's compare-and-set, the heartbeat, hand-over; on both databases."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from sexton.errors import Refused
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.terms import Confirmation, ElectedBy, EndedBy, NodeReport
from tests.support.leader_scene import rows, set_columns
from tests.support.waiting import eventually, stays

REPORT = NodeReport(
    name="n1",
    address="10.0.0.1",
    version="0.1.0",
    pid=7,
    role="follower",
    confirmation=None,
    coordinator_status="database leader lease",
    jobs_warm=3,
    behind_ms=12,
    clock_offset_ms=-4,
    claims_upto=None,
    inputs_id="2026b/1",
)


def test_the_first_leader_has_no_predecessor_and_no_gap(store: Store, ledger_url: str) -> None:
    taken = store.terms.take(0, "n1", ElectedBy.ZOOKEEPER)
    assert taken is not None
    assert (taken.term, taken.predecessor, taken.predecessor_ended, taken.gap_from) == (1, None, EndedBy.NONE, None)
    state = store.terms.cluster()
    assert (state.term, state.leader, state.leader_since, state.elected_by) == (
        1,
        "n1",
        taken.taken_at,
        ElectedBy.ZOOKEEPER,
    )
    (takeover,) = rows(ledger_url, "takeovers")
    assert (takeover.term, takeover.node, takeover.taken_at, takeover.gap_until) == (1, "n1", taken.taken_at, None)


def test_a_term_is_taken_once(store: Store) -> None:
    assert store.terms.take(0, "n1", ElectedBy.DATABASE) is not None
    assert store.terms.take(0, "n2", ElectedBy.DATABASE) is None
    assert store.terms.cluster().leader == "n1"


def test_a_vanished_leaders_gap_begins_with_its_last_heartbeat(store: Store) -> None:
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    assert store.terms.beat(1, Confirmation.CONFIRMED)
    last = store.terms.heartbeat().at
    taken = store.terms.take(1, "n2", ElectedBy.DATABASE)
    assert taken is not None
    assert (taken.predecessor, taken.predecessor_ended, taken.gap_from) == ("n1", EndedBy.VANISHED, last)


def test_a_clean_hand_over_is_recorded_as_resigned(store: Store, ledger_url: str) -> None:
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    assert store.terms.leave(1)
    assert not store.terms.leave(1)
    assert store.terms.cluster().leader is None
    assert not store.terms.heartbeat().has_leader
    (cluster,) = rows(ledger_url, "cluster")
    taken = store.terms.take(1, "n2", ElectedBy.DATABASE)
    assert taken is not None
    assert (taken.predecessor, taken.predecessor_ended, taken.gap_from) == ("n1", EndedBy.RESIGNED, cluster.left_at)


def test_a_stale_term_leaves_nothing_and_beats_nothing(store: Store) -> None:
    """Invariant 3."""
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    store.terms.take(1, "n2", ElectedBy.DATABASE)
    before = store.terms.heartbeat()
    assert not store.terms.beat(1, Confirmation.CONFIRMED)
    assert not store.terms.leave(1)
    assert store.terms.heartbeat() == before
    assert store.terms.cluster().leader == "n2"


def test_a_heartbeat_moves_the_counter_and_carries_the_confirmation(store: Store) -> None:
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    first = store.terms.heartbeat()
    assert store.terms.beat(1, Confirmation.UNCONFIRMED)
    second = store.terms.heartbeat()
    assert (second.term, second.counter, second.confirmation) == (1, first.counter + 1, Confirmation.UNCONFIRMED)
    assert second.at >= first.at
    assert first.has_leader
    assert second.has_leader


def test_a_request_to_resign_reaches_the_leader_and_ends_with_it(store: Store) -> None:
    assert store.edits.request_resign("alice") is None
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    assert store.edits.request_resign("alice") == "n1"
    assert store.terms.cluster().resign_requested
    store.terms.leave(1)
    assert not store.terms.cluster().resign_requested
    store.terms.take(1, "n2", ElectedBy.DATABASE)
    store.edits.request_resign("alice")
    store.terms.take(2, "n3", ElectedBy.DATABASE)
    assert not store.terms.cluster().resign_requested


def test_each_change_of_a_leaders_confirmation_is_one_event(store: Store, ledger_url: str) -> None:
    store.terms.take(0, "n1", ElectedBy.ZOOKEEPER)
    for confirmation in ("confirmed", "unconfirmed", "unconfirmed", "confirmed", "confirmed", "degraded"):
        assert store.terms.beat(1, Confirmation(confirmation))
    store.terms.take(1, "n2", ElectedBy.ZOOKEEPER)
    store.terms.beat(1, Confirmation.UNCONFIRMED)  # its term is over
    store.terms.beat(2, Confirmation.CONFIRMED)
    told = [
        (event.actor, json.loads(event.detail)) for event in rows(ledger_url, "events", action="leader.confirmation")
    ]
    assert told == [
        ("n1", {"term": 1, "from": before, "to": after})
        for before, after in (("confirmed", "unconfirmed"), ("unconfirmed", "confirmed"), ("confirmed", "degraded"))
    ]


@pytest.mark.parametrize("unsure", [Confirmation.UNCONFIRMED, Confirmation.DEGRADED])
def test_a_leader_that_nobody_could_follow_is_not_asked_to_resign(
    store: Store, ledger_url: str, unsure: Confirmation
) -> None:
    store.terms.take(0, "n1", ElectedBy.ZOOKEEPER)
    store.terms.beat(1, unsure)
    with pytest.raises(
        Refused, match=f"n1 is not asked to resign: it leads {unsure.value}.*`sexton leader force NODE`"
    ):
        store.edits.request_resign("alice")
    assert not store.terms.cluster().resign_requested
    assert rows(ledger_url, "events", action="leader.asked_to_resign") == []
    store.terms.beat(1, Confirmation.CONFIRMED)
    assert store.edits.request_resign("alice") == "n1"
    assert [event.actor for event in rows(ledger_url, "events", action="leader.asked_to_resign")] == ["alice"]


def test_takeovers_and_hand_overs_are_events(store: Store, ledger_url: str) -> None:
    store.terms.take(0, "n1", ElectedBy.DATABASE)
    store.terms.leave(1)
    events = [(event.actor, event.action, json.loads(event.detail)["term"]) for event in rows(ledger_url, "events")]
    assert events == [("n1", "term.taken", 1), ("n1", "leader.left", 1)]


def test_a_report_tells_of_another_process_that_reported_under_the_name(store: Store, ledger_url: str) -> None:
    assert store.terms.report(REPORT) is None
    assert store.terms.report(REPORT) is None
    assert store.terms.report(replace(REPORT, pid=99)) == f"process {REPORT.pid} on {REPORT.address}"
    assert store.terms.report(replace(REPORT, address="elsewhere", pid=99)) == f"process 99 on {REPORT.address}"
    set_columns(ledger_url, "nodes", {"name": REPORT.name}, seen_at=store.now() - timedelta(seconds=6))
    assert store.terms.report(REPORT) is None


def test_a_nodes_row_is_refreshed_and_forgotten(store: Store, ledger_url: str) -> None:
    store.terms.report(REPORT)
    (first,) = rows(ledger_url, "nodes")
    at = store.now()
    store.terms.report(replace(REPORT, role="leader", confirmation=Confirmation.CONFIRMED, claims_upto=at))
    (second,) = rows(ledger_url, "nodes")
    assert (second.role, second.confirmation, second.claims_upto, second.started_at) == (
        "leader",
        "confirmed",
        at,
        first.started_at,
    )
    assert second.seen_at >= first.seen_at
    store.terms.report(replace(REPORT, pid=8))
    (restarted,) = rows(ledger_url, "nodes")
    assert restarted.started_at > first.started_at
    store.terms.forget("n1")
    assert rows(ledger_url, "nodes") == []


# --- PostgreSQL: what is in a takeover's way, and who is stuck ---------------------------------------


@pytest.fixture
def postgres_store(postgres_ledger: str) -> Iterator[Store]:
    store = open_store(StoreOptions(postgres_ledger))
    yield store
    store.close()


def connect(url: str, name: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url.replace("+psycopg", ""), application_name=name)


def is_terminated(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        connection.execute("SELECT 1")
    return connection.closed


def test_a_takeover_terminates_who_keeps_the_cluster_row_locked(postgres_store: Store, postgres_ledger: str) -> None:
    """Invariant 1: a leader stopped inside a transaction does not keep its successor out."""
    with contextlib.closing(connect(postgres_ledger, "sexton scheduler")) as stopped:
        stopped.execute("SELECT * FROM cluster FOR SHARE")
        with contextlib.closing(connect(postgres_ledger, "sexton scheduler")) as other:
            other.execute("SELECT * FROM cluster FOR SHARE")
            taken = postgres_store.terms.take(0, "n2", ElectedBy.DATABASE)
            assert taken is not None
            assert taken.term == 1
            assert is_terminated(other)
        assert is_terminated(stopped)
    (takeover,) = rows(postgres_ledger, "takeovers")
    assert takeover.blockers_terminated == 2


def test_a_short_lock_on_the_cluster_row_is_waited_for(postgres_store: Store, postgres_ledger: str) -> None:
    postgres_store.now()  # connected before the lock is taken
    with contextlib.closing(connect(postgres_ledger, "sexton scheduler")) as committing:
        committing.execute("SELECT * FROM cluster FOR SHARE")
        end = threading.Timer(0.3, committing.rollback)
        end.start()
        assert postgres_store.terms.take(0, "n2", ElectedBy.DATABASE) is not None
        end.join()
        assert not is_terminated(committing)
    (takeover,) = rows(postgres_ledger, "takeovers")
    assert takeover.blockers_terminated == 0


@pytest.mark.parametrize(
    ("name", "statement", "is_stuck"),
    [
        ("sexton apply", "UPDATE budget SET next_at = next_at", True),
        ("sexton worker", "SELECT * FROM cluster FOR SHARE", True),
        ("sexton audit", "SELECT * FROM cluster", False),  # reads only: it keeps nobody waiting
        ("psql", "UPDATE budget SET next_at = next_at", False),
    ],
)
def test_a_transaction_that_waits_for_its_client_is_terminated(
    postgres_store: Store, postgres_ledger: str, name: str, statement: str, is_stuck: bool
) -> None:
    with contextlib.closing(connect(postgres_ledger, name)) as connection:
        connection.execute(statement.encode())
        assert postgres_store.terms.terminate_stuck() == 0  # it is younger than 2 s

        def terminated() -> int:
            return postgres_store.terms.terminate_stuck(timedelta(seconds=1))

        if is_stuck:
            assert eventually(terminated, within=60, what="the stuck backend is terminated") == 1
        else:
            stays(lambda: terminated() == 0, during=1.5, what=f"{name} is left alone")
        assert is_terminated(connection) is is_stuck


def test_a_client_stopped_between_two_messages_of_a_pipeline_is_terminated(
    postgres_store: Store, postgres_ledger: str
) -> None:
    """Neither the idle nor the statement timeout sees it: the backend is active and waits for its client."""
    with contextlib.closing(connect(postgres_ledger, "sexton worker")) as connection:
        connection.autocommit = True
        connection.execute("SET idle_in_transaction_session_timeout = '1s'")
        connection.execute("SET statement_timeout = '1s'")
        with contextlib.suppress(psycopg.Error), connection.pipeline():
            connection.execute("BEGIN")
            connection.execute("SELECT * FROM cluster FOR SHARE")
            connection.pgconn.send_flush_request()
            connection.pgconn.flush()  # and no Sync: what comes next is never sent
            eventually(postgres_store.terms.terminate_stuck, within=60, what="the stuck backend is terminated")
    assert postgres_store.terms.take(0, "n2", ElectedBy.DATABASE) is not None
