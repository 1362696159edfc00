from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sexton.errors import InvalidInput
from sexton.holds import ALL, Part
from sexton_tui.console.core.hold_parts import parse_part
from sexton_tui.console.core.typed_instants import parse_reading

NEAR = datetime(2026, 3, 28, 2, 10, tzinfo=UTC)
NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)


def at(hour: int, minute: int = 0, day: int = 28) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", ALL),
        (" all ", ALL),
        ("newest 3", Part(newest=3)),
        ("7", Part(newest=7)),
        ("02:05", Part(begin=at(2, 5), end=at(2, 5).replace(second=1))),
        ("02:00 to 02:30", Part(begin=at(2), end=at(2, 30))),
        ("2026-03-27 23:00 to 02:00:30", Part(begin=at(23, day=27), end=at(2).replace(second=30))),
        ("2026-03-28T02:00:00Z to 03:00Z", Part(begin=at(2), end=at(3))),
    ],
)
def test_a_part_is_read_as_it_is_typed(text: str, part: Part) -> None:
    assert parse_part(text, NEAR, NOW) == part


def test_a_reading_is_of_the_zone_that_the_screen_shows_unless_it_says_utc() -> None:
    shown = NOW.astimezone(ZoneInfo("Europe/Berlin"))
    assert parse_part("03:00 to 04:00Z", NEAR, shown) == Part(begin=at(2), end=at(4))


@pytest.mark.parametrize(
    "text", ["some", "newest 0", "newest", "25:00", "02:00 to", "25:00 to 26:00", "03:00 to 02:00"]
)
def test_what_names_no_part_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_part(text, NEAR, NOW)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("reading", "zone"), [("0001-01-01 00:00", "Europe/Berlin"), ("9999-12-31 23:59", "America/Lima")]
)
def test_a_year_that_no_clock_reaches_is_refused(reading: str, zone: str) -> None:
    with pytest.raises(InvalidInput, match="is no instant"):
        parse_reading(reading, NEAR, NOW.astimezone(ZoneInfo(zone)))


@pytest.mark.parametrize(
    ("reading", "told"),
    [("2026-03-29 02:30", "is left out there"), ("2026-10-25 02:30", "comes twice there")],
)
def test_a_reading_that_no_instant_or_two_show_is_asked_for_in_utc(reading: str, told: str) -> None:
    shown = NOW.astimezone(ZoneInfo("Europe/Berlin"))
    with pytest.raises(InvalidInput, match=told):
        parse_reading(reading, NEAR, shown)
    assert parse_reading(f"{reading}Z", NEAR, shown).hour == 2


def test_of_two_instants_that_show_a_reading_both_are_named() -> None:
    shown = NOW.astimezone(ZoneInfo("Europe/Berlin"))
    with pytest.raises(InvalidInput) as refused:
        parse_reading("2026-10-25 02:30", NEAR, shown)
    assert refused.value.hint == "write 2026-10-25 00:30Z or 2026-10-25 01:30Z"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("-2h", at(10, day=29)),
        ("1h 30m ago", at(10, 30, day=29)),
        ("-1d", at(12)),
        ("now", NOW),
        ("yesterday 02:00", at(1)),
        ("today", at(23)),
        ("2026-03-28", at(23, day=27)),
        ("2026-03-28T02:00:00+01:00", at(1)),
    ],
)
def test_a_time_may_be_a_distance_back_a_day_or_as_commands_take_it(text: str, instant: datetime) -> None:
    assert parse_reading(text, NEAR, NOW.astimezone(ZoneInfo("Europe/Berlin"))) == instant


@pytest.mark.parametrize("text", ["-", "ago", "2 ago", "-99999999999d", "yesterday 25:00", "tomorrow", "Z", ""])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no instant"):
        parse_reading(text, NEAR, NOW)
