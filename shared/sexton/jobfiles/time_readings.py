"""Readings of durations and instants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sexton.jobfiles.meant_texts import meant_duration
from sexton.jobfiles.nodes import Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, pattern_schema, read_scalar
from sexton.jobfiles.yaml_words import whole_number
from sexton.settings import format_duration, parse_duration


@dataclass(frozen=True, slots=True)
class Duration:
    """``30s``, ``1h30m``; at least ``least``, at most ``most``."""

    least: timedelta = timedelta(0)
    most: timedelta = timedelta(days=36_500)

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = "a duration such as 30s, 15m or 1h30m"
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        text = scalar.text
        if whole_number(text) not in (None, 0) and not text.startswith("-"):
            problems.add(node, f"{key}: {shown(text)} has no unit; write e.g. {text}s or {text}m")
            return BAD
        if text.startswith("-"):
            problems.add(node, f"{key}: {shown(text)} is negative; write {wanted}")
            return BAD
        try:
            value = parse_duration(text)
        except ValueError:
            write = f"write {meant_duration(text) or 'e.g. 30s, 15m, 1h30m or 2d'}"
            problems.add(
                node, f"{key}: {shown(text)} is not a duration; {write}" if text else f"{key} is empty; {write}"
            )
            return BAD
        if not self.least <= value <= self.most:
            bound = f"at least {format_duration(self.least)}" if value < self.least else f"at most {self.most.days}d"
            problems.add(node, f"{key}: {shown(text)} is not allowed; it must be {bound}")
            return BAD
        return value

    def schema(self) -> JsonSchema:
        not_none = "(?=.*[1-9])" if self.least else ""
        at_least = f", at least {format_duration(self.least)}" if self.least else ""
        pattern = f"^{not_none}([0-9]{{1,12}}(ms|s|m|h|d))+$"
        return pattern_schema(pattern, f"a duration such as 30s, 15m or 1h30m{at_least}") | {
            "examples": ["30s", "1h30m"]
        }


_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_OFFSET = "Z|z|[+-][0-9]{2}:?[0-9]{2}"
_INSTANT = re.compile(f"({_DATE})[Tt ]({_TIME}) ?({_OFFSET})?")
_FIRST_YEAR, _LAST_YEAR = 1970, 2200


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant with its offset, on a whole millisecond; in UTC once read."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = "an instant with its offset, such as 2026-12-24T18:00:00+01:00"
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        try:
            return instant_of(scalar.text)
        except ValueError as error:
            problems.add(node, f"{key}: {error}")
            return BAD

    def schema(self) -> JsonSchema:
        wanted = "an instant with its offset, such as 2026-12-24T18:00:00+01:00"
        return pattern_schema(f"^{_DATE}[Tt ]{_TIME} ?({_OFFSET})$", wanted)


def instant_of(text: str) -> datetime:
    """The instant that ``text`` says, in UTC. Raises ValueError, with the value and what to write instead."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        hint = "write an instant with its offset, such as 2026-12-24T18:00:00+01:00"
        if re.fullmatch(_DATE, text):
            hint = f"write the time and the offset too, such as {text}T00:00:00Z"
        raise ValueError(f"{shown(text)} is not an instant; {hint}")
    if match[3] is None:
        raise ValueError(f"{shown(text)} has no offset; write {match[1]}T{match[2]}Z, or e.g. +01:00 in place of the Z")
    try:
        instant = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3].upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{shown(text)} is no date and time of the calendar") from None
    if not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
        raise ValueError(f"{shown(text)} lies outside the years {_FIRST_YEAR} to {_LAST_YEAR}")
    if instant.microsecond % 1000:
        raise ValueError(f"{shown(text)} is finer than a millisecond; schedules fall on whole ones")
    return instant
