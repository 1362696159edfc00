"""What is said about ticks near a change of the clock, beside a walk over every minute of the days around it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.tick_marks import Showing, TickMarks, clock_changes, marked_between, marks_of, showing_of
from sexton.zones import load_zone

MINUTE = timedelta(minutes=1)
YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
FIRST, SECOND = Showing.FIRST, Showing.SECOND


def local(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-29T{time}")


def berlin(*parts: object, **keys: object) -> Schedule:
    return schedule_from_spec({"parts": list(parts), "timezone": "Europe/Berlin", **keys})


def marked(schedule: Schedule) -> list[tuple[str, TickMarks]]:
    return [(f"{tick:%m-%d %H:%M}", marks) for tick, marks in marked_between(schedule, "Europe/Berlin", *YEAR)]


def test_a_time_in_the_gap_is_marked_where_it_fires_and_a_repeated_one_as_the_first() -> None:
    assert marked(berlin({"cron": "30 2 * * *"})) == [
        ("03-29 01:00", TickMarks(local("02:30"), has_own_reading=False)),
        ("10-25 00:30", TickMarks(showing=FIRST)),
    ]


def test_both_showings_are_told_apart() -> None:
    both = berlin({"cron": "30 2 * * *"}, dst={"gap": "skip", "overlap": "both"})
    assert marked(both) == [("10-25 00:30", TickMarks(showing=FIRST)), ("10-25 01:30", TickMarks(showing=SECOND))]
    second = berlin({"cron": "30 2 * * *"}, dst={"gap": "skip", "overlap": "second"})
    assert marked(second) == [("10-25 01:30", TickMarks(showing=SECOND))]


def test_a_tick_that_is_real_too_says_so_and_names_the_earliest_time_that_was_jumped_over() -> None:
    shifted = TickMarks(local("02:15"), has_own_reading=True)
    one_expression = berlin({"cron": "0 3 * * *"}, {"cron": "15,45 2 * * *"})
    assert marked(one_expression)[0] == ("03-29 01:00", shifted)
    assert marked(berlin({"cron": "15,45 2 * * *"}, {"every_ms": 3_600_000}))[0] == ("03-29 01:00", shifted)
    assert marked(berlin({"cron": "45 2 * * *"}, {"cron": "15 2 * * *"}, {"cron": "30 2 * * *"}))[0][1] == TickMarks(
        local("02:15"), has_own_reading=False
    )
    assert marked(berlin({"cron": "45,15 2,3 * * *"}))[0][1].has_own_reading is False
    assert marked(berlin({"cron": "0,15 2,3 * * *"}))[0][1].has_own_reading is True


def test_elapsed_time_shifts_nothing_and_shows_every_repeated_tick() -> None:
    assert marked(berlin({"cron": "*/30 * * * *"})) == [
        ("10-25 00:00", TickMarks(showing=FIRST)),
        ("10-25 00:30", TickMarks(showing=FIRST)),
        ("10-25 01:00", TickMarks(showing=SECOND)),
        ("10-25 01:30", TickMarks(showing=SECOND)),
    ]


def test_a_calendar_tick_inside_bounds_and_exclusions_is_marked_too() -> None:
    part = {"calendar": {"days": 1}, "at": "02:30:00", "start": "2026-01-01", "month_end": "clamp"}
    bounded = berlin(
        part,
        start="2026-02-01T00:00:00Z",
        end="2026-06-01T00:00:00Z",
        exclude={"dates": [], "weekdays": [1], "holidays": []},
    )
    assert marked(bounded) == [("03-29 01:00", TickMarks(local("02:30"), has_own_reading=False))]


@pytest.mark.parametrize(
    ("zone", "year"),
    [
        ("Europe/Berlin", 2026),
        ("America/New_York", 2026),
        ("Australia/Lord_Howe", 2026),  # half an hour
        ("Africa/Casablanca", 2026),  # four changes around Ramadan
        ("Pacific/Apia", 2011),  # a day that is not there
        ("Kwajalein", 1969),  # a day that came twice
        ("Pacific/Kwajalein", 1993),
        ("America/Caracas", 2016),
        ("Asia/Kathmandu", 1986),
        ("UTC", 2026),
    ],
)
def test_showings_agree_with_a_walk_over_every_minute(zone: str, year: int) -> None:
    place = load_zone(zone)
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    changes = clock_changes(zone, start, end)
    hours = [start + timedelta(hours=number) for number in range((end - start) // timedelta(hours=1) + 1)]
    offsets = [hour.astimezone(place).utcoffset() for hour in hours]
    assert len(changes) == sum(earlier != later for earlier, later in pairwise(offsets))
    for change in changes:
        around = [change.at + number * MINUTE for number in range(-3 * 1440, 3 * 1440)]
        shown = [instant.astimezone(place).replace(tzinfo=None) for instant in around]
        times = Counter(shown)
        seen: set[datetime] = set()
        for instant, reading in list(zip(around, shown, strict=True)):
            expected = None if times[reading] == 1 else (SECOND if reading in seen else FIRST)
            seen.add(reading)
            assert showing_of(instant, zone) == expected, (instant, reading)


def test_every_marked_tick_of_a_year_is_found_without_listing_the_year() -> None:
    rules = {"gap": "shift", "overlap": "both"}
    for spec in (
        {"parts": [{"cron": "20,50 0-3 * * *"}], "timezone": "America/New_York", "dst": rules},
        {"parts": [{"cron": "*/10 * * * *"}], "timezone": "Africa/Casablanca"},
        {"parts": [{"cron": "10,40 1-2 * * *"}, {"every_ms": 1_700_000}], "timezone": "Australia/Lord_Howe"},
    ):
        schedule, zone = schedule_from_spec(spec), str(spec["timezone"])
        listed = [(tick, marks) for tick in schedule.between(*YEAR) if (marks := marks_of(schedule, tick, zone))]
        assert list(marked_between(schedule, zone, *YEAR)) == listed
        assert listed
