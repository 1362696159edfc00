"""`sexton scheduler` as real processes with real signals, on SQLite and on PostgreSQL."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta

from sqlalchemy import create_engine, text

from sexton.job_rules import MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from sexton.store.schema import upgrade
from sexton.store.tables import from_micros
from sexton.targets import CommandTarget
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.waiting import eventually

LIMIT = 60.0


def start(processes: ProcessGroup, url: str, name: str) -> RunningProcess:
    return processes.sexton("--database", url, "--coordinator", "database:", "scheduler", "--name", name, name=name)


def leader_is(store: Store, name: str) -> None:
    eventually(lambda: store.terms.cluster().leader == name, within=LIMIT, what=f"{name} leads")


def every_second(policy: str = "all") -> JobDefinition:
    return JobDefinition(
        "often", ({"cron": "* * * * * *"},), CommandTarget(("true",)), missed=MissedRules(MissedPolicy(policy))
    )


def apply(store: Store, definition: JobDefinition) -> int:
    return store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition)], "tests")[0].job_id


def written(url: str) -> list[tuple[datetime, datetime]]:
    """``(scheduled_at, written_at)`` of every claim, by tick."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            found = connection.execute(text("SELECT scheduled_at, written_at FROM claims ORDER BY 1")).all()
    finally:
        engine.dispose()
    return [(_instant(tick), _instant(at)) for tick, at in found]


def _instant(value: object) -> datetime:
    return value if isinstance(value, datetime) else from_micros(int(str(value)))


def assert_unbroken(ticks: list[datetime]) -> None:
    assert ticks == [ticks[0] + n * timedelta(seconds=1) for n in range(len(ticks))]


def test_a_killed_leader_delays_no_tick_because_its_claims_are_written_ahead(
    url: str, store: Store, processes: ProcessGroup
) -> None:
    """Invariants 2 and 5."""
    store.edits.set_setting("session", "2s", "tests")
    apply(store, every_second())
    leader = start(processes, url, "one")
    leader_is(store, "one")
    start(processes, url, "two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    eventually(lambda: written(url), within=LIMIT, what="claims are written")
    first_written = store.now()
    leader.kill()
    leader_is(store, "two")
    reached = store.now() + timedelta(seconds=60)
    eventually(lambda: written(url)[-1][0] >= reached, within=LIMIT, what="the horizon is filled again")
    claims = written(url)
    assert_unbroken([tick for tick, _ in claims])
    assert all(at < tick for tick, at in claims if tick > first_written)


def test_without_a_horizon_every_tick_of_the_gap_is_decided_on_record(
    url: str, store: Store, processes: ProcessGroup
) -> None:
    """Invariant 2."""
    store.edits.set_setting("session", "4s", "tests")
    store.edits.set_setting("horizon", "0s", "tests")
    apply(store, every_second())
    leader = start(processes, url, "one")
    leader_is(store, "one")
    start(processes, url, "two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    eventually(lambda: len(written(url)) >= 2, within=LIMIT, what="ticks are claimed as they fall due")
    leader.kill()
    leader_is(store, "two")
    takeover = next(one for one in store.reads.takeovers() if one.node == "two")
    taken_at = takeover.taken_at
    eventually(lambda: written(url)[-1][0] > taken_at, within=LIMIT, what="the ticks up to the takeover are decided")
    claims = written(url)
    assert_unbroken([tick for tick, _ in claims])
    assert [tick for tick, at in claims if tick < taken_at <= at], "the successor wrote what nobody had"
    assert takeover.predecessor == "one"
    assert takeover.predecessor_ended == "vanished"


def test_sigterm_hands_over_and_ends_with_code_0(url: str, store: Store, processes: ProcessGroup) -> None:
    leader = start(processes, url, "one")
    leader_is(store, "one")
    start(processes, url, "two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    leader.signal(signal.SIGTERM)
    assert leader.wait(within=LIMIT) == 0
    leader_is(store, "two")
    assert [node.name for node in store.reads.nodes()] == ["two"]


def test_a_frozen_leader_that_thaws_follows(url: str, store: Store, processes: ProcessGroup) -> None:
    """Invariant 3."""
    store.edits.set_setting("session", "2s", "tests")
    apply(store, every_second())
    leader = start(processes, url, "one")
    leader_is(store, "one")
    start(processes, url, "two")
    eventually(lambda: len(store.reads.nodes()) == 2, within=LIMIT, what="both nodes report")
    leader.freeze()
    leader_is(store, "two")
    leader.thaw()
    roles = {"one": "follower", "two": "leader"}
    eventually(
        lambda: {node.name: node.role for node in store.reads.nodes()} == roles, within=LIMIT, what="one follows two"
    )
    assert store.terms.cluster().term == 2
    assert_unbroken([tick for tick, _ in written(url)])


def test_a_node_of_another_cluster_is_refused_in_one_sentence(url: str, store: Store, processes: ProcessGroup) -> None:
    start(processes, url, "one")
    leader_is(store, "one")
    stranger = processes.sexton(
        "--database", url, "--coordinator", "zookeeper://127.0.0.1:1/other", "scheduler", "--name", "stranger"
    )
    assert stranger.wait(within=LIMIT) == 1
    assert "this database belongs to a cluster whose coordinator is database:" in stranger.stderr()
    assert "Traceback" not in stranger.stderr()


def test_a_database_that_hangs_ends_nothing(own_postgres_server: PostgresServer, processes: ProcessGroup) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    store = open_store(StoreOptions(url))
    try:
        store.edits.set_setting("horizon", "0s", "tests")
        apply(store, every_second())
        start(processes, url, "one")
        leader_is(store, "one")
        eventually(lambda: written(url), within=LIMIT, what="ticks are claimed as they fall due")
        own_postgres_server.kill()
        own_postgres_server.start()
        store.close()
        restarted = store.now()
        eventually(lambda: written(url)[-1][0] > restarted, within=LIMIT, what="the leader goes on")
        assert_unbroken([tick for tick, _ in written(url)])
    finally:
        store.close()


def test_a_node_waits_for_a_database_that_is_not_there_yet(
    own_postgres_server: PostgresServer, processes: ProcessGroup
) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    own_postgres_server.kill()
    node = start(processes, url, "one")
    eventually(lambda: "database.unreachable" in node.stderr(), within=LIMIT, what="the node says so")
    own_postgres_server.start()
    store = open_store(StoreOptions(url))
    try:
        leader_is(store, "one")
    finally:
        store.close()


def test_a_second_sigterm_ends_a_node_whose_database_hangs_at_once(
    own_postgres_server: PostgresServer, processes: ProcessGroup
) -> None:
    url = own_postgres_server.create_database()
    upgrade(url)
    store = open_store(StoreOptions(url))
    node = start(processes, url, "one")
    leader_is(store, "one")
    store.close()
    own_postgres_server.freeze()
    try:
        node.signal(signal.SIGTERM)
        eventually(lambda: "node.stopping" in node.stderr(), within=LIMIT, what="the node begins to stop")
        node.signal(signal.SIGTERM)
        assert node.wait(within=LIMIT) == 128 + signal.SIGTERM  # not 0: it did not wait for its good-bye
    finally:
        own_postgres_server.thaw()
