"""The cluster's figures as metrics: the same on every node, so take `max` over the nodes, never `sum`.

No family has the name of a job: there may be any number. Queues are labels, for whoever is called at night needs to
know which one waits; the first ``QUEUES`` by name are told, so that job files cannot flood a Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sexton.cluster_views import Overview, QueueView
from sexton.metric_families import counter, counters, gauge, gauges
from sexton.settings import settings_from_rows

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from sexton_scheduler.cluster_figures import ClusterFigures

QUEUES = 100
TOO_OLD_SECONDS = 60.0
_NOTHING = timedelta(0)


def cluster_families(figures: ClusterFigures | None, now: float) -> Iterator[Metric]:
    """The families of these figures, ``now`` in elapsed seconds; the age alone where they are older than a minute."""
    age = None if figures is None else now - figures.read_at
    yield gauge("sexton_cluster_read_age_seconds", "Since these figures of the cluster were read.", age)
    if figures is None or age is None or age > TOO_OLD_SECONDS:
        return
    yield from _leadership(figures, figures.overview)
    yield from _ledger(figures, figures.overview)
    yield from _counts(figures.overview)
    yield from _queues(figures.overview.queues[:QUEUES], figures.overview.now)


def _leadership(figures: ClusterFigures, seen: Overview) -> Iterator[Metric]:
    settings, takeover = settings_from_rows(seen.settings), figures.takeover
    roles = [node.role for node in seen.nodes if node.age <= settings.session]
    yield gauge("sexton_cluster_term", "The term; each change of leader raises it.", seen.term)
    yield gauge("sexton_cluster_halted", "1 while an operator has halted the cluster.", seen.is_halted)
    yield gauges(
        "sexton_cluster_nodes",
        "Nodes heard of within one session, by role.",
        "role",
        {role: float(roles.count(role)) for role in ("leader", "racer", "follower")},
    )
    yield gauge(
        "sexton_cluster_heartbeat_age_seconds",
        "Since the leader, or a racer, beat last: nobody decides ticks if it is much more than the session.",
        seen.heartbeat_age.total_seconds(),
    )
    yield gauge(
        "sexton_cluster_claims_ahead_seconds",
        "How far ahead of now claims are written; negative: ticks fall due undecided.",
        None if seen.claims_upto is None else (seen.claims_upto - seen.now).total_seconds(),
    )
    yield gauge(
        "sexton_cluster_horizon_seconds", "How far ahead they are to be written.", settings.horizon.total_seconds()
    )
    if takeover is not None:
        gap = takeover.gap
        if gap is None and takeover.gap_from is not None:  # its first pass goes on
            gap = max(seen.now - takeover.gap_from, _NOTHING)
        yield gauge(
            "sexton_cluster_takeover_gap_seconds",
            "For how long no claims were written at the newest change of leader; grows until that is done.",
            None if gap is None else gap.total_seconds(),
        )
        yield gauge(
            "sexton_cluster_takeover_missed", "Ticks found undecided at the newest takeover.", takeover.totals.missed
        )


def _ledger(figures: ClusterFigures, seen: Overview) -> Iterator[Metric]:
    late, catch_up = seen.lateness, figures.catch_up
    yield gauges(
        "sexton_cluster_lateness_seconds",
        "Lateness of the first tries of the last five minutes (the newest 5,000).",
        "quantile",
        {"0.5": _seconds(late.p50), "0.99": _seconds(late.p99), "1": _seconds(late.max)},
    )
    yield gauges(
        "sexton_cluster_jobs",
        "Jobs by standing; quarantined ones were stopped by Sexton.",
        "standing",
        {
            "active": float(seen.jobs - seen.paused - len(seen.quarantined)),
            "paused": float(seen.paused),
            "quarantined": float(len(seen.quarantined)),
        },
    )
    yield gauges(
        "sexton_cluster_claims",
        "Claims that have not ended, counted no further than 10,000 a queue.",
        "standing",
        {
            "ahead": float(seen.ahead),
            "due": float(seen.due),
            "catch_up": float(seen.catch_up),
            "parked": float(seen.parked),
            "running": float(seen.running),
        },
    )
    drain = _NOTHING if not catch_up.count else catch_up.done_in or catch_up.last_start_in
    yield gauge(
        "sexton_cluster_catch_up_drain_seconds",
        "Until all ticks that are caught up with have run, at least; until the last may start, where no run tells.",
        _seconds(drain),
    )
    yield gauge("sexton_cluster_catch_up_running", "Runs under the catch-up budget.", catch_up.running)
    yield gauge("sexton_cluster_proposals", "Proposals of held ticks that wait for an answer.", len(seen.proposals))
    yield gauge("sexton_cluster_held_ticks", "Ticks held in them.", sum(proposal.count for proposal in seen.proposals))
    yield gauge("sexton_cluster_failed_runs_last_hour", "Runs that failed in the last hour.", seen.failed_last_hour)


def _counts(seen: Overview) -> Iterator[Metric]:
    counts = seen.counters
    yield counters(
        "sexton_cluster_stale_writes",
        "Writes refused because the term or the token was over.",
        "by",
        {"leader": counts.get("stale_commits", 0), "worker": counts.get("stale_results", 0)},
    )
    yield counter(
        "sexton_cluster_duplicates",
        "Claims that were there already when their cursor moved: must stay 0, else run `sexton audit`.",
        counts.get("swallowed", 0),
    )
    for name, says in (
        ("attempts", "Cursors that racers wanted to move."),
        ("conflicts", "Those of them that another racer had moved or held: how a race works."),
        ("ticks", "Ticks decided in races; attempts by ticks is what a tick costs."),
    ):
        yield counter(f"sexton_cluster_race_{name}", says, counts.get(f"race_{name}", 0))


def _queues(queues: tuple[QueueView, ...], now: datetime) -> Iterator[Metric]:
    def of(name: str, says: str, value: Callable[[QueueView], float | None]) -> Metric:
        return gauges(f"sexton_queue_{name}", says, "queue", {queue.name: value(queue) for queue in queues})

    yield of("due", "Claims that could start now.", lambda queue: queue.due)
    yield of("ahead", "Claims written ahead of their time.", lambda queue: queue.ahead)
    yield of("catch_up", "Missed, held and backfilled ticks that wait.", lambda queue: queue.catch_up)
    yield of("running", "Claims that run.", lambda queue: queue.running)
    yield of(
        "oldest_wait_seconds",
        "For how long the claim that has waited longest could have started.",
        lambda queue: 0.0 if queue.oldest is None else max((now - queue.oldest).total_seconds(), 0.0),
    )
    yield of("workers", "Workers that serve it.", lambda queue: queue.workers)
    yield of("slots", "Their slots.", lambda queue: queue.slots)
    yield of("slots_busy", "Their slots that are busy.", lambda queue: queue.busy)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
