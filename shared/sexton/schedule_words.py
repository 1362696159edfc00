"""Schedules in words: short ones for lists, and what a cron expression means in a sentence. Pure.

A cron expression is told by what it names, not by its text: ``H`` reads as the instants that it has become, and two
ways to write the same days read the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sexton.cron_days import DayRule
from sexton.cron_expression import CronExpression
from sexton.settings import format_duration

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_MOST_TIMES = 4


def schedule_summary(parts: Sequence[Mapping[str, Any]]) -> str:
    """A schedule's canonical parts in a few words: ``0 2 * * *``, ``every 15m``, ``at 3 instants``."""
    return " + ".join(_part_summary(part) for part in parts)


def _part_summary(part: Mapping[str, Any]) -> str:
    if "cron" in part:
        return str(part["cron"])
    if "every_ms" in part:
        every = f"every {format_duration(timedelta(milliseconds=part['every_ms']))}"
        return every if part["anchor"] == "1970-01-01T00:00:00Z" else f"{every} from {part['anchor']}"
    if "calendar" in part:
        ((unit, every),) = part["calendar"].items()
        at = part["at"].removesuffix(":00")
        each = f"every {unit[:-1]}" if every == 1 else f"every {every} {unit}"
        return f"{each} at {at} from {part['start']}{_month_end_in_words(unit, part)}"
    instants = part["at"]
    return f"at {', '.join(instants)}" if len(instants) <= 3 else f"at {len(instants)} instants from {instants[0]}"


def _month_end_in_words(unit: str, part: Mapping[str, Any]) -> str:
    """What becomes of the start's day in shorter months; nothing where every month in question has it."""
    month, day = part["start"][5:7], int(part["start"][8:])
    if day <= 28 or unit not in ("months", "years") or (unit == "years" and month != "02"):
        return ""
    ordinal = {29: "29th", 30: "30th", 31: "31st"}[day]
    clamps = part["month_end"] == "clamp"
    return f", on the last day of months without a {ordinal}" if clamps else f", not in months without a {ordinal}"


# --- cron expressions -----------------------------------------------------------------------------


def cron_words(cron: CronExpression) -> str:
    """``at 02:30 every day``, ``every 15 minutes from 09:00 to 17:59, Monday to Friday``."""
    readings = cron.readings
    when = _time_words(_bits(readings.seconds), _bits(readings.minutes), _bits(readings.hours))
    days = _day_words(readings.days)
    if not days:
        return f"{when} every day" if when.startswith("at ") and ":" in when else when
    return f"{when}, {days}"


def _time_words(seconds: list[int], minutes: list[int], hours: list[int]) -> str:
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        shown = "{:02}:{:02}" if seconds == [0] else "{:02}:{:02}:{:02}"
        return "at " + _listed([shown.format(h, m, s) for h in hours for m in minutes for s in seconds])
    said = _counted(minutes, 60, "minute") if seconds == [0] else _second_words(seconds, minutes)
    if len(hours) == 24:
        names_minutes = len(minutes) < 60 and _step(minutes, 60) is None
        return f"{said} of every hour" if names_minutes else said
    if hours == list(range(hours[0], hours[-1] + 1)):
        return f"{said} from {hours[0]:02}:00 to {hours[-1]:02}:59"
    if (step := _step(hours, 24)) is not None:
        return f"{said} of every {_ordinal(step)} hour"
    return f"{said} of the hours {_listed([str(hour) for hour in hours])}"


def _second_words(seconds: list[int], minutes: list[int]) -> str:
    said = _counted(seconds, 60, "second")
    if len(minutes) == 60:
        return f"{said} of every minute" if said.startswith("at ") else said
    if (step := _step(minutes, 60)) is not None:
        return f"{said} of every {_ordinal(step)} minute"
    return (
        f"{said} in minute {minutes[0]}" if len(minutes) == 1 else f"{said} in minutes {_listed(_stretches(minutes))}"
    )


def _counted(values: list[int], size: int, unit: str) -> str:
    """Every value, every nth from 0 on, or each by its number."""
    if len(values) == size:
        return f"every {unit}"
    if (step := _step(values, size)) is not None:
        return f"every {step} {unit}s"
    return f"at {unit} {values[0]}" if len(values) == 1 else f"at {unit}s {_listed(_stretches(values))}"


def _step(values: list[int], size: int) -> int | None:
    """n, where the values are 0, n, 2n and so on, and the next round goes on at the same pace."""
    step = values[1] - values[0] if len(values) > 1 else 0
    return step if step > 1 and size % step == 0 and values == list(range(0, size, step)) else None


def _day_words(rule: DayRule) -> str:
    """On which days; empty for every day."""
    dates, weekdays = _date_words(rule), _weekday_words(rule)
    if dates and weekdays:
        days = f"on {dates}{', if that is ' if rule.both_must_match else ' or on '}{weekdays}"
    else:
        days = f"on {dates}" if dates else weekdays and f"on {weekdays}"
    months = [_MONTHS[month - 1] for month in _bits(rule.months)]
    if len(months) == len(_MONTHS):
        return days
    return f"{days} in {_listed(months)}" if days else f"every day in {_listed(months)}"


def _date_words(rule: DayRule) -> str:
    days = _bits(rule.days)
    said = []
    if len(days) == 31:
        return ""
    if days:
        said.append(f"day {days[0]}" if len(days) == 1 else f"days {_listed(_stretches(days))}")
    said += [f"the workday nearest to the {_ordinal(day)}" for day in rule.nearest_workdays]
    for offset in rule.last_day_offsets:
        said.append("the last day" if not offset else f"the {_ordinal(offset + 1)} last day")
    if rule.last_workday:
        said.append("the last workday")
    return f"{_listed(said)} of the month" if said else ""


def _weekday_words(rule: DayRule) -> str:
    days = _bits(rule.weekdays)
    if len(days) == 7:
        return ""
    said = [_WEEKDAYS[day] for day in days]
    if len(days) > 2 and days == list(range(days[0], days[-1] + 1)):
        said = [f"{said[0]} to {said[-1]}"]
    said += [f"the {_ORDINALS[nth - 1]} {_WEEKDAYS[day]} of the month" for day, nth in rule.nth_weekdays]
    said += [f"the last {_WEEKDAYS[day]} of the month" for day in _bits(rule.last_weekdays)]
    return _listed(said)


# --- words ----------------------------------------------------------------------------------------


def _bits(values: int) -> list[int]:
    return [bit for bit in range(values.bit_length()) if values >> bit & 1]


def _stretches(values: list[int]) -> list[str]:
    """The numbers in order, three and more in a row as ``3 to 7``."""
    said: list[str] = []
    begin = 0
    for place in range(1, len(values) + 1):
        if place < len(values) and values[place] == values[place - 1] + 1:
            continue
        run = values[begin:place]
        said += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(value) for value in run]
        begin = place
    return said


def _listed(said: Sequence[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
