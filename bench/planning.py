"""Takeover planning: from the cursors as the predecessor left them to a heap that is ready and a pass that is counted.

    .venv/bin/python -m bench.planning [--jobs 100000] [--schedules 500]

The follower is warm, as in production: it holds the jobs, but every cursor has moved since it read them. Goal: 0.5 s
for 100,000 jobs with 500 schedules. No database: `cursors()` is measured by bench/leader.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import statistics
import time
from datetime import UTC, datetime, timedelta

from sexton.decisions import Cause, PlannedJob
from sexton.store.protocol import JobRow, RevisionRow
from sexton_scheduler.core.pacing import start_instants
from sexton_scheduler.core.planner import Planner
from sexton_scheduler.core.takeover import reconcile
from sexton_scheduler.job_book import DefinitionCache

NOW = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")
FIRING = (
    '{"jitter_ms":0,"missed":{"grace_ms":60000,"hold_for_ms":604800000,"max":100,"order":"oldest",'
    '"policy":"latest","start_within_ms":null,"within_ms":null},"on_worker_lost":"retry","overlap":"skip",'
    '"priority":0,"queue":"default"}'
)


def schedule_texts(count: int, seed: int) -> list[str]:
    """Different cron expressions as fleets have them: mostly hourly and daily, some every few minutes."""
    draw = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < count:
        minute, hour = draw.randrange(60), draw.randrange(24)
        cron = draw.choice(
            [
                f"*/{draw.choice([1, 2, 5, 10, 15])} * * * *",
                f"{minute} * * * *",
                f"{minute} {hour} * * *",
                f"{minute} {hour} * * {draw.choice(['MON', 'MON-FRI', 'SUN'])}",
                f"{minute} {hour} {draw.randint(1, 28)} * *",
            ]
        )
        spec = {"parts": [{"cron": cron}], "timezone": draw.choice(ZONES), "start": None, "end": None}
        texts[json.dumps(spec, sort_keys=True)] = None
    return list(texts)


def warm_planner(jobs: int, schedules: int) -> tuple[Planner, float]:
    """A follower that read its jobs an hour ago; seconds of processor time that reading them into values took."""
    texts = schedule_texts(schedules, seed=1)
    cache, planner = DefinitionCache(), Planner()
    since = datetime(2025, 1, 1, tzinfo=UTC)
    started = time.process_time()
    warm: list[PlannedJob] = []
    for job_id in range(jobs):
        revision = RevisionRow(1, texts[job_id % schedules], FIRING, since, None)
        row = JobRow(job_id, f"job-{job_id}", 1, NOW - timedelta(hours=1), (revision,), (), "", None, False)
        warm.append(cache.planned_job(row))
    planner.put_all(warm)
    return planner, time.process_time() - started


def last_tick(job: PlannedJob, upto: datetime) -> datetime:
    """The cursor that a leader with a horizon leaves."""
    return job.revisions[0].schedule.previous_before(upto + timedelta(microseconds=1)) or job.at


def measure(jobs: int, schedules: int, horizon: timedelta) -> tuple[float, float, float]:
    """Seconds of one takeover's planning, of its first batch, and of processor time for both."""
    planner, _ = warm_planner(jobs, schedules)
    last: dict[int, datetime] = {}
    cursors = []
    for job in planner.jobs.values():
        schedule = job.revisions[0].schedule
        if id(schedule) not in last:
            last[id(schedule)] = last_tick(job, NOW - timedelta(seconds=10) + horizon)
        cursors.append((job.job_id, job.seq, max(job.at, last[id(schedule)])))
    gc.collect()
    used, started = time.process_time(), time.perf_counter()
    planner.put_all(reconcile(planner.jobs, cursors).advanced)
    missed_pass = planner.begin_pass(Cause.TAKEOVER, NOW, 0, 1000)
    planned = time.perf_counter()
    draft = planner.draft(NOW, NOW + horizon, missed_pass)
    draft.batch(2, NOW, start_instants(NOW, draft.paced, 50.0))
    return planned - started, time.perf_counter() - planned, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    _, reading = warm_planner(options.jobs, options.schedules)
    print(f"{options.jobs:,} jobs, {options.schedules} schedules")
    print(f"  reading rows into a warm planner   {reading:6.3f} s of processor time, before the takeover")
    for horizon in (timedelta(seconds=60), timedelta(0)):
        found = [measure(options.jobs, options.schedules, horizon) for _ in range(options.rounds)]
        planning, batch, used = (statistics.median(one[n] for one in found) for n in (0, 1, 2))
        name = f"takeover planning, horizon {horizon.seconds:2d} s"
        print(f"  {name}    {planning:6.3f} s, its first batch {batch:.3f} s")
        print(f"                                     {used:6.3f} s of processor time for both")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"  peak memory of this benchmark      {peak} MiB")


if __name__ == "__main__":
    main()
