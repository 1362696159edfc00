"""What an operator does at night, on virtual nodes: halt, a forced leader, an accepted clock; and an outage's end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sexton.store.protocol import ChangeKind, JobChange
from sexton.terms import Confirmation
from sexton_scheduler.election.candidate import Standing
from tests.acceptance.test_node_loop import ScriptedCandidate, confirmation, scripted
from tests.support.virtual_nodes import TWO, VirtualCluster, VirtualNode, cron_job

SECOND = timedelta(seconds=1)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=10))
    yield made
    made.close()


def ledger(cluster: VirtualCluster) -> list[Any]:
    """All that a leader or a pull may write about ticks."""
    return [
        cluster.rows(statement)
        for statement in (
            "SELECT * FROM claims ORDER BY job_id, scheduled_at",
            "SELECT * FROM skips ORDER BY job_id, after",
            "SELECT * FROM decisions ORDER BY job_id, after",
            "SELECT * FROM cursors ORDER BY job_id",
            "SELECT * FROM proposals ORDER BY proposal_id",
            "SELECT next_at FROM budget",
            "SELECT job_id, quarantined_at FROM jobs ORDER BY job_id",
        )
    ]


def events(cluster: VirtualCluster, action: str) -> list[str]:
    return [detail for (detail,) in cluster.rows(f"SELECT detail FROM events WHERE action = '{action}'")]


# --- halt ------------------------------------------------------------------------------------------------


def test_while_halted_nothing_is_decided_not_even_claims_that_nobody_started(cluster: VirtualCluster) -> None:
    jobs = [
        cron_job("often", "* * * * * *", "all"),
        cron_job("paused", "* * * * *"),
        cron_job("held", "* * * * *", "hold"),
    ]
    _, paused, _ = cluster.apply(*jobs)
    cluster.store.edits.edit([JobChange(ChangeKind.PAUSE, job_id=paused)], "ops")
    cluster.node("one")
    cluster.run(5)
    cluster.store.edits.halt("ops", "the disk is full")
    before = ledger(cluster)
    cluster.run(600)
    assert ledger(cluster) == before
    late = cluster.rows("SELECT count(*) FROM claims WHERE start_by IS NOT NULL AND state = 0")
    assert late[0][0] > 0  # there were claims too late to start, and they were left alone


def test_lifting_a_halt_decides_what_fell_due_meanwhile_by_policy(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    latest, skip, every = cluster.apply(
        cron_job("latest", "* * * * *", "latest"),
        cron_job("skip", "* * * * *", "skip"),
        cron_job("all", "* * * * *", "all"),
    )
    leader = cluster.node("one")
    cluster.run(30)
    cluster.store.edits.halt("ops", "")
    cluster.run(600)
    assert cluster.claims(latest) == cluster.claims(skip) == cluster.claims(every) == []
    cluster.store.edits.lift_halt("ops")
    cluster.run(2)
    assert leader.term == 1
    assert cluster.skips(latest) == [("merged", 9)]
    assert cluster.skips(skip) == [("skipped", 9)]  # the tenth is within its grace
    assert len(cluster.claims(every)) == 10
    assert {cause for (cause,) in cluster.rows("SELECT cause FROM decisions")} == {"late leader"}


def test_a_takeover_in_a_halted_cluster_decides_nothing_until_the_halt_is_lifted(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *", "all"))
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run(25)
    cluster.store.edits.halt("ops", "")
    cluster.run(1)
    before = ledger(cluster)
    leader.is_alive = False
    cluster.run(60)
    assert successor.term == 2
    assert ledger(cluster) == before
    cluster.store.edits.lift_halt("ops")
    cluster.run(5)
    ticks = cluster.claims(job)
    assert ticks == [ticks[0] + n * 10 * SECOND for n in range(len(ticks))]
    assert cluster.rows("SELECT count(*) FROM takeovers WHERE gap_until IS NULL") == [(0,)]


def test_an_idle_leader_does_not_spin_while_halted(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.apply(cron_job("often", "* * * * * *", "all"))
    leader = cluster.node("one")
    cluster.run(5)
    cluster.store.edits.halt("ops", "")
    cluster.run(2)
    steps: Counter[str] = Counter()
    step = leader.loop.step

    def counted() -> float:
        steps["loop"] += 1
        return step()

    monkeypatch.setattr(leader.loop, "step", counted)
    cluster.run(60)
    assert 50 <= steps["loop"] <= 70  # it looks once a second
    assert leader.term == 1


# --- a forced leader -------------------------------------------------------------------------------------


def led_by_one(cluster: VirtualCluster) -> tuple[list[ScriptedCandidate], list[VirtualNode]]:
    """Three nodes at a coordinator that has elected the first."""
    made = [scripted(cluster, name) for name in ("one", "two", "three")]
    candidates, nodes = [candidate for candidate, _ in made], [node for _, node in made]
    cluster.run(1)
    candidates[0].now = Standing.ELECTED
    cluster.run(2)
    assert nodes[0].term == 1
    return candidates, nodes


def test_a_forced_node_leads_at_once_and_is_confirmed_as_the_others_stand_aside(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    (one, two, three), (first, second, third) = led_by_one(cluster)
    assert cluster.store.edits.force_leader("two", "ops")
    cluster.run(1)
    assert [first.term, second.term, third.term] == [None, 2, None]
    assert confirmation(second) is Confirmation.UNCONFIRMED
    assert [one.now, three.now] == [Standing.OUT, Standing.OUT]
    cluster.run(60)
    assert [one.now, three.now] == [Standing.OUT, Standing.OUT]  # as long as it takes
    assert cluster.rows("SELECT term, forced_to FROM cluster") == [(2, "two")]
    two.now = Standing.ELECTED
    cluster.run(3)
    assert confirmation(second) is Confirmation.CONFIRMED
    assert cluster.rows("SELECT term, forced_to FROM cluster") == [(2, None)]
    assert [one.now, three.now] == [Standing.WAITING, Standing.WAITING]
    assert cluster.rows("SELECT elected_by, predecessor_ended FROM takeovers WHERE term = 2") == [("forced", "forced")]
    assert len(events(cluster, "leader.force_ended")) == 1
    ticks = cluster.claims(job)
    assert ticks == [ticks[0] + n * SECOND for n in range(len(ticks))]


def test_with_the_coordinator_away_a_forced_node_leads_unconfirmed_without_flapping(cluster: VirtualCluster) -> None:
    (one, two, three), (first, second, third) = led_by_one(cluster)
    one.now, two.now, three.now = Standing.SUSPENDED, Standing.AWAY, Standing.AWAY
    cluster.store.edits.force_leader("two", "ops")
    cluster.run(300)
    assert [first.term, second.term, third.term] == [None, 2, None]
    assert confirmation(second) is Confirmation.UNCONFIRMED
    two.now = Standing.ELECTED
    cluster.run(60)
    assert [first.term, second.term, third.term] == [None, 2, None]
    assert confirmation(second) is Confirmation.CONFIRMED


def test_a_forced_node_that_dies_leaves_no_leaderless_cluster(cluster: VirtualCluster) -> None:
    (_one, _two, three), (_first, second, third) = led_by_one(cluster)
    cluster.store.edits.force_leader("two", "ops")
    cluster.run(2)
    second.is_alive = False
    cluster.run(14)
    assert three.standing() is Standing.OUT
    cluster.run(3)
    assert three.standing() is Standing.WAITING
    three.now = Standing.ELECTED
    cluster.run(2)
    assert third.term == 3
    assert cluster.rows("SELECT forced_to FROM cluster") == [(None,)]


def test_a_force_to_a_node_that_died_meanwhile_is_cleared_and_does_not_come_back_with_it(
    cluster: VirtualCluster,
) -> None:
    (_one, _two, three), (first, second, _) = led_by_one(cluster)
    second.is_alive = False
    cluster.run(5)
    assert cluster.store.edits.force_leader("two", "ops")
    cluster.run(20)
    assert first.term == 1
    assert cluster.rows("SELECT forced_to FROM cluster") == [(None,)]
    assert len(events(cluster, "leader.force_lapsed")) == 1
    second.is_alive = True
    cluster.run(10)
    assert [first.term, second.term] == [1, None]
    assert three.standing() is Standing.WAITING


def test_a_forced_leader_by_the_database_lease_is_confirmed_and_keeps_its_term(cluster: VirtualCluster) -> None:
    first, second = cluster.node("one"), cluster.node("two")
    cluster.run(5)
    assert first.term == 1
    cluster.store.edits.force_leader("two", "ops")
    cluster.run(3)
    assert [first.term, second.term] == [None, 2]
    assert confirmation(second) is Confirmation.CONFIRMED
    assert cluster.rows("SELECT forced_to FROM cluster") == [(None,)]
    cluster.run(120)
    assert [first.term, second.term] == [None, 2]
    second.is_alive = False
    cluster.run(15)
    assert first.term == 3  # the lease watches again


# --- the end of an outage --------------------------------------------------------------------------------


def test_after_an_outage_an_elected_follower_lets_a_living_leader_come_first(cluster: VirtualCluster) -> None:
    (one, two, three), (first, _second, _third) = led_by_one(cluster)
    one.now, two.now, three.now = Standing.LOST, Standing.AWAY, Standing.AWAY
    cluster.run(60)
    two.now = three.now = Standing.WAITING
    cluster.run(1)
    two.now = Standing.ELECTED
    cluster.run(1)
    assert two.standing() is Standing.OUT
    one.now = Standing.ELECTED
    cluster.run(2)
    assert confirmation(first) is Confirmation.CONFIRMED
    cluster.run(20)
    assert two.standing() is Standing.WAITING
    assert cluster.rows("SELECT term FROM cluster") == [(1,)]


def test_a_leader_that_stays_cut_off_from_the_coordinator_is_replaced_after_two_sessions(
    cluster: VirtualCluster,
) -> None:
    (one, two, _), (first, second, _) = led_by_one(cluster)
    one.now = two.now = Standing.AWAY
    cluster.run(60)
    two.now = Standing.ELECTED
    cluster.run(11)
    assert [first.term, second.term] == [1, None]
    assert two.standing() is Standing.OUT
    cluster.run(2)
    assert two.standing() is Standing.WAITING
    two.now = Standing.ELECTED
    cluster.run(2)
    assert [first.term, second.term] == [None, 2]


def test_a_leader_that_shows_no_sign_of_life_is_not_waited_for(cluster: VirtualCluster) -> None:
    (_one, two, _), (first, second, _) = led_by_one(cluster)
    two.now = Standing.AWAY
    cluster.run(5)
    first.is_alive = False
    cluster.run(5)
    two.now = Standing.ELECTED
    cluster.run(1)
    assert second.term == 2


# --- the clock -------------------------------------------------------------------------------------------


def test_nodes_that_disagree_about_a_jump_wait_until_an_operator_accepts_it(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("often", "0 * * * * *", "all"))
    leader, other = cluster.node("one"), cluster.node("two")
    cluster.run(65)
    cluster.clock.database_ahead = timedelta(hours=1)
    other.is_alive = False
    cluster.run(2)

    def stubborn() -> None:  # a host whose own clock jumped by half an hour: what it reads agrees with nobody
        cluster.rows(f"UPDATE nodes SET clock_offset_ms = 1800000, seen_at = {_micros(cluster)} WHERE name = 'two'")

    before = cluster.claims(job)
    for _ in range(60):
        stubborn()
        cluster.run(5)
    assert cluster.claims(job) == before
    assert leader.state.view.clock_jump is not None
    assert abs(leader.state.view.clock_jump - timedelta(hours=1)) < SECOND
    (node,) = [node for node in cluster.store.reads.nodes() if node.name == "one"]
    assert node.clock_jump is not None
    cluster.store.edits.accept_clock("ops")
    stubborn()
    cluster.run(3)
    assert leader.state.view.clock_jump is None
    assert cluster.claims(job)[-1] > cluster.clock.database_now() - 61 * SECOND
    assert any("an operator" in detail for detail in events(cluster, "clock.accepted"))
    assert len(events(cluster, "clock.jumped")) == 1
    ticks = cluster.claims(job)
    assert len(ticks) == len(set(ticks)) > 60


def _micros(cluster: VirtualCluster) -> int:
    return int(cluster.clock.database_now().timestamp() * 1_000_000)


def test_late_claims_are_not_decided_by_a_clock_in_doubt(cluster: VirtualCluster) -> None:
    """A jump makes every claim that was written ahead look late at once."""
    cluster.apply(cron_job("often", "* * * * * *", "all"))
    cluster.node("one")
    cluster.run(8)
    cluster.clock.database_ahead = timedelta(hours=1)
    before = ledger(cluster)
    cluster.run(50)
    assert ledger(cluster) == before
    cluster.store.edits.accept_clock("ops")
    cluster.run(20)
    assert ledger(cluster) != before


def test_a_jump_of_the_clock_takes_no_lease_from_a_worker_that_renews_it(cluster: VirtualCluster) -> None:
    """Invariant 4's grants outlive a clock that jumps: one lease long, expired leases are left alone."""
    (job,) = cluster.apply(cron_job("often", "* * * * * *", "all"))
    cluster.node("one")
    cluster.run(60)
    lease = timedelta(seconds=30)
    running = f"UPDATE claims SET state = 1, token = 1, worker_id = 1, lease_expires_at = %d WHERE job_id = {job}"
    first = "(SELECT min(scheduled_at) FROM claims)"

    def renew() -> None:
        at = int((cluster.clock.database_now() + lease).timestamp() * 1_000_000)
        cluster.rows(f"{running % at} AND scheduled_at = {first}")

    renew()
    cluster.clock.database_ahead = timedelta(hours=1)
    for _ in range(6):
        cluster.run(10)
        state = cluster.rows(f"SELECT state, token FROM claims WHERE scheduled_at = {first}")
        assert state == [(1, 1)]
        renew()
