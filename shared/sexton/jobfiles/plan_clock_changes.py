"""What changed clocks do to a planned job within a year, told with a way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sexton.jobfiles.plan_quiet_hours import HOURS_AWAY, hours_away, is_quiet, touched_ticks
from sexton.jobfiles.plan_report import PlannedJob
from sexton.jobs import JobDefinition
from sexton.tick_marks import TickMarks
from sexton.zones import load_zone

_LOOKED_AT, _TOLD = 500, 4


@dataclass(frozen=True, slots=True)
class ClockChangeTold:
    fact: str
    remedy: str
    paste: tuple[str, ...]
    numbers: Mapping[str, object]


def clock_change_warning(
    job: PlannedJob, after: JobDefinition, now: datetime, proposed: str | None = None
) -> ClockChangeTold | None:
    """The ticks of the year after ``now`` that a changed clock shifts or makes ambiguous; None where there are none.
    ``proposed``: the cron expression that the plan proposes for the job for another reason."""
    schedule = job.fires.schedule
    if schedule is None:
        return None
    marked = list(islice(touched_ticks(schedule, after.timezone, now), _LOOKED_AT))
    if not marked:
        return None
    facts = [_fact(tick, marks, after.timezone) for tick, marks in marked[:_TOLD]]
    more = f"; and {len(marked) - _TOLD} more" if len(marked) > _TOLD else ""
    ticks = "1 tick meets" if len(marked) == 1 else f"{len(marked)} ticks meet"
    fact = f"{ticks} a changed clock of {after.timezone} within a year: {'; '.join(facts)}{more}"
    paste: tuple[str, ...] = ("dst: {gap: skip, overlap: both}",)
    remedy = "to leave out a time that does not exist, and to fire at both showings of one that comes twice"
    if (moved := _elsewhere(after, now, proposed)) is not None:
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


def _fact(tick: datetime, marks: TickMarks, zone: str) -> str:
    local = tick.astimezone(load_zone(zone))
    if marks.shifted_from is not None:
        return f"{marks.shifted_from:%Y-%m-%d %H:%M} does not exist and fires at {local:%H:%M %Z} ({tick:%H:%M}Z)"
    return f"{local:%Y-%m-%d %H:%M} comes twice and fires the first time, {local:%H:%M %Z} ({tick:%H:%M}Z)"


def _elsewhere(after: JobDefinition, now: datetime, proposed: str | None) -> str | None:
    """What the plan proposes for the job anyway, or its schedule a few hours away, where no clock changes; None for
    what is no cron expression of one hour."""
    parts = after.schedule_parts
    cron = str(parts[0].get("cron", "")) if len(parts) == 1 else ""
    for text in (proposed, *(hours_away(cron, hours) for hours in HOURS_AWAY)):
        if text is not None and is_quiet(after, text, now):
            return f'schedule: "{text}"'
    return None
