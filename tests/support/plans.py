"""Plans made from job files and a cluster of jobs, without either: for tests of what a plan says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sexton.job_standing import JobStanding, Standings
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.jobfiles.plan_report import PlannedJob, PlanReport, report_plan, touched_ids
from sexton.jobs import JobDefinition
from sexton.store.protocol import CurrentJob

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)  # a Sunday
WEEK = timedelta(days=7)
ALL_QUEUES = frozenset({"default"})


def definitions(*jobs: str) -> list[JobDefinition]:
    """The definitions that these lines of a job file make: ``name: {schedule: ..., command: [x]}``."""
    return [one.definition for one in load_job_text(_text(jobs)).jobs]


def cluster(*jobs: str, seeds: Sequence[str] = (), paused: Sequence[str] = ()) -> list[CurrentJob]:
    """A cluster that has these jobs at revision 3, with ids from 1 on."""
    return [
        CurrentJob(
            number,
            one.name,
            3,
            replace(one, renamed_from=None),
            seeds[number - 1] if number <= len(seeds) else one.name,
            one.name in paused,
            False,
        )
        for number, one in enumerate(definitions(*jobs), start=1)
    ]


def report_of(
    files: Sequence[str],
    current: Sequence[CurrentJob] = (),
    *standings: JobStanding,
    prune: bool = False,
    now: datetime = NOW,
    window: timedelta = WEEK,
    queues: frozenset[str] = ALL_QUEUES,
    crowd: int = 20,
    shown: int = 3,
    inputs: tuple[str, str] = ("", ""),
) -> PlanReport:
    """The report of a plan at ``now``: with a horizon of a minute, and one worker. ``inputs``: the cluster's, and those
    of the one who plans."""
    plan = plan_changes(load_job_text(_text(files)), current, prune=prune, prune_limit=1000 if prune else None)
    found = {job_id: JobStanding(job_id) for job_id in touched_ids(plan)} | {one.job_id: one for one in standings}
    standing = Standings(now, found, queues, 1 if queues else 0, inputs[0])
    return report_plan(
        plan,
        current,
        standing,
        until=now + window,
        horizon=timedelta(minutes=1),
        crowd=crowd,
        shown=shown,
        inputs_id=inputs[1],
    )


def only_job(report: PlanReport) -> PlannedJob:
    """The one job of a plan."""
    (job,) = report.jobs
    return job


def _text(jobs: Sequence[str]) -> str:
    lines = "".join(f"  {job}\n" for job in jobs)
    return f"version: 1\njobs:\n{lines}" if lines else "version: 1\njobs: {}\n"
