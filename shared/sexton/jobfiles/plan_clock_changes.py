"""What changed clocks do to a planned job within a year, told with a way out.

Told are fixed times alone: a time that is jumped over and fires after the jump, and one that is shown twice and fires
at the first. What follows elapsed time, and what a job's own ``dst`` has chosen, is as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from sexton.excluded_days import ExcludedSchedule
from sexton.jobfiles.plan_report import PlannedJob
from sexton.jobfiles.plan_schedules import ScheduleBook
from sexton.jobs import JobDefinition
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import BoundedSchedule, Schedule
from sexton.tick_marks import Showing, TickMarks, marked_between
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import OverlapRule
from sexton.zones import load_zone

_YEAR = timedelta(days=366)
_LOOKED_AT, _TOLD = 500, 4
_HOURS_TRIED = (1, 2, 3, -1, -2, -3)


@dataclass(frozen=True, slots=True)
class ClockChangeTold:
    fact: str
    remedy: str
    paste: tuple[str, ...]
    numbers: Mapping[str, object]


def clock_change_warning(job: PlannedJob, after: JobDefinition, now: datetime) -> ClockChangeTold | None:
    """The ticks of the year after ``now`` that a changed clock shifts or makes ambiguous; None where there are none."""
    schedule = job.fires.schedule
    if schedule is None:
        return None
    marked = list(islice(_told(schedule, after.timezone, now), _LOOKED_AT))
    if not marked:
        return None
    facts = [_fact(tick, marks, after.timezone) for tick, marks in marked[:_TOLD]]
    more = f"; and {len(marked) - _TOLD} more" if len(marked) > _TOLD else ""
    ticks = "1 tick meets" if len(marked) == 1 else f"{len(marked)} ticks meet"
    fact = f"{ticks} a changed clock of {after.timezone} within a year: {'; '.join(facts)}{more}"
    paste: tuple[str, ...] = ("dst: {gap: skip, overlap: both}",)
    remedy = "to leave out a time that does not exist, and to fire at both showings of one that comes twice"
    if (moved := _elsewhere(job, after, now)) is not None:
        remedy = (
            "one of these: out of the changed hours, or a choice (gap: shift or skip; overlap: first, second or both)"
        )
        paste = (moved, *paste)
    listed = [
        {
            "tick": tick,
            "shifted_from": None if marks.shifted_from is None else marks.shifted_from.isoformat(),
            "showing": marks.showing,
        }
        for tick, marks in marked[:50]
    ]
    return ClockChangeTold(fact, remedy, paste, {"count": len(marked), "ticks": listed})


def _told(schedule: Schedule, zone: str, now: datetime) -> Iterator[tuple[datetime, TickMarks]]:
    fixed = _fixed_parts(schedule)
    if not fixed:
        return
    for tick, marks in marked_between(schedule, zone, now, now + _YEAR):
        if marks.shifted_from is not None:
            yield tick, marks
        elif marks.showing is Showing.FIRST:
            of_tick = [part for part in fixed if part.contains(tick)]
            if of_tick and all(part.overlap is OverlapRule.FIRST for part in of_tick):
                yield tick, marks


def _fixed_parts(schedule: Schedule) -> list[CronSchedule | CalendarSchedule]:
    """The parts of a schedule that name fixed times."""
    return [
        part
        for part in _parts(schedule)
        if isinstance(part, CronSchedule | CalendarSchedule)
        and not (isinstance(part, CronSchedule) and part.cron.follows_elapsed_time)
    ]


def _parts(schedule: Schedule) -> Iterator[Schedule]:
    if isinstance(schedule, ExcludedSchedule | BoundedSchedule):
        yield from _parts(schedule.inner)
    elif isinstance(schedule, UnionSchedule):
        for part in schedule.parts:
            yield from _parts(part)
    else:
        yield schedule


def _fact(tick: datetime, marks: TickMarks, zone: str) -> str:
    local = tick.astimezone(load_zone(zone))
    if marks.shifted_from is not None:
        return f"{marks.shifted_from:%Y-%m-%d %H:%M} does not exist and fires at {local:%H:%M %Z} ({tick:%H:%M}Z)"
    return f"{local:%Y-%m-%d %H:%M} comes twice and fires the first time, {local:%H:%M %Z} ({tick:%H:%M}Z)"


def _elsewhere(job: PlannedJob, after: JobDefinition, now: datetime) -> str | None:
    """The job's schedule a few hours away, where no clock changes; None for what is no cron expression of one hour."""
    parts = after.schedule_parts
    fields = str(parts[0].get("cron", "")).split() if len(parts) == 1 else []
    place = len(fields) - 4
    if place not in (1, 2) or not re.fullmatch(r"\d+", fields[place]):
        return None
    book = ScheduleBook()
    for hours in _HOURS_TRIED:
        hour = int(fields[place]) + hours
        if not 0 <= hour <= 23:
            continue
        text = " ".join([*fields[:place], str(hour), *fields[place + 1 :]])
        schedule = book.schedule_of(replace(after, schedule_parts=({"cron": text},)), job.seed)
        if schedule is not None and next(_told(schedule, after.timezone, now), None) is None:
            return f'schedule: "{text}"'
    return None
