"""The duties of a node go on while the host's clock is set back and ahead."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

import pytest

from sexton_scheduler.duty_schedule import DutySchedule, Every

HOUR = timedelta(hours=1)
CENTURY = timedelta(days=36525)


class Wall(datetime):
    """What `datetime.now` says, that much ahead."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        told = datetime.now(UTC) + Wall.ahead
        return cls.fromtimestamp(told.timestamp(), tz)


def test_duties_are_called_as_often_after_the_hosts_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sexton_scheduler.duty_schedule", "apscheduler.schedulers.base"):
        monkeypatch.setattr(f"{module}.datetime", Wall)
    monkeypatch.setattr(Wall, "ahead", timedelta())
    calls = threading.Semaphore(0)
    schedule = DutySchedule(job_defaults={"misfire_grace_time": None}, timezone="UTC")
    schedule.add_job(calls.release, Every(timedelta(milliseconds=20)))
    schedule.start()
    try:
        for ahead in (timedelta(), -HOUR, CENTURY, -CENTURY / 2):
            monkeypatch.setattr(Wall, "ahead", ahead)
            while calls.acquire(blocking=False):
                pass
            for _ in range(5):
                assert calls.acquire(timeout=60), f"no call with the clock set by {ahead}"
    finally:
        schedule.shutdown()
