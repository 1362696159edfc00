"""The schedule that a revision stores as text, read back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sexton.calendar_readings import CalendarReadings, CalendarUnit, MonthEnd
from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.excluded_days import ExcludedDays, ExcludedSchedule
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EPOCH, BoundedSchedule, EverySchedule, InstantsSchedule, Schedule, on_grid
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import ChangeRule, GapRule, OverlapRule
from sexton.zone_clock import clock_of

_MAX_INTERVAL_MS = 36_525 * 86_400 * 1_000


def schedule_from_spec(spec: Mapping[str, object]) -> Schedule:
    """The schedule that a revision's stored specification describes.

    `{"parts": [{"cron": "0 2 * * *"} | {"every_ms": 900000, "anchor": "1970-01-01T00:00:00Z"} | {"at": [...]} |
    {"calendar": {"months": 1}, "at": "02:30:00", "start": "2026-01-31", "month_end": "clamp"}],
    "timezone": "Europe/Berlin", "start": null, "end": null, "hash_seed": "name",
    "dst": {"gap": "shift", "overlap": "first"}, "exclude": {"dates": ["2026-12-25"], "weekdays": [6, 0],
    "holidays": ["DE-BE"]}}`; instants are ISO 8601 with offset, weekdays count from 0 = Sunday. `hash_seed` matters
    only where a cron part uses H; it, `dst` and `exclude` may be missing. Raises InvalidSchedule.
    """
    parts = spec.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise InvalidSchedule("schedule has no parts; give at least one of cron, every or at")
    zone, seed = str(spec.get("timezone") or "UTC"), str(spec.get("hash_seed") or "")
    clock_of(zone)  # a wrong zone is refused even where no part asks for it
    change = _change_rule(spec.get("dst"))
    schedules = tuple(_part_from_spec(part, zone, seed, change) for part in parts)
    schedule = schedules[0] if len(schedules) == 1 else UnionSchedule(schedules)
    if days := _excluded_days(spec.get("exclude")):
        schedule = ExcludedSchedule(schedule, zone, days)
    start, end = _optional_instant(spec, "start"), _optional_instant(spec, "end")
    if start is None and end is None:
        return schedule
    if start is not None and end is not None and start >= end:
        raise InvalidSchedule(
            f"schedule ends at {end.isoformat()}, not after its start {start.isoformat()}: it never fires"
        )
    return BoundedSchedule(schedule, start, end)


def _part_from_spec(part: object, zone: str, seed: str, change: ChangeRule) -> Schedule:
    if not isinstance(part, Mapping):
        raise InvalidSchedule(f"schedule part {part!r} is not a mapping; give cron, every, calendar or at")
    if "cron" in part:
        cron = CronExpression.parse(str(part["cron"]), hash_seed=seed)
        return CronSchedule(cron, zone, change.gap, change.overlap)
    if "calendar" in part:
        return CalendarSchedule(_calendar_readings(part), zone, change.gap, change.overlap)
    if "every_ms" in part:
        anchor = _instant(part["anchor"], "anchor") if part.get("anchor") else EPOCH
        return EverySchedule(_milliseconds(part["every_ms"]), anchor)
    if "at" in part:
        listed = part["at"]
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise InvalidSchedule(f"at: {listed!r} is not a list of instants; write such as [2026-12-24T17:00:00Z]")
        return InstantsSchedule(tuple(_instant(text, "at") for text in listed))
    keys = ", ".join(map(str, part)) or "no keys"
    raise InvalidSchedule(f"schedule part with {keys} is not one of cron, every, calendar, at")


def _calendar_readings(part: Mapping[str, Any]) -> CalendarReadings:
    ((unit, every),) = part["calendar"].items()
    at = time.fromisoformat(part["at"])
    return CalendarReadings(
        CalendarUnit(unit),
        every,
        date.fromisoformat(part["start"]),
        at.hour * 3600 + at.minute * 60 + at.second,
        MonthEnd(part["month_end"]),
    )


def _change_rule(spec: object) -> ChangeRule:
    if not isinstance(spec, Mapping):
        return ChangeRule()
    return ChangeRule(GapRule(spec["gap"]), OverlapRule(spec["overlap"]))


def _excluded_days(spec: object) -> ExcludedDays | None:
    if not isinstance(spec, Mapping):
        return None
    return ExcludedDays(
        frozenset(date.fromisoformat(day) for day in spec["dates"]),
        sum(1 << weekday for weekday in spec["weekdays"]),
        tuple(spec["holidays"]),
    )


def _milliseconds(value: object) -> timedelta:
    if not isinstance(value, int) or abs(value) > _MAX_INTERVAL_MS:
        raise InvalidSchedule(f"every_ms: {value!r} is not a whole number of milliseconds up to 100 years")
    return timedelta(milliseconds=value)


def _optional_instant(spec: Mapping[str, object], key: str) -> datetime | None:
    value = spec.get(key)
    return None if value is None else _instant(value, key)


def _instant(text: object, key: str) -> datetime:
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError:
        raise InvalidSchedule(f"{key}: {text!r} is not an instant; write such as 2026-12-24T17:00:00Z") from None
    return on_grid(instant, key).astimezone(UTC)
