"""A month of ticks, day by day, beside the ticks listed one by one."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sexton.schedule_specs import schedule_from_spec
from sexton.tick_calendar import calendar_month, runs_of
from sexton.zones import load_zone

DECEMBER = date(2026, 12, 1)


def spec(cron: str, zone: str, **keys: Any) -> dict[str, Any]:
    return {"parts": [{"cron": cron}], "timezone": zone, **keys}


@pytest.mark.parametrize(
    ("described", "month"),
    [
        (spec("0,20,40 * * * *", "Europe/Berlin"), date(2026, 3, 17)),
        (spec("0,20,40 * * * *", "Europe/Berlin"), date(2026, 10, 1)),
        (spec("*/7 * * * *", "Pacific/Apia"), date(2011, 12, 31)),  # 30 December is not there
        (spec("*/7 * * * *", "America/St_Johns"), date(2006, 10, 1)),  # at 00:01 back to 23:01 of the day before
        (spec("15 0 * * *", "Africa/Cairo"), date(2023, 4, 1)),  # midnight is jumped over
        (spec("30 0 * * *", "America/Havana", dst={"gap": "shift", "overlap": "both"}), date(2026, 11, 1)),
        (spec("* * * * *", "Australia/Lord_Howe"), date(2026, 4, 1)),
        (spec("59 23 L * *", "Asia/Kathmandu"), date(2026, 2, 28)),
        (spec("0 0 * * *", "Pacific/Kiritimati"), date(1994, 12, 1)),
        ({"parts": [{"every_ms": 7_777_000}], "timezone": "Europe/London"}, date(2026, 3, 1)),
        (spec("0 12 * * *", "Europe/Berlin", start="2026-12-03T11:00:00Z", end="2026-12-20T11:00:00Z"), DECEMBER),
    ],
)
def test_every_day_has_the_ticks_that_its_date_has(described: dict[str, Any], month: date) -> None:
    schedule, zone = schedule_from_spec(described), str(described["timezone"])
    drawn = calendar_month(schedule, zone, month)
    start = datetime(month.year, month.month, 1, tzinfo=UTC) - timedelta(days=3)
    place = load_zone(zone)
    listed = Counter(tick.astimezone(place).date() for tick in schedule.between(start, start + timedelta(days=38)))
    assert {day.day: day.ticks for day in drawn.days} == {day.day: listed[day.day] for day in drawn.days}
    assert drawn.ticks == sum(
        count for day, count in listed.items() if (day.year, day.month) == (month.year, month.month)
    )
    assert drawn.ticks > 0


def test_a_month_is_all_its_days_in_weeks_from_monday() -> None:
    drawn = calendar_month(schedule_from_spec(spec("0 5 * * *", "UTC")), "UTC", date(2026, 2, 14), date(2026, 2, 14))
    assert [day.day.day for day in drawn.days] == [*range(1, 29)]
    assert [day.day.day for day in drawn.days if day.is_today] == [14]
    assert [len(week) for week in drawn.weeks] == [7] * 5
    assert [place is None for place in drawn.weeks[0]] == [True] * 6 + [False]
    assert all(day is None or day.day.weekday() == place for week in drawn.weeks for place, day in enumerate(week))
    assert all(later.day - earlier.day == timedelta(days=1) for earlier, later in pairwise(drawn.days))


@pytest.mark.parametrize(
    ("zone", "month", "days"),
    [
        ("Europe/Berlin", date(2026, 3, 1), [29]),
        ("Europe/Berlin", date(2026, 10, 1), [25]),
        ("America/Sao_Paulo", date(2018, 11, 1), [4]),  # midnight of the 4th is jumped over
        ("America/Sao_Paulo", date(2018, 2, 1), [17]),  # at midnight back to 23:00 of the 17th
        ("Pacific/Apia", date(2011, 12, 1), [30]),
        ("Africa/Casablanca", date(2026, 3, 1), [22]),
        ("UTC", date(2026, 3, 1), []),
    ],
)
def test_the_days_on_which_the_clock_changes_are_known(zone: str, month: date, days: list[int]) -> None:
    drawn = calendar_month(schedule_from_spec(spec("0 5 * * *", zone)), zone, month)
    assert [day.day.day for day in drawn.days if day.changes] == days


def test_a_date_that_the_zone_left_out_is_not_lived() -> None:
    drawn = calendar_month(schedule_from_spec(spec("0 5 * * *", "Pacific/Apia")), "Pacific/Apia", date(2011, 12, 1))
    assert [day.day.day for day in drawn.days if not day.is_lived] == [30]


@pytest.mark.parametrize("bounds", [{}, {"start": "2026-01-01T00:00:00Z", "end": "2027-01-01T00:00:00Z"}])
def test_excluded_days_say_why(bounds: dict[str, str]) -> None:
    exclude = {"dates": ["2026-12-31", "2026-12-25"], "weekdays": [0, 6], "holidays": ["DE-BE", "AT"]}
    schedule = schedule_from_spec(spec("0 5 * * *", "Europe/Berlin", exclude=exclude, **bounds))
    drawn = calendar_month(schedule, "Europe/Berlin", DECEMBER)
    assert [(why, [day.day for day in days]) for why, days in runs_of(drawn)] == [
        ("a Saturday", [5, 12, 19]),
        ("a Sunday", [6, 13, 20, 27]),
        ("a holiday of AT", [8]),
        ("a holiday of DE-BE and AT", [25, 26]),
        ("a date to exclude", [31]),
    ]
    assert all((day.ticks == 0) == bool(day.excluded) for day in drawn.days)


def test_a_month_of_every_second_is_counted() -> None:
    every_second = schedule_from_spec(spec("* * * * * *", "America/New_York"))
    drawn = calendar_month(every_second, "America/New_York", date(2026, 11, 1))
    assert [day.ticks for day in drawn.days] == [90_000] + [86_400] * 29
