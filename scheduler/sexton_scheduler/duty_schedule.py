"""Duties called every so many seconds by APScheduler, whatever is done to the host's clock meanwhile.

APScheduler goes by the wall clock. Set back by an hour, it would call nothing for an hour: no expired lease would be
requeued, and the node would look silent. Set ahead, it lists each call that was missed; by years, until memory ends.
So the next call is always reckoned from now, and one that lies further ahead than that is called at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import BasePoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from sexton_scheduler.housekeeping import Duty, Housekeeper, perform

_LONGEST_WAIT = 1.0  # seconds; the clock may be set back while the next call is reckoned


def schedule_duties(keeper: Housekeeper, thread: ThreadPoolExecutor, duties: Iterable[Duty]) -> BackgroundScheduler:
    """APScheduler, not started, that calls each duty in this one thread: they share a connection."""
    scheduler = DutySchedule(
        executors={"default": _OneThread(thread)},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        timezone="UTC",
    )
    for duty in duties:
        scheduler.add_job(perform, Every(timedelta(seconds=duty.every)), args=(duty, keeper), name=duty.name)
    return scheduler


class Every(BaseTrigger):  # type: ignore[misc]  # APScheduler ships no types
    """So long after now."""

    def __init__(self, period: timedelta) -> None:
        self.period = period

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        return now + self.period


class DutySchedule(BackgroundScheduler):  # type: ignore[misc]  # APScheduler ships no types
    """For jobs whose trigger is `Every`."""

    def _process_jobs(self) -> float:
        now = datetime.now(UTC)
        for job in self.get_jobs():
            if job.next_run_time is not None and job.next_run_time - now > job.trigger.period:
                self.modify_job(job.id, next_run_time=now)
        wait = super()._process_jobs()
        return _LONGEST_WAIT if wait is None else min(float(wait), _LONGEST_WAIT)


class _OneThread(BasePoolExecutor):  # type: ignore[misc]  # APScheduler ships no types
    """APScheduler's executor over a thread that its caller can use too."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        super().__init__(thread)
