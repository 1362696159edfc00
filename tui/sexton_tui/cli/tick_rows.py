"""Ticks to come as rows: in UTC and in the job's zone, when each becomes available, what a changed clock does to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sexton_tui.cli.columns import Column
from sexton_tui.cli.month_drawing import available_text, local_text, short_change_text, short_mark_text

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
    from sexton.job_rules import firing_rules
    from sexton.schedule_specs import schedule_from_spec

    schedule = schedule_from_spec(json.loads(definition.schedule_text(hash_seed)))
    rules = firing_rules(definition.firing_text(hash_seed))
    return TicksOf(definition.name, schedule, definition.timezone, now, rules)


def tick_table(asked: TicksOf, ticks: Sequence[datetime]) -> tuple[list[Column], list[dict[str, Any]]]:
    """Columns and rows; a row says ``note`` and ``available`` where there is such a column."""
    from sexton.zones import load_zone

    zone = load_zone(asked.zone)
    columns = [Column("tick", "UTC"), Column("local", asked.zone)]
    rows: list[dict[str, Any]] = [
        {"tick": tick, "local": local_text(tick, zone), "offset": f"{tick.astimezone(zone):%z}"} for tick in ticks
    ]
    if asked.rules is not None and asked.rules.jitter:
        columns.append(Column("available"))
        for row in rows:
            row["available"] = available_text(row["tick"], asked.rules.jitter_of(row["tick"]), zone)
    else:
        columns.append(Column("offset", gives_way=1))
    said = _notes_of(asked, ticks)
    if any(said):
        columns.append(Column("note", is_note=True))
        for row, note in zip(rows, said, strict=True):
            row["note"] = note
    return columns, rows


def _notes_of(asked: TicksOf, ticks: Sequence[datetime]) -> list[str]:
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
