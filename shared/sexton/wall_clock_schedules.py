"""Schedules that follow the clock on the wall of a zone: cron expressions, and intervals of the calendar."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sexton.calendar_readings import CalendarReadings
from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.schedules import EPOCH, Schedule
from sexton.wall_clock_ticks import ChangeRule, GapRule, OverlapRule, WallClockTicks
from sexton.zone_clock import clock_of

_DAY_SECONDS = 86_400


class WallClockSchedule(Schedule):
    """What cron and calendar schedules share: ticks on whole seconds, found by ``WallClockTicks``."""

    __slots__ = ()

    zone: str
    _ticks: WallClockTicks

    def next_after(self, instant: datetime) -> datetime | None:
        since = instant - EPOCH
        tick = self._ticks.first_from(since.days * _DAY_SECONDS + since.seconds + 1)
        return None if tick is None else EPOCH + timedelta(0, tick)

    def previous_before(self, instant: datetime) -> datetime | None:
        tick = self._ticks.last_upto(_seconds_ceiling(instant) - 1)
        return None if tick is None else EPOCH + timedelta(0, tick)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        count = self._ticks.count(_seconds_floor(after) + 1, _seconds_floor(upto) + 1)
        return count if limit is None else min(count, limit)

    def contains(self, instant: datetime) -> bool:
        return not instant.microsecond and self._ticks.contains(_seconds_floor(instant))


def _seconds_floor(instant: datetime) -> int:
    since = instant - EPOCH
    return since.days * _DAY_SECONDS + since.seconds


def _seconds_ceiling(instant: datetime) -> int:
    since = instant - EPOCH
    return since.days * _DAY_SECONDS + since.seconds + (since.microseconds > 0)


@dataclass(frozen=True, slots=True)
class CronSchedule(WallClockSchedule):
    """A cron expression on the wall clock of a zone. ``gap`` and ``overlap`` choose for fixed times (R2) alone; an
    expression that follows elapsed time (R1) takes no other than the defaults (InvalidSchedule)."""

    cron: CronExpression
    zone: str
    gap: GapRule = GapRule.SHIFT
    overlap: OverlapRule = OverlapRule.FIRST
    _ticks: WallClockTicks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.cron.follows_elapsed_time and (self.gap, self.overlap) != (GapRule.SHIFT, OverlapRule.FIRST):
            raise InvalidSchedule(
                f"cron expression {self.cron.text!r} follows elapsed time, because its minute or hour field starts "
                "with *: dst has no choice there; remove dst, or list the minutes and hours (such as 0-23)"
            )
        object.__setattr__(self, "_ticks", WallClockTicks(self.cron.readings, self.rule, clock_of(self.zone)))

    @property
    def rule(self) -> ChangeRule:
        return ChangeRule(self.gap, self.overlap, self.cron.follows_elapsed_time)


@dataclass(frozen=True, slots=True)
class CalendarSchedule(WallClockSchedule):
    """Every n days, weeks, months or years at a wall-clock time of a zone."""

    readings: CalendarReadings
    zone: str
    gap: GapRule = GapRule.SHIFT
    overlap: OverlapRule = OverlapRule.FIRST
    _ticks: WallClockTicks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rule = ChangeRule(self.gap, self.overlap)
        object.__setattr__(self, "_ticks", WallClockTicks(self.readings, rule, clock_of(self.zone)))
