"""A clock on a wall, watched second by second: what a schedule's specification should do around a change of the clock.

Shares no code with Sexton. `Walk` asks the zone for every single second, once; `expected_ticks` then judges a whole
specification, as a revision stores it, by what the clock showed: which readings match, which were shown before, which
will be shown again, which were jumped over.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from tests.support.cron_oracle import Oracle

DAY_SECONDS = 86_400
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Matches = Callable[[int], bool]


class Walk:
    """Every second of [start, stop) on the wall of a zone. Readings are seconds of the wall clock since 1970."""

    def __init__(self, zone: ZoneInfo, start: int, stop: int) -> None:
        self.zone = zone
        self.start = start
        self.stop = stop
        self.readings = [second + _offset(zone, second) for second in range(start, stop)]
        self.is_first: list[bool] = []
        self.jumped_over: dict[int, list[int]] = {}
        shown: set[int] = set()
        before = start - 1 + _offset(zone, start - 1)
        for index, reading in enumerate(self.readings):
            if reading > before + 1:
                self.jumped_over[index] = [one for one in range(before + 1, reading) if one not in shown]
            self.is_first.append(reading not in shown)
            shown.add(reading)
            before = reading
        self.last_index = {reading: index for index, reading in enumerate(self.readings)}

    def ticks(self, matches: Matches, follows_elapsed_time: bool, gap: str, overlap: str) -> set[int]:
        """The seconds at which a schedule fires whose readings `matches` tells."""
        found = set()
        for index, reading in enumerate(self.readings):
            if matches(reading) and (
                follows_elapsed_time
                or overlap == "both"
                or (self.is_first[index] if overlap == "first" else self.last_index[reading] == index)
            ):
                found.add(self.start + index)
        if not follows_elapsed_time and gap == "shift":
            for index, jumped_over in self.jumped_over.items():
                if any(matches(reading) for reading in jumped_over):
                    found.add(self.start + index)
        return found


def expected_ticks(spec: Mapping[str, Any], walk: Walk, after: datetime, upto: datetime) -> list[datetime]:
    """The ticks in (after, upto] of a specification, for a period well inside the walk."""
    dst = spec.get("dst") or {"gap": "shift", "overlap": "first"}
    ticks: set[datetime] = set()
    for part in spec["parts"]:
        if "cron" in part:
            oracle = Oracle(part["cron"])
            seconds = walk.ticks(_matches(oracle), oracle.is_wild, dst["gap"], dst["overlap"])
            ticks |= {EPOCH + timedelta(seconds=second) for second in seconds}
        elif "calendar" in part:
            seconds = walk.ticks(_calendar_matches(part), False, dst["gap"], dst["overlap"])
            ticks |= {EPOCH + timedelta(seconds=second) for second in seconds}
        elif "every_ms" in part:
            ticks |= set(_every(part, after, upto))
        else:
            ticks |= {datetime.fromisoformat(text) for text in part["at"]}
    start, end = spec.get("start"), spec.get("end")
    return sorted(
        tick
        for tick in ticks
        if after < tick <= upto
        and not (spec.get("exclude") and _is_excluded(tick, walk.zone, spec["exclude"]))
        and not (start and tick < datetime.fromisoformat(start))
        and not (end and tick >= datetime.fromisoformat(end))
    )


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _matches(oracle: Oracle) -> Matches:
    minutes = {60 * hour + minute for hour, minute in oracle.minutes}
    seconds = set(oracle.seconds)
    day_matches = cache(lambda day: oracle.day_matches(date(1970, 1, 1) + timedelta(days=day)))

    def matches(reading: int) -> bool:
        return reading % 60 in seconds and reading // 60 % 1440 in minutes and day_matches(reading // DAY_SECONDS)

    return matches


def _calendar_matches(part: Mapping[str, Any]) -> Matches:
    ((unit, every),) = part["calendar"].items()
    hour, minute, second = (int(number) for number in part["at"].split(":"))
    time = hour * 3600 + minute * 60 + second
    start = date.fromisoformat(part["start"])

    @cache
    def has(day: int) -> bool:
        on = date(1970, 1, 1) + timedelta(days=day)
        if on < start:
            return False
        if unit in ("days", "weeks"):
            return bool((on - start).days % (every * (7 if unit == "weeks" else 1)) == 0)
        months = (on.year - start.year) * 12 + on.month - start.month
        length = monthrange(on.year, on.month)[1]
        wanted = min(start.day, length) if part["month_end"] == "clamp" else start.day
        return bool(on.day == wanted and months % (every * (12 if unit == "years" else 1)) == 0)

    return lambda reading: reading % DAY_SECONDS == time and has(reading // DAY_SECONDS)


def _every(part: Mapping[str, Any], after: datetime, upto: datetime) -> list[datetime]:
    anchor, interval = datetime.fromisoformat(part["anchor"]), part["every_ms"] * MILLISECOND
    tick = anchor + (after - anchor) // interval * interval
    found = []
    while tick <= upto:
        found.append(tick)
        tick += interval
    return found


def _is_excluded(tick: datetime, zone: ZoneInfo, exclude: Mapping[str, Any]) -> bool:
    on = tick.astimezone(zone).date()
    return on.isoformat() in exclude["dates"] or on.isoweekday() % 7 in exclude["weekdays"]
