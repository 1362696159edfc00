"""Jobs as the planner knows them, for tests of decisions over missed ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sexton.decisions import GrowingSkip, Interval, PlannedJob, RevisionInForce
from sexton.job_rules import CatchUpOrder, FiringRules, MissedPolicy, MissedRules
from sexton.schedules import EverySchedule, InstantsSchedule, Schedule

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTELY = EverySchedule(timedelta(minutes=1))
HOURLY = EverySchedule(timedelta(hours=1))
SECONDLY = EverySchedule(timedelta(seconds=1))


def at(*instants: datetime) -> Schedule:
    return InstantsSchedule(instants)


def ago(**duration: float) -> datetime:
    """An instant before ``NOON``."""
    return NOON - timedelta(**duration)


def rules(
    policy: str = "latest",
    *,
    grace: timedelta = timedelta(seconds=60),
    within: timedelta | None = None,
    most: int = 100,
    order: str = "oldest",
) -> MissedRules:
    return MissedRules(policy=MissedPolicy(policy), grace=grace, within=within, max=most, order=CatchUpOrder(order))


def revision(
    schedule: Schedule = MINUTELY,
    missed: MissedRules | None = None,
    *,
    number: int = 1,
    since: datetime = datetime(2020, 1, 1, tzinfo=UTC),
    until: datetime | None = None,
    jitter: timedelta = timedelta(0),
) -> RevisionInForce:
    return RevisionInForce(number, schedule, FiringRules(missed=missed or rules(), jitter=jitter), since, until)


def job(
    *revisions: RevisionInForce,
    decided_upto: datetime,
    pauses: tuple[Interval, ...] = (),
    growing: GrowingSkip | None = None,
    job_id: int = 7,
) -> PlannedJob:
    return PlannedJob(
        job_id=job_id,
        name="nightly",
        seq=3,
        at=decided_upto,
        revisions=revisions or (revision(),),
        pauses=pauses,
        pause_detail="paused by ops: moving house",
        growing=growing,
    )
