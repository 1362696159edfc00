"""Ticks to come: whose they are, in which zones they are read, and what a changed clock does to them.

Modules that read schedules are loaded when there is one: a listing without ticks has no use for them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from sexton_tui.console.core.clock_words import available_text, local_text, short_change_text, short_mark_text

if TYPE_CHECKING:
    from sexton.job_rules import FiringRules
    from sexton.jobs import JobDefinition
    from sexton.schedules import Schedule


@dataclass(frozen=True, slots=True)
class TicksOf:
    """Whose ticks: a schedule in its zone, looked at from ``now`` on. ``rules``: of a job, for its jitter."""

    title: str
    schedule: Schedule
    zone: str
    now: datetime
    rules: FiringRules | None = None


def ticks_of_job(definition: JobDefinition, hash_seed: str, now: datetime) -> TicksOf:
    """Those of a job. Raises ``InvalidSchedule`` where its zone or its schedule is not to be read any more."""
    from sexton.job_rules import firing_rules
    from sexton.schedule_specs import schedule_from_spec

    schedule = schedule_from_spec(json.loads(definition.schedule_text(hash_seed)))
    rules = firing_rules(definition.firing_text(hash_seed))
    return TicksOf(definition.name, schedule, definition.timezone, now, rules)


def notes_of(asked: TicksOf, ticks: Sequence[datetime]) -> list[str]:
    """What there is to say about each tick: what the clock did to it, or, at a day's first tick, that it changes."""
    from sexton.tick_marks import changes_by_day, marks_of

    if not ticks:
        return []
    changes = changes_by_day(asked.zone, ticks[0], ticks[-1])
    said = []
    for tick in ticks:
        marks = marks_of(asked.schedule, tick, asked.zone)
        change = changes.pop(local_date(tick, asked.zone), None)
        said.append(short_mark_text(marks) or ("" if change is None else short_change_text(change)))
    return said


def local_date(instant: datetime, zone: str) -> date:
    """The day of ``instant`` on the clocks of ``zone``."""
    from sexton.zones import load_zone

    return instant.astimezone(load_zone(zone)).date()


@dataclass(frozen=True, slots=True)
class TickToCome:
    """A tick in every zone that matters, as texts. ``shown`` is empty where the screen's zone is UTC or the job's."""

    tick: datetime
    local: str
    shown: str
    utc: str
    available: str
    note: str


def ticks_to_come(asked: TicksOf, ticks: Sequence[datetime]) -> list[TickToCome]:
    """The ticks in the job's zone, in the zone of ``asked.now`` (the screen's) and in UTC; when a jitter lets each
    start; and what the clock does to it."""
    from sexton.zones import load_zone

    zone = load_zone(asked.zone)
    jitter = asked.rules if asked.rules is not None and asked.rules.jitter else None
    found = []
    for tick, note in zip(ticks, notes_of(asked, ticks), strict=True):
        shown = tick.astimezone(asked.now.tzinfo)
        is_told = f"{shown:%z %H:%M}" in (f"{tick.astimezone(where):%z %H:%M}" for where in (zone, UTC))
        found.append(
            TickToCome(
                tick=tick,
                local=local_text(tick, zone),
                shown="" if is_told else f"{shown:%a %H:%M:%S %Z}",
                utc=f"{tick.astimezone(UTC):%m-%d %H:%M:%S}",
                available="" if jitter is None else available_text(tick, jitter.jitter_of(tick), zone),
                note=note,
            )
        )
    return found
