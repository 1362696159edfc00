"""The schedule that a revision stores as text, read back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sexton.calendar_readings import CalendarReadings, CalendarUnit, MonthEnd
from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.excluded_days import ExcludedDays, ExcludedSchedule
from sexton.public_holidays import LAST_YEAR as LAST_HOLIDAY_YEAR
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EPOCH, BoundedSchedule, EverySchedule, InstantsSchedule, Schedule, on_grid
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import ChangeRule, GapRule, OverlapRule
from sexton.zone_clock import clock_of

_MAX_INTERVAL_MS = 36_525 * 86_400 * 1_000
_LONG_AGO, _NOT_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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


def firing_schedule_from_spec(spec: Mapping[str, object]) -> Schedule:
    """`schedule_from_spec` for what somebody asks for now: it also refuses what can never fire (InvalidSchedule).

    Never is: no tick from `start` on, or without one from 2026 on, for a hundred years. What lists instants or has an
    end may lie in the past. It is found in bounded work: a cron expression is decided by the kinds of months there are;
    changed clocks, bounds and excluded days are passed over in a bounded number of steps. What is stored already is
    read by `schedule_from_spec`.
    """
    schedule = schedule_from_spec(spec)
    if not _ever_fires(schedule, spec):
        raise InvalidSchedule(f"the schedule has no tick {_why_never(spec)}")
    return schedule


def _ever_fires(schedule: Schedule, spec: Mapping[str, Any]) -> bool:
    may_be_past = spec.get("end") or any("at" in part and "calendar" not in part for part in spec["parts"])
    asked_from = _optional_instant(spec, "start") or (_LONG_AGO if may_be_past else _NOT_LONG_AGO)
    first = schedule.next_after(asked_from - _MICROSECOND)
    if first is not None and (spec.get("exclude") or {}).get("holidays"):
        return first.year <= max(LAST_HOLIDAY_YEAR, asked_from.year)  # later no day is known to be one
    return first is not None


def _why_never(spec: Mapping[str, Any]) -> str:
    """Which key leaves no tick: the first without which there would be one."""
    start, end = spec.get("start"), spec.get("end")
    between = f"between its start {start} and its end {end}" if start else f"before its end {end}"
    for key, why in (
        ("exclude", "ever: all fall on days that exclude names; exclude less, or choose other days"),
        (
            "dst",
            "ever: all fall into a gap of the clock, and dst skips those; write gap: shift, or another time of day",
        ),
        ("end", f"{between}; move the end, or remove it"),
        ("start", f"from its start {start} on; move the start, or remove it"),
    ):
        without = {**spec, key: None}
        if spec.get(key) and _ever_fires(schedule_from_spec(without), without):
            return why
    return "ever; mend the schedule, its start, its end or what it excludes"


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
