"""Who leads on virtual time over a real ledger: takeovers, hand-overs, a coordinator that is away, clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from sexton.errors import DatabaseUnreachable
from sexton.store.tables import from_micros
from sexton.terms import Confirmation, ElectedBy
from sexton_scheduler.election.candidate import Standing
from tests.support.virtual_nodes import TWO, VirtualCluster, VirtualNode, cron_job

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - 10 * MINUTE)
    yield made
    made.close()


# --- the textbook scenario ------------------------------------------------------------------------


def test_with_the_horizon_the_claim_for_two_is_written_before_the_leader_dies(cluster: VirtualCluster) -> None:
    """Invariant 5: the job at 02:00, the leader dead at 01:59:50, a session of 30 s."""
    cluster.set(horizon="60s", session="30s")
    (billing,) = cluster.apply(cron_job("billing", "0 2 * * *"))
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run_until(TWO - 10 * SECOND)
    assert leader.term == 1
    leader.is_alive = False
    cluster.run_until(TWO)
    assert successor.term is None  # nobody leads at 02:00
    ((tick, written, available),) = cluster.rows("SELECT scheduled_at, written_at, available_at FROM claims")
    assert from_micros(tick) == from_micros(available) == TWO
    assert from_micros(written) < TWO - 10 * SECOND
    cluster.run_until(TWO + MINUTE)
    assert successor.term == 2
    assert cluster.claims(billing) == [TWO]
    assert cluster.rows("SELECT * FROM decisions") == []  # nothing was missed, nothing is late yet


def test_without_the_horizon_the_successor_decides_the_tick_by_policy_on_record(cluster: VirtualCluster) -> None:
    """Invariant 2."""
    cluster.set(session="30s")
    cluster.set(horizon="0s")
    late, skipped = cluster.apply(
        cron_job("billing", "0 2 * * *"), cron_job("mail", "0 2 * * *", "skip", grace=10 * SECOND)
    )
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run_until(TWO - 10 * SECOND)
    leader.is_alive = False
    cluster.run_until(TWO + MINUTE)
    assert successor.term == 2
    assert cluster.claims(late) == [TWO]
    assert cluster.claims(skipped) == []
    assert cluster.skips(skipped) == [("skipped", 1)]
    recorded = dict(cluster.rows("SELECT job_id, reason FROM decisions WHERE term = 2 AND cause = 'takeover'"))
    assert recorded[late].startswith("daily, 1 missed: 02:00:00 fired ")
    assert recorded[skipped] == "daily, 1 missed: 1 skipped (policy skip: older than grace 10s)"
    ((predecessor, ended, gap_from, gap_until),) = cluster.rows(
        "SELECT predecessor, predecessor_ended, gap_from, gap_until FROM takeovers WHERE term = 2"
    )
    assert (predecessor, ended) == ("one", "vanished")
    assert TWO - 20 * SECOND <= from_micros(gap_from) <= TWO - 10 * SECOND
    assert from_micros(gap_until) > TWO


# --- leadership -----------------------------------------------------------------------------------


def test_a_fresh_cluster_elects_at_once(cluster: VirtualCluster) -> None:
    first, second = cluster.node("one"), cluster.node("two")
    cluster.run(0.5)
    assert [first.term, second.term] == [1, None]


def test_a_fault_of_one_beat_does_not_stop_the_heart(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = cluster.node("one")
    cluster.run(5)

    def broken(*_: object) -> bool:
        raise ValueError("a fault")

    with monkeypatch.context() as patched:
        patched.setattr(leader.store.terms, "beat", broken)
        assert 0 < leader.heartbeat.step() <= 1
    ((before,),) = cluster.rows("SELECT counter FROM heartbeat")
    leader.heartbeat.step()
    assert cluster.rows("SELECT counter FROM heartbeat") == [(before + 1,)]


def test_a_stopped_leader_hands_over_within_a_step(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run(5)
    leader.state.stop()
    leader.step()
    assert leader.loop.is_done
    successor.step()  # woken by the notification of the seat that became empty
    assert successor.term == 2
    cluster.run(30)
    ticks = cluster.claims(job)
    assert ticks == [ticks[0] + n * SECOND for n in range(len(ticks))]
    assert cluster.rows("SELECT predecessor_ended FROM takeovers WHERE term = 2") == [("resigned",)]


def test_a_leader_asked_to_resign_does_not_win_again_while_another_waits(cluster: VirtualCluster) -> None:
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run(5)
    assert cluster.store.edits.request_resign("ops") == "one"
    cluster.run(1)
    assert [leader.term, successor.term] == [None, 2]
    cluster.run(30)
    assert [leader.term, successor.term] == [None, 2]


def test_a_lone_leader_asked_to_resign_leads_again_after_a_session(cluster: VirtualCluster) -> None:
    leader = cluster.node("one")
    cluster.run(5)
    cluster.store.edits.request_resign("ops")
    cluster.run(2)
    assert leader.term is None
    cluster.run(7)
    assert leader.term == 2


def test_a_frozen_leader_that_wakes_writes_nothing_and_steps_down(cluster: VirtualCluster) -> None:
    """Invariant 3."""
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run(5)
    leader.is_alive = False
    cluster.run(20)
    assert successor.term == 2
    written = len(cluster.claims(job))
    leader.is_alive = True
    assert leader.term == 1  # it still believes
    leader.step()
    assert len(cluster.claims(job)) == written
    cluster.run(2)
    assert [leader.term, successor.term] == [None, 2]
    assert cluster.rows("SELECT count(*) FROM takeovers") == [(2,)]


def test_a_node_with_other_inputs_never_campaigns(cluster: VirtualCluster) -> None:
    """Invariant 8."""
    cluster.rows("UPDATE cluster SET coordinator = 'database:', inputs_id = '1999a/1'")
    stranger = cluster.node("one")
    cluster.run(60)
    assert stranger.term is None
    assert cluster.rows("SELECT term FROM cluster") == [(0,)]


# --- a coordinator that can be away ---------------------------------------------------------------


@dataclass
class ScriptedCandidate:
    """A ``Candidate`` whose standing the test sets."""

    now: Standing = Standing.OUT
    campaigns: int = 0
    resigned: int = 0
    elected_by: ElectedBy = field(default=ElectedBy.ZOOKEEPER)

    def campaign(self) -> None:
        self.campaigns += 1
        self.now = Standing.WAITING

    def standing(self) -> Standing:
        return self.now

    def confirm(self) -> bool:
        return self.now is Standing.ELECTED

    def resign(self) -> None:
        self.resigned += 1
        self.now = Standing.OUT

    def seated(self) -> None: ...

    def rest(self) -> None:
        self.resign()

    def adopt(self, session: timedelta) -> None: ...

    def describe(self) -> str:
        return "scripted"

    def close(self) -> None: ...


def confirmation(node: VirtualNode) -> Confirmation | None:
    return None if node.state.leading is None else node.state.leading.confirmation


def scripted(cluster: VirtualCluster, name: str) -> tuple[ScriptedCandidate, VirtualNode]:
    candidate = ScriptedCandidate()
    return candidate, cluster.node(name, candidate)


def test_an_outage_of_the_coordinator_does_not_stop_the_schedule(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "* * * * * *"))
    candidate, leader = scripted(cluster, "one")
    cluster.run(1)
    candidate.now = Standing.ELECTED
    cluster.run(5)
    assert leader.term == 1
    for away in (Standing.SUSPENDED, Standing.LOST):
        candidate.now = away
        cluster.run(100)
        assert leader.term == 1
        assert confirmation(leader) is Confirmation.UNCONFIRMED
    assert candidate.campaigns == 2  # LOST: it campaigned again
    assert cluster.claims(job)[-1] >= cluster.clock.database_now() + 59 * SECOND
    candidate.now = Standing.ELECTED
    cluster.run(2)
    assert leader.term == 1  # confirmed in the term it had
    assert confirmation(leader) is Confirmation.CONFIRMED


def test_who_is_elected_while_the_old_leader_goes_on_supersedes_it(cluster: VirtualCluster) -> None:
    one, leader = scripted(cluster, "one")
    two, successor = scripted(cluster, "two")
    cluster.run(1)
    one.now = Standing.ELECTED
    cluster.run(2)
    one.now, two.now = Standing.LOST, Standing.ELECTED
    cluster.run(3)
    assert [leader.term, successor.term] == [None, 2]
    assert one.now is Standing.WAITING  # campaigning again


def test_nobody_takes_over_by_the_lease_while_the_heartbeat_moves(cluster: VirtualCluster) -> None:
    one, leader = scripted(cluster, "one")
    two, other = scripted(cluster, "two")
    cluster.run(1)
    one.now = Standing.ELECTED
    cluster.run(2)
    one.now, two.now = Standing.SUSPENDED, Standing.AWAY
    cluster.run(300)
    assert [leader.term, other.term] == [1, None]


def test_a_leader_that_dies_while_the_coordinator_is_away_is_followed_by_the_lease(cluster: VirtualCluster) -> None:
    one, leader = scripted(cluster, "one")
    two, other = scripted(cluster, "two")
    cluster.run(1)
    one.now = Standing.ELECTED
    cluster.run(2)
    two.now = Standing.AWAY
    leader.is_alive = False
    cluster.run(28)
    assert other.term is None
    cluster.run(10)  # failover.database_after 30s
    assert other.term == 2
    assert confirmation(other) is Confirmation.DEGRADED
    assert cluster.rows("SELECT elected_by FROM takeovers WHERE term = 2") == [("database",)]
    two.now = Standing.ELECTED  # the coordinator is back and confirms it
    cluster.run(2)
    assert other.term == 2
    assert confirmation(other) is Confirmation.CONFIRMED


@pytest.mark.parametrize(
    ("session", "after"), [("6s", "6s"), ("6s", "2s"), ("12s", "1s"), ("2s", "20s"), ("30s", "30s")]
)
def test_the_leader_lease_lapses_with_any_pair_of_settings(cluster: VirtualCluster, session: str, after: str) -> None:
    """Also those that are refused today: rows of a database may be older than the check."""
    for key, value in (("session", session), ("failover.database_after", after)):
        cluster.rows(f"INSERT INTO settings (key, value, changed_at, changed_by) VALUES ('{key}', '{value}', 0, 'x')")
    one, leader = scripted(cluster, "one")
    two, other = scripted(cluster, "two")
    cluster.run(1)
    one.now = Standing.ELECTED
    cluster.run(10)  # it looks at least every 5 s
    assert leader.term == 1
    two.now = Standing.AWAY
    leader.is_alive = False
    cluster.run(75)
    assert other.term == 2


def test_an_elected_node_cut_off_from_the_database_makes_way(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, leader = scripted(cluster, "one")
    two, other = scripted(cluster, "two")
    cluster.run(1)
    one.now = Standing.ELECTED
    cluster.run(2)
    with monkeypatch.context() as patched:
        patched.setattr(leader.store.terms, "cluster", _away)
        patched.setattr(leader.store.terms, "beat", _away)
        patched.setattr(leader.store.ticks, "commit", _away)
        cluster.run(5)
        assert one.standing() is Standing.ELECTED  # less than a session
        cluster.run(3)
        assert one.standing() is Standing.OUT  # another may be elected, and it does not campaign
        two.now = Standing.ELECTED
        cluster.run(3)
        assert other.term == 2
    cluster.run(5)
    assert leader.term is None
    assert one.standing() is Standing.WAITING


def _away(*_: object) -> None:
    raise DatabaseUnreachable("the database does not answer")


# --- clocks ---------------------------------------------------------------------------------------


def test_a_lone_node_decides_nothing_for_a_minute_after_the_clock_jumped(cluster: VirtualCluster) -> None:
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *"))
    leader = cluster.node("one")
    cluster.run(5)
    before = len(cluster.claims(job))
    cluster.clock.database_ahead = timedelta(hours=1)
    cluster.run(55)
    assert len(cluster.claims(job)) == before
    assert leader.term == 1
    cluster.run(10)
    assert len(cluster.claims(job)) > before
    ((detail,),) = cluster.rows("SELECT detail FROM events WHERE action = 'clock.accepted'")
    assert "a lone node" in detail


def test_with_a_second_node_that_reads_the_same_clock_the_leader_goes_on_at_once(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    (job,) = cluster.apply(cron_job("often", "*/10 * * * * *"))
    cluster.node("one")
    cluster.node("two")
    cluster.run(5)
    cluster.clock.database_ahead = timedelta(minutes=1)
    cluster.run(12)
    assert cluster.claims(job)[-1] > cluster.clock.database_now() - 10 * SECOND
    details = [detail for (detail,) in cluster.rows("SELECT detail FROM events WHERE action = 'clock.accepted'")]
    assert details
    assert all("a second node agrees" in detail for detail in details)
