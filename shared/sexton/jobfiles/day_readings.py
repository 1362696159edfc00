"""Readings of days and times of day: dates, weekdays, wall-clock times, regions with public holidays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from sexton.cron_fields import WEEKDAY
from sexton.errors import InvalidSchedule
from sexton.jobfiles.cron_pattern import either_case
from sexton.jobfiles.nodes import Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, pattern_schema, read_scalar
from sexton.public_holidays import region_of

_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile("([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_FIRST_YEAR, _LAST_YEAR = 1900, 2200


@dataclass(frozen=True, slots=True)
class Day:
    """A date such as 2026-12-25, quoted or not: every YAML reader takes it for that date."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, "a date such as 2026-12-25")
        if scalar is None:
            return BAD
        if not _DATE.fullmatch(scalar.text):
            problems.add(node, f"{key}: {shown(scalar.text)} is not a date; write e.g. 2026-12-25")
            return BAD
        try:
            day = date.fromisoformat(scalar.text)
        except ValueError:
            problems.add(node, f"{key}: {shown(scalar.text)} is no date of the calendar")
            return BAD
        if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            problems.add(node, f"{key}: {shown(scalar.text)} lies outside the years {_FIRST_YEAR} to {_LAST_YEAR}")
            return BAD
        return day

    def schema(self) -> JsonSchema:
        return pattern_schema(f"^{_DATE.pattern}$", "a date such as 2026-12-25")


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """``"02:30"`` or ``"02:30:15"``, as seconds of the day. In quotes: some YAML readers take 02:30 for a number."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, 'a time of day such as "02:30"')
        if scalar is None:
            return BAD
        text = scalar.text
        match = _TIME.fullmatch(text)
        if match is None:
            problems.add(node, f'{key}: {shown(text)} is not a time of day; write e.g. "02:30", in quotes')
            return BAD
        if scalar.is_plain:
            problems.add(node, f'{key}: {text} is a number to some YAML readers (base 60); quote it: "{text}"')
            return BAD
        hour, minute, second = (int(part or 0) for part in match.groups())
        if hour > 23 or minute > 59 or second > 59:
            midnight = "; midnight is 00:00" if hour == 24 else ""
            problems.add(node, f"{key}: {shown(text)} is no time of day{midnight}")
            return BAD
        return hour * 3600 + minute * 60 + second

    def schema(self) -> JsonSchema:
        return pattern_schema("^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$", "a time of day such as 02:30")


@dataclass(frozen=True, slots=True)
class Weekday:
    """SUN to SAT; case does not count. As its number, 0 = Sunday."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, "a weekday: SUN to SAT")
        if scalar is None:
            return BAD
        name = scalar.text.upper()
        if name not in WEEKDAY.names:
            near = next((short for short in WEEKDAY.names if name.startswith(short)), "SAT")
            if re.fullmatch("[0-7]", name):
                near = WEEKDAY.names[int(name) % 7]
            problems.add(node, f"{key}: {shown(scalar.text)} is not a weekday; write SUN to SAT, such as {near}")
            return BAD
        return WEEKDAY.names.index(name)

    def schema(self) -> JsonSchema:
        names = [*WEEKDAY.names]
        return {"anyOf": [{"enum": names}, pattern_schema(f"^({either_case(names)})$", "a weekday: SUN to SAT")]}


@dataclass(frozen=True, slots=True)
class Region:
    """A code of the `holidays` package: DE, or DE-BE for a part of it."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, "a region such as DE or DE-BE")
        if scalar is None:
            return BAD
        if scalar.is_plain and scalar.text.upper() == "NO":
            problems.add(node, f"{key}: {scalar.text} is false to some YAML readers; quote it: 'NO'")
            return BAD
        try:
            return region_of(scalar.text)
        except InvalidSchedule as error:
            problems.add(node, f"{key}: {error}")
            return BAD

    def schema(self) -> JsonSchema:
        return pattern_schema("^[A-Za-z]{2}(-.+)?$", "a region such as DE or DE-BE")
