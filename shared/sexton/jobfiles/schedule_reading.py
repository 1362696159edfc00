"""The keys that say when: `schedule` in its forms, and `timezone`.

A schedule's parts come out in the canonical form that revisions store (``JobDefinition.schedule_parts``). Whether an
expression means anything is asked of the tick engine, once per text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sexton.calendar_readings import CalendarUnit, MonthEnd
from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.jobfiles.cron_pattern import cron_pattern
from sexton.jobfiles.day_readings import Day, TimeOfDay
from sexton.jobfiles.meant_texts import meant_schedule
from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, Choice, JsonSchema, ListOf, MapOf, Reading, Text, Whole, pattern_schema
from sexton.jobfiles.time_readings import Duration, Instant
from sexton.jobfiles.yaml_words import why_scalar_not_text
from sexton.schedules import MIN_INTERVAL
from sexton.zones import load_zone, zone_names

MAX_PARTS = 100
_EPOCH_TEXT = "1970-01-01T00:00:00Z"
_FORMS = (
    "a cron text such as '0 2 * * *', {every: 15m}, {calendar: {months: 1}, at: \"02:30\", start: 2026-01-31} or "
    "{at: [2026-12-24T18:00:00+01:00]}"
)
_PART_KEYS = ("cron", "every", "anchor", "at")
_CALENDAR_KEYS = ("calendar", "at", "start", "month_end")
_EVERY = Duration(least=MIN_INTERVAL)
_INSTANTS = ListOf(
    Instant(), shortest=1, wanted="a list of instants with their offsets, such as ['2026-12-24T18:00:00+01:00']"
)
_CALENDAR_FORM = '{calendar: {months: 1}, at: "02:30", start: 2026-01-31}'


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A zone of the IANA database, by its exact name."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        text = Text(longest=100, shortest=1, wanted="a zone such as Europe/Berlin").read(node, key, problems)
        if text is BAD:
            return BAD
        why = _why_no_zone(text)
        if why is None:
            return text
        problems.add(node, why)
        return BAD

    def schema(self) -> JsonSchema:
        return {"enum": sorted(zone_names()), "errorMessage": "not a zone of the IANA database, such as Europe/Berlin"}


@dataclass(frozen=True, slots=True)
class ScheduleParts:
    """A cron text, one mapping, or a list of these; a tuple of canonical parts."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if not isinstance(node, Sequence):
            part = _read_part(node, key, problems)
            return BAD if part is BAD else (part,)
        if not 1 <= len(node.items) <= MAX_PARTS:
            problems.add(node, f"{key} has {len(node.items)} parts; write 1 to {MAX_PARTS}, each {_FORMS}")
            return BAD
        parts = [_read_part(item, f"{key}[{place}]", problems) for place, item in enumerate(node.items)]
        return BAD if any(part is BAD for part in parts) else tuple(parts)

    def schema(self) -> JsonSchema:
        part = _part_schema()
        return {"anyOf": [*part["anyOf"], {"type": "array", "items": part, "minItems": 1, "maxItems": MAX_PARTS}]}


def _part_schema() -> JsonSchema:
    """One part: a cron text, or one of the four mappings."""
    cron = pattern_schema(cron_pattern(), "a cron expression that Sexton knows") | {"examples": ["0 2 * * *"]}
    every = {"every": _EVERY.schema(), "anchor": Instant().schema() | {"default": _EPOCH_TEXT}}
    calendar = {name: reading.schema() for name, reading in _CALENDAR_READINGS.items()}
    calendar["calendar"] |= {"minProperties": 1, "maxProperties": 1}
    calendar["month_end"]["default"] = MonthEnd.CLAMP.value
    return {
        "anyOf": [
            cron,
            _mapping_schema({"cron": cron}, "cron"),
            _mapping_schema(every, "every"),
            _mapping_schema(calendar, "calendar", "at", "start"),
            _mapping_schema({"at": _INSTANTS.schema()}, "at"),
        ]
    }


def _mapping_schema(properties: JsonSchema, *required: str) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _read_part(node: Node, key: str, problems: FileProblems) -> Any:
    if isinstance(node, Scalar):
        return _read_cron(node, key, problems)
    if not isinstance(node, Mapping):
        problems.add(node, f"{key} is a list in a list; write {_FORMS}")
        return BAD
    if "calendar" in node.entries:
        return _read_calendar(node, key, problems)
    given = [name for name in ("cron", "every", "at") if name in node.entries]
    unknown = [entry[0] for name, entry in node.entries.items() if name not in _PART_KEYS]
    for key_node in unknown:
        problems.add(key_node, f"{shown(key_node.text)} is not a key of a schedule; write {_FORMS}")
    if len(given) != 1:
        if not unknown:
            says = f"says {' and '.join(given)}" if given else "says neither cron, every, calendar nor at"
            problems.add(node, f"{key} {says}; write exactly one of them")
        return BAD
    if "anchor" in node.entries and given != ["every"]:
        problems.add(node.entries["anchor"][0], f"{key}: anchor goes with every only; remove it")
        return BAD
    value = node.entries[given[0]][1]
    if given == ["cron"]:
        part = _read_cron(value, f"{key}.cron", problems)
    elif given == ["every"]:
        part = _read_every(node, value, key, problems)
    else:
        part = _read_at(value, f"{key}.at", problems)
    return BAD if unknown else part


def _read_cron(node: Node, key: str, problems: FileProblems) -> Any:
    if isinstance(node, Scalar) and (why := why_scalar_not_text(node)):
        write = meant_schedule(node.text) or f"write {_FORMS}"
        why = f"{node.text} {why.partition(';')[0]}" if node.text and not node.typed else f"{shown(node.text)} {why}"
        problems.add(node, f"{key}: {why}; {write}" if node.text else f"{key} is missing; {write}")
        return BAD
    text = Text(longest=10_000, wanted="a cron text").read(node, key, problems)
    if text is BAD:
        return BAD
    if why := _why_no_cron(text):
        meant = meant_schedule(text)
        problems.add(node, f"{key}: {shown(text)} is no cron text; {meant}" if meant else f"{key}: {why}")
        return BAD
    return {"cron": " ".join(text.split())}


def _read_every(node: Mapping, value: Node, key: str, problems: FileProblems) -> Any:
    every = _EVERY.read(value, f"{key}.every", problems)
    anchor: Any = _EPOCH_TEXT
    if "anchor" in node.entries:
        instant = Instant().read(node.entries["anchor"][1], f"{key}.anchor", problems)
        anchor = instant if instant is BAD else _iso(instant)
    if every is BAD or anchor is BAD:
        return BAD
    return {"every_ms": every // timedelta(milliseconds=1), "anchor": anchor}


def _read_calendar(node: Mapping, key: str, problems: FileProblems) -> Any:
    others = [name for name in ("cron", "every") if name in node.entries]
    if others:
        problems.add(node, f"{key} says calendar and {' and '.join(others)}; write exactly one of them")
        return BAD
    before = len(problems.found)
    for name, (key_node, _) in node.entries.items():
        if name not in _CALENDAR_KEYS:
            problems.add(key_node, f"{shown(name)} does not go with calendar; write {_CALENDAR_FORM}")
    missing = [name for name in ("at", "start") if name not in node.entries]
    if missing:
        problems.add(node, f"{key}: calendar needs {' and '.join(missing)} too; write {_CALENDAR_FORM}")
    values = {
        name: reading.read(node.entries[name][1], f"{key}.{name}", problems)
        for name, reading in _CALENDAR_READINGS.items()
        if name in node.entries
    }
    if "calendar" in values and values["calendar"] is not BAD and len(values["calendar"]) != 1:
        problems.add(node.entries["calendar"][1], f"{key}.calendar: name one unit, such as {{months: 1}}")
    if len(problems.found) > before:
        return BAD
    ((unit, every),) = values["calendar"].items()
    if "month_end" in values and unit not in (CalendarUnit.MONTHS, CalendarUnit.YEARS):
        problems.add(node.entries["month_end"][0], f"{key}: month_end goes with months and years only; remove it")
        return BAD
    hours, rest = divmod(values["at"], 3600)
    return {
        "calendar": {unit: every},
        "at": f"{hours:02}:{rest // 60:02}:{rest % 60:02}",
        "start": values["start"].isoformat(),
        "month_end": values.get("month_end", MonthEnd.CLAMP).value,
    }


_CALENDAR_READINGS: dict[str, Reading] = {
    "calendar": MapOf(Whole(1, 10_000), "|".join(CalendarUnit), "days, weeks, months or years", example=("months", 1)),
    "at": TimeOfDay(),
    "start": Day(),
    "month_end": Choice({end.value: end for end in MonthEnd}),
}


def _read_at(node: Node, key: str, problems: FileProblems) -> Any:
    instants = _INSTANTS.read(node, key, problems)
    if instants is BAD:
        return BAD
    return {"at": [_iso(instant) for instant in sorted(set(instants))]}


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def _why_no_cron(text: str) -> str | None:
    try:
        CronExpression.parse(text)
    except InvalidSchedule as error:
        return str(error)
    return None


@lru_cache(maxsize=1024)
def _why_no_zone(name: str) -> str | None:
    try:
        load_zone(name)
    except InvalidSchedule as error:
        return str(error)
    return None
