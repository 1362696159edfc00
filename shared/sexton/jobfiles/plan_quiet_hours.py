"""Whether a changed clock touches the fixed times of a schedule within a year, and hours in which it touches none.

Touched is a time that is jumped over and fires after the jump, and one that is shown twice and fires at the first. What
follows elapsed time, and what a job's own ``dst`` has chosen, is as it should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from sexton.errors import SextonError
from sexton.excluded_days import ExcludedSchedule
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import BoundedSchedule, Schedule
from sexton.tick_marks import Showing, TickMarks, marked_between
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import OverlapRule

HOURS_AWAY = (1, 2, 3, -1, -2, -3)
_YEAR = timedelta(days=366)
_HASH_IN, _HASH = re.compile(r"\bH\((\d+-\d+)\)(/\d+)?"), re.compile(r"\bH(/\d+)?")
_WHOLE_FIELDS = ("0-59", "0-23", "1-31", "1-12", "0-6")


def touched_ticks(schedule: Schedule, zone: str, now: datetime) -> Iterator[tuple[datetime, TickMarks]]:
    """The ticks of the year after ``now`` that a changed clock of ``zone`` touches, ascending."""
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


def is_quiet(definition: JobDefinition, cron: str, now: datetime) -> bool:
    """Whether no changed clock touches the job if ``cron`` were its schedule, whatever H draws in it."""
    other = replace(definition, schedule_parts=({"cron": _with_all_of_hash(cron)},))
    try:
        return _is_quiet(other.schedule_text("any"), definition.timezone, now)
    except SextonError:
        return True  # it would be refused, and fire nothing


@lru_cache(maxsize=4096)
def _is_quiet(spec: str, zone: str, now: datetime) -> bool:
    return next(touched_ticks(schedule_from_spec(json.loads(spec)), zone, now), None) is None


def hours_away(cron: str, hours: int) -> str | None:
    """The expression so many hours later on the same day; None where it has no single hour, or not on that day."""
    fields = cron.split()
    place = len(fields) - 4
    if place not in (1, 2) or not re.fullmatch(r"\d+", fields[place]):
        return None
    hour = int(fields[place]) + hours
    if not 0 <= hour <= 23:
        return None
    return " ".join([*fields[:place], str(hour), *fields[place + 1 :]])


def _with_all_of_hash(cron: str) -> str:
    """Every value that H may draw in place of it; seconds, which tell nothing here, as 0."""
    fields = cron.split()
    if len(fields) not in (5, 6):
        return cron
    *second, minute, hour, day, month, weekday = fields
    wide = [
        _HASH.sub(rf"{whole}", _HASH_IN.sub(r"\1", field))
        for field, whole in zip((minute, hour, day, month, weekday), _WHOLE_FIELDS, strict=True)
    ]
    return " ".join(["0" for _ in second] + wide)


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
