"""Metrics and health as nodes and workers serve them: real loops, on virtual time or a fake store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from prometheus_client import parser

from sexton.claims import Origin
from sexton.distributions import Distribution
from sexton.errors import DatabaseUnreachable, InvalidSetting
from sexton.http_addresses import HttpAddress
from sexton.service_endpoint import Answer, Endpoint, Says
from sexton.store.protocol import Store
from sexton_scheduler.cluster_families import QUEUES, TOO_OLD_SECONDS
from sexton_scheduler.node import NodeOptions, run_node
from sexton_scheduler.node_metrics import NodeMetrics
from sexton_tui.local_cluster import programs
from sexton_worker.heartbeat import HeartbeatLoop
from sexton_worker.run_counts import LATENESS_SECONDS
from sexton_worker.worker import WorkerOptions, run_worker
from sexton_worker.worker_metrics import WorkerMetrics
from tests.support.ports import free_port
from tests.support.runs import a_grant
from tests.support.virtual_nodes import TWO, VirtualCluster, VirtualNode, cron_job
from tests.support.worker_bench import Bench

SECOND = timedelta(seconds=1)
POLL = timedelta(seconds=5)


@dataclass(frozen=True)
class Scraped:
    """What was served: each sample by its name and, in order of their names, the values of its labels."""

    samples: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    def of(self, *key: str) -> float:
        return self.samples[key]


def scraped(paths: Mapping[str, Says]) -> Scraped:
    text = paths["/metrics"]("")
    assert text.status == 200
    families = parser.text_string_to_metric_families(text.body.decode())
    return Scraped(
        {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
        }
    )


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(TWO - timedelta(minutes=2))
    yield made
    made.close()


def metrics_of(node: VirtualNode) -> NodeMetrics:
    made = NodeMetrics(node.state, node.clock, node.name, POLL, lambda: node.store)
    made.figures.step(node.store)
    return made


def test_a_leader_serves_what_it_did_and_how_the_cluster_is(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("bells", "* * * * *"))
    leader, follower = cluster.node("one"), cluster.node("two")
    cluster.run_until(TWO)
    metrics = metrics_of(leader)
    seen = scraped(metrics.paths)
    assert seen.of("sexton_node_role", "leader") == 1
    assert seen.of("sexton_node_confirmation", "confirmed") == 1
    assert (
        seen.of("sexton_node_term") == seen.of("sexton_cluster_term") == seen.of("sexton_node_terms_taken_total") == 1
    )
    written = len(cluster.rows("SELECT 1 FROM claims"))
    assert seen.of("sexton_node_claims_total") == seen.of("sexton_node_ticks_total") == written
    assert seen.of("sexton_node_attempts_total") >= seen.of("sexton_node_commit_seconds_count") > 0
    assert 50 <= seen.of("sexton_cluster_claims_ahead_seconds") <= 120  # the next tick of a minutely job
    assert seen.of("sexton_cluster_nodes", "follower") == 1
    assert seen.of("sexton_queue_due", "default") + seen.of("sexton_queue_ahead", "default") == written
    assert seen.of("sexton_queue_oldest_wait_seconds", "default") > 0
    assert seen.of("sexton_cluster_catch_up_drain_seconds") == seen.of("sexton_cluster_catch_up_running") == 0
    assert scraped(metrics_of(follower).paths).of("sexton_node_role", "follower") == 1
    assert not any("bells" in key for key in seen.samples)  # any number of jobs: no label


def test_a_takeover_is_told_with_its_gap_and_what_it_missed(cluster: VirtualCluster) -> None:
    cluster.set(horizon="0s")
    cluster.apply(cron_job("bells", "* * * * *"))
    leader, successor = cluster.node("one"), cluster.node("two")
    cluster.run_until(TWO - 5 * SECOND)
    leader.is_alive = False
    cluster.run_until(TWO + 30 * SECOND)
    seen = scraped(metrics_of(successor).paths)
    assert seen.of("sexton_cluster_term") == 2
    assert 5 <= seen.of("sexton_cluster_takeover_gap_seconds") <= 15
    assert seen.of("sexton_cluster_takeover_missed") == 1


def test_a_race_tells_what_a_tick_costs(cluster: VirtualCluster) -> None:
    cluster.set(strategy="race")
    cluster.apply(cron_job("bells", "* * * * *"))
    one, two = cluster.node("one"), cluster.node("two")
    cluster.run_until(TWO)
    seen, other = scraped(metrics_of(one).paths), scraped(metrics_of(two).paths)
    assert seen.of("sexton_node_role", "racer") == 1
    ticks = seen.of("sexton_cluster_race_ticks_total")
    assert seen.of("sexton_node_ticks_total") + other.of("sexton_node_ticks_total") == ticks > 0
    both = sum(each.of("sexton_node_attempts_total") for each in (seen, other))
    assert both == seen.of("sexton_cluster_race_attempts_total") > ticks
    assert seen.of("sexton_cluster_race_conflicts_total") == sum(
        each.of("sexton_node_conflicts_total") for each in (seen, other)
    )


def test_a_node_without_its_database_is_alive_and_not_ready(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster.node("one")
    cluster.run_until(TWO - timedelta(minutes=1))
    metrics = metrics_of(node)
    assert metrics.paths["/readyz"]("") == Answer(200, b"ready\n")

    def away() -> float:
        raise DatabaseUnreachable("no answer")

    monkeypatch.setattr(node.loop, "_step", away)
    node.loop.step()
    assert metrics.paths["/readyz"]("") == Answer(503, b"not ready: the database does not answer\n")
    assert metrics.paths["/healthz"]("") == Answer(200, b"alive\n")
    assert scraped(metrics.paths).of("sexton_database_errors_total", "loop") == 1
    node.clock.seconds += TOO_OLD_SECONDS + 6  # its loop hangs, and nobody reads the figures
    assert metrics.paths["/healthz"]("") == Answer(503, b"its loop has not come round for 66 s\n")
    assert ("sexton_cluster_term",) not in scraped(metrics.paths).samples


def test_many_queues_do_not_flood_a_prometheus(cluster: VirtualCluster) -> None:
    node = cluster.node("one")
    cluster.run_until(TWO - timedelta(minutes=1))
    node.store.grants.register("w", "vm", "0.1.0", 1, [f"q{number:04}" for number in range(QUEUES + 20)], 4)
    seen = scraped(metrics_of(node).paths)
    assert sum(key[0] == "sexton_queue_workers" for key in seen.samples) == QUEUES


# --- workers ------------------------------------------------------------------------------------------


def worker_metrics(bench: Bench) -> WorkerMetrics:
    heartbeat = HeartbeatLoop(bench.store.as_store(), bench.clock, bench.execution, bench.book, bench.wakeup)
    return WorkerMetrics(bench.loop._own, bench.clock, bench.loop, heartbeat, bench.book)


def test_a_worker_serves_its_runs_by_outcome_and_their_lateness() -> None:
    bench = Bench()
    metrics = worker_metrics(bench)
    assert metrics.paths["/readyz"]("").status == 503  # not registered yet
    due = bench.clock.wall()
    bench.clock.seconds += 2.0
    on_time = a_grant(1)._replace(scheduled_at=due, attempt=1, jitter=timedelta(seconds=1.5))
    retried = a_grant(2)._replace(scheduled_at=due - timedelta(hours=1), attempt=2)
    caught_up = a_grant(3)._replace(scheduled_at=due - timedelta(hours=1), attempt=1, origin=Origin.CATCH_UP)
    for grant, code in ((on_time, 0), (retried, 3), (caught_up, 0)):
        bench.grants.ready.append(grant)
        bench.work()
        bench.execution.end(grant.token, exit_code=code, started=bench.clock.seconds)
        bench.work()
    seen = scraped(metrics.paths)
    assert metrics.paths["/readyz"]("") == Answer(200, b"ready\n")
    assert (seen.of("sexton_runs_total", "succeeded"), seen.of("sexton_runs_total", "failed")) == (2, 1)
    assert (
        seen.of("sexton_lateness_seconds_count", "live") == seen.of("sexton_lateness_seconds_count", "caught_up") == 1
    )
    assert seen.of("sexton_lateness_seconds_sum", "live") == pytest.approx(0.5, abs=0.01)
    assert seen.of("sexton_lateness_seconds_bucket", "caught_up", "7200") == 1
    assert seen.of("sexton_lateness_seconds_bucket", "caught_up", "1800") == 0
    assert seen.of("sexton_grants_total") == 3
    assert (seen.of("sexton_worker_slots"), seen.of("sexton_worker_slots_busy")) == (2, 0)


def test_a_result_that_was_refused_is_no_run_but_counted() -> None:
    bench = Bench()
    bench.give(1)
    bench.work()
    bench.grants.stolen.add(1)
    bench.execution.end(1, started=bench.clock.seconds)
    bench.work()
    seen = scraped(worker_metrics(bench).paths)
    assert (seen.of("sexton_stale_results_total"), seen.of("sexton_runs_total", "succeeded")) == (1, 0)


def test_a_worker_that_drains_is_not_ready_and_says_why() -> None:
    bench = Bench()
    bench.work()
    bench.loop.drain()
    assert worker_metrics(bench).paths["/readyz"]("") == Answer(503, b"not ready: it drains: it takes no more claims\n")


def test_a_distribution_counts_values_at_their_bound_as_below_it() -> None:
    seen = Distribution(LATENESS_SECONDS)
    seen.add(0.01, 0.0101, -1.0, 1e9)
    buckets, total = seen.cumulative()
    assert [count for _, count in buckets[:3]] == [2, 3, 3]
    assert buckets[-1] == (float("inf"), 4)
    assert total == pytest.approx(1e9 - 0.9799)


# --- processes ----------------------------------------------------------------------------------------


def test_a_port_that_is_taken_ends_a_process_before_it_waits_for_anything() -> None:
    nowhere = "postgresql://x@127.0.0.1:1/x"
    with Endpoint(HttpAddress("127.0.0.1", 0)) as other:
        with pytest.raises(InvalidSetting, match="another process listens"):
            run_node(NodeOptions(nowhere, name="n", http=other.address))
        with pytest.raises(InvalidSetting, match="another process listens"):
            run_worker(WorkerOptions(nowhere, "w", http=other.address))


def test_up_gives_each_process_a_port_of_its_own_and_says_which_is_taken() -> None:
    first = HttpAddress("127.0.0.1", free_port())
    places = [program.command[-1] for program in programs(1, 1, first)]
    assert places == [str(first), str(first.after(1))]
    assert {program.command[-1] for program in programs(2, 1)} == {"off"}
    with Endpoint(first), pytest.raises(InvalidSetting, match="another process listens"):
        programs(1, 1, first)
    with pytest.raises(InvalidSetting, match="choose a lower port"):
        programs(1, 1, HttpAddress("127.0.0.1", 65535))


def test_no_thread_of_a_store_is_needed(cluster: VirtualCluster) -> None:
    """A scrape asks no database: values that others left are enough."""
    node = cluster.node("one")
    cluster.run_until(TWO - timedelta(minutes=1))

    def refuse() -> Store:
        raise AssertionError("a scrape opened a store")

    metrics = NodeMetrics(node.state, node.clock, "one", POLL, refuse)
    assert scraped(metrics.paths).of("sexton_node_ready") == 1
