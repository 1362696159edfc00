"""The jobs of a simulated cluster: every policy for missed ticks, every overlap, several kinds of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sexton.claims import OnWorkerLost, Overlap
from sexton.job_rules import CatchUpOrder, MissedPolicy, MissedRules, RetryRules
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget
from sexton_tui.simulation.world import World

_MINUTE = timedelta(minutes=1)
_TARGET = CommandTarget(("true",))


def make_job(
    name: str,
    *parts: dict[str, Any] | str,
    missed: MissedRules | None = None,
    **keys: Any,
) -> JobDefinition:
    """A job of this name; a schedule part that is a text is a cron expression."""
    return JobDefinition(
        name=name,
        schedule_parts=tuple({"cron": part} if isinstance(part, str) else part for part in parts),
        target=_TARGET,
        missed=missed or MissedRules(),
        **{"max_runtime": timedelta(minutes=10), **keys},
    )


def workload(start: datetime) -> tuple[JobDefinition, ...]:
    """About two dozen jobs that make some 250 ticks an hour."""
    skip, latest, every, hold = MissedPolicy.SKIP, MissedPolicy.LATEST, MissedPolicy.ALL, MissedPolicy.HOLD
    jobs = [
        make_job("minutely-skip", "* * * * *", missed=MissedRules(skip), overlap=Overlap.SKIP),
        make_job("minutely-latest", "* * * * *", missed=MissedRules(latest), overlap=Overlap.QUEUE),
    ]
    overlaps = (Overlap.SKIP, Overlap.QUEUE, Overlap.ALLOW)
    for number, policy in enumerate((skip, latest, every, hold)):
        overlap = overlaps[number % 3]
        jobs.append(make_job(f"five-{policy}", "*/5 * * * *", missed=MissedRules(policy), overlap=overlap))
        for other in overlaps:
            rules = MissedRules(policy, grace=timedelta(seconds=30), within=timedelta(hours=3), max=5)
            jobs.append(make_job(f"hourly-{policy}-{other.name.lower()}", "H * * * *", missed=rules, overlap=other))
    once = MissedRules(every, grace=2 * _MINUTE, order=CatchUpOrder.NEWEST)
    jobs += [
        make_job("at-most-once", "2-59/5 * * * *", missed=once, on_worker_lost=OnWorkerLost.FAIL),
        make_job("late-starter", "*/10 * * * *", missed=MissedRules(skip, start_within=timedelta(seconds=20))),
        make_job("retried", "*/15 * * * *", retries=RetryRules(max=2, delay=timedelta(seconds=10))),
        make_job("every-7-minutes", {"every_ms": 420_000, "anchor": "1970-01-01T00:00:00Z"}, overlap=Overlap.ALLOW),
        make_job("two-schedules", "7 * * * *", "*/20 8-18 * * *", overlap=Overlap.QUEUE),
        make_job("listed", {"at": _listed(start)}, missed=MissedRules(every, grace=timedelta(0))),
        make_job("berlin", "30 2 * * *", timezone="Europe/Berlin", missed=MissedRules(latest)),
        make_job("seconds", "0,20,40 17 */2 * * *", missed=MissedRules(every, max=2), priority=2),
    ]
    return tuple(jobs)


def _listed(start: datetime) -> Sequence[str]:
    instants = [start + timedelta(minutes=37 * number, milliseconds=500) for number in range(1, 60)]
    return [instant.isoformat().replace("+00:00", "Z") for instant in instants]


def another_schedule(world: World) -> tuple[dict[str, Any], ...]:
    """The schedule parts that an edit gives a job."""
    random = world.random
    cron = random.choice(("*/5 * * * *", "*/4 * * * *", "*/10 * * * *", "H * * * *", "11,41 * * * *", "* 3 * * *"))
    return ({"cron": cron},)
