"""Random schedule specifications that are likely to fire near a given moment. A seed makes them again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def random_spec(draw: Random, name: str, zone: ZoneInfo, moment: datetime) -> dict[str, Any]:
    """As a revision stores it: one to three parts, perhaps bounds, exclusions, a clock rule of its own."""
    near = (moment + timedelta(minutes=draw.randint(-150, 150))).astimezone(zone)
    parts = [_part(draw, near, moment) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    spec: dict[str, Any] = {"parts": parts, "timezone": name, "start": None, "end": None}
    if not any("cron" in part and _is_wild(part["cron"]) for part in parts):
        spec["dst"] = {"gap": draw.choice(("shift", "skip")), "overlap": draw.choice(("first", "second", "both"))}
    if draw.random() < 0.25:
        dates = [(near + timedelta(days=draw.randint(-2, 1))).date().isoformat() for _ in range(draw.randint(0, 2))]
        spec["exclude"] = {"dates": dates, "weekdays": draw.sample(range(7), draw.randint(0, 3)), "holidays": []}
    if draw.random() < 0.15:
        spec["start"] = _iso(moment + timedelta(milliseconds=draw.choice((0, 1, -1, draw.randint(-9_000_000, 0)))))
    if draw.random() < 0.15:
        spec["end"] = _iso(moment + timedelta(milliseconds=draw.choice((1000, 1, draw.randint(1, 9_000_000)))))
    return spec


def _part(draw: Random, near: datetime, moment: datetime) -> dict[str, Any]:
    kind = draw.random()
    if kind < 0.75:
        return {"cron": random_cron(draw, near)}
    if kind < 0.87:
        unit, every = draw.choice(("days", "weeks", "months", "years")), draw.randint(1, 3)
        days = draw.choice((0, 1, 7, 14, 28, 31, 365, 366, 731))
        start = (near - timedelta(days=days)).date()
        if draw.random() < 0.2:
            start = start.replace(month=1, day=31)
        at = near.replace(minute=draw.choice((0, 30, near.minute)), second=draw.choice((0, 0, 59)))
        end = draw.choice(("clamp", "skip"))
        return {
            "calendar": {unit: every},
            "at": f"{at.hour:02}:{at.minute:02}:{at.second:02}",
            "start": start.isoformat(),
            "month_end": end,
        }
    if kind < 0.96:
        every = draw.choice(
            (60_000, 900_000, 3_600_000, 86_400_000, 1_001_000, 97_500, draw.randint(60_000, 9_999_999))
        )
        anchor = draw.choice((datetime(1970, 1, 1, tzinfo=UTC), moment, moment - timedelta(milliseconds=500)))
        return {"every_ms": every, "anchor": _iso(anchor)}
    return {"at": [_iso(moment + timedelta(seconds=draw.randint(-9000, 9000))) for _ in range(draw.randint(1, 3))]}


def random_cron(draw: Random, near: datetime) -> str:
    """An expression of five or six fields; what it asks of the day is mostly true of the day that is near."""
    fields = [
        _field(draw, near.minute, 0, 59),
        _field(draw, near.hour, 0, 23),
        _date(draw, near) if draw.random() < 0.3 else draw.choice("**?"),
        _month(draw, near) if draw.random() < 0.3 else "*",
        _weekday(draw, near) if draw.random() < 0.3 else "*",
    ]
    if draw.random() < 0.4:
        fields.insert(0, _field(draw, near.second, 0, 59))
    return " ".join(fields)


def _field(draw: Random, wanted: int, low: int, high: int) -> str:
    kind = draw.randrange(8)
    if kind == 0:
        return "*"
    if kind == 1:
        return f"*/{draw.randint(1, high - low + 1)}"
    if kind == 2:
        return f"{draw.randint(low, wanted)}-{draw.randint(wanted, high)}"
    if kind == 3:
        step = draw.randint(1, 9)
        return f"{max(wanted % step, low)}-{high}/{step}"
    if kind == 4:
        return f"{draw.randint(low, wanted)}/{draw.randint(1, 7)}"
    if kind == 5:
        return ",".join(str(value) for value in (draw.randint(low, high), wanted, draw.randint(low, high)))
    return str(draw.choice((wanted, wanted, low, draw.randint(low, high))))


def _date(draw: Random, near: datetime) -> str:
    one = ("L", "LW", f"L-{draw.randint(1, 30)}", f"{draw.randint(1, 31)}W", f"{near.day}W", f"*/{draw.randint(1, 31)}")
    return draw.choice((*one, f"{near.day},L", _field(draw, near.day, 1, 31)))


def _month(draw: Random, near: datetime) -> str:
    name = MONTHS[near.month - 1]
    return draw.choice((name, name.lower(), f"JAN-{name}", f"{name}-12", str(near.month), f"*/{draw.randint(1, 12)}"))


def _weekday(draw: Random, near: datetime) -> str:
    number = near.isoweekday() % 7
    name = WEEKDAYS[number]
    nth = (near.day + 6) // 7
    one = (name, name.lower(), f"{name}#{nth}", f"{number or 7}#{nth}", f"{number}L", f"{name}L", f"SUN-{name}")
    return draw.choice((*one, f"{name}-SAT", f"{number}-7", "*/2", "*/3", "MON-FRI", f"1-7/{draw.randint(1, 6)}"))


def _is_wild(cron: str) -> bool:
    fields = cron.split()
    return any(field.startswith("*") for field in fields[-5:-3])


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
