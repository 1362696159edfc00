"""Two definitions side by side, and a schedule in a few words: what plans and listings show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sexton.jobs import JobDefinition
from sexton.settings import format_duration


@dataclass(frozen=True, slots=True)
class Difference:
    """One key whose value changes, as texts."""

    key: str
    old: str
    new: str


def differences_between(old: JobDefinition, new: JobDefinition) -> tuple[Difference, ...]:
    """The keys in which two definitions differ, with both values as a job file writes them."""
    before, after = _flat(old), _flat(new)
    keys = sorted(before.keys() | after.keys())
    return tuple(
        Difference(key, before.get(key, "-"), after.get(key, "-")) for key in keys if before.get(key) != after.get(key)
    )


def _flat(definition: JobDefinition) -> dict[str, str]:
    """Every key of a definition by its dotted name in job files, as text."""
    data = json.loads(definition.to_text())
    target = data.pop("target")
    return {**_flatten(data), **_flatten(target)}


def _flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in data.items():
        name = prefix + key.removesuffix("_ms")
        if isinstance(value, dict) and key in ("env", "missed", "retries", "dst", "exclude"):
            flat.update(_flatten(value, f"{name}."))
        elif key.endswith("_ms") and isinstance(value, int):
            flat[name] = format_duration(timedelta(milliseconds=value))
        elif key == "schedule":
            flat[name] = schedule_summary(value)
        else:
            flat[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat


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
        skips = ", none where the month has no such day" if part["month_end"] == "skip" else ""
        each = f"every {unit[:-1]}" if every == 1 else f"every {every} {unit}"
        return f"{each} at {at} from {part['start']}{skips}"
    instants = part["at"]
    return f"at {', '.join(instants)}" if len(instants) <= 3 else f"at {len(instants)} instants from {instants[0]}"
