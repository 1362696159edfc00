"""The calendar of `sexton next --calendar`, as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from sexton.schedule_specs import schedule_from_spec
from sexton.tick_calendar import CalendarMonth, calendar_month
from sexton.tick_marks import ClockChange, Showing, TickMarks, marked_between
from sexton.zones import load_zone
from sexton_tui.cli.month_drawing import Line, busy_style, month_lines, short_count
from sexton_tui.console.core.clock_words import (
    available_text,
    change_text,
    local_text,
    mark_text,
    short_change_text,
    short_mark_text,
)

BERLIN = load_zone("Europe/Berlin")


def drawn(month: date, cron: str = "30 2 * * *", zone: str = "Europe/Berlin", **keys: Any) -> list[Line]:
    schedule = schedule_from_spec({"parts": [{"cron": cron}], "timezone": zone, **keys})
    made: CalendarMonth = calendar_month(schedule, zone, month, date(2026, 3, 3))
    return month_lines(made, "nightly", list(marked_between(schedule, zone, *made.bounds)), load_zone(zone))


def text_of(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def test_a_month_with_today_a_change_of_the_clock_and_excluded_days() -> None:
    exclude = {"dates": ["2026-03-02", "2026-03-03"], "weekdays": [6], "holidays": ["DE-BE"]}
    assert text_of(drawn(date(2026, 3, 1), exclude=exclude)) == [
        "March 2026, Europe/Berlin  nightly",
        "",
        " Mon        Tue        Wed        Thu        Fri        Sat        Sun",
        "                                                                    1 ×1",
        "  2 ·x     [ 3]·x       4 ×1       5 ×1       6 ×1       7 ·x       8 ·x",
        "  9 ×1      10 ×1      11 ×1      12 ×1      13 ×1      14 ·x      15 ×1",
        " 16 ×1      17 ×1      18 ×1      19 ×1      20 ×1      21 ·x      22 ×1",
        " 23 ×1      24 ×1      25 ×1      26 ×1      27 ×1      28 ·x      29 ×1~",
        " 30 ×1      31 ×1",
        "",
        "24 ticks on 24 days",
        "~ 29  the clock goes from 02:00 to 03:00 (+01:00 to +02:00)",
        "x     2-3: a date to exclude",
        "x     7, 14, 21, 28: a Saturday",
        "x     8: a holiday of DE-BE",
        "  29  02:30 does not exist: fires at 03:00",
    ]


def test_repeated_times_are_told_one_by_one_where_they_are_few() -> None:
    both = {"gap": "shift", "overlap": "both"}
    assert text_of(drawn(date(2026, 10, 1), dst=both))[-3:] == [
        "~ 25  the clock goes from 03:00 to 02:00 (+02:00 to +01:00)",
        "  25  02:30 comes twice: the first, CEST",
        "  25  02:30 comes twice: the second, CET",
    ]
    assert text_of(drawn(date(2026, 10, 1), "*/5 * * * *"))[-1] == (
        "  25  24 ticks from 02:00 to 02:55 at times that come twice"
    )


@pytest.mark.parametrize("cron", ["* * * * * *", "* * * * *", "0 5 * * *", "0 5 29 2 *"])
@pytest.mark.parametrize("zone", ["America/Argentina/ComodRivadavia", "Europe/Berlin", "Pacific/Apia"])
def test_no_line_is_wider_than_80_columns_and_weekdays_stand_below_each_other(cron: str, zone: str) -> None:
    for month in (date(2011, 12, 1), date(2026, 2, 1), date(2026, 10, 1)):
        lines = text_of(drawn(month, cron, zone))
        assert max(map(len, lines)) <= 80
        grid = lines[3 : lines.index("", 3)]
        shown = [line[column + 1 : column + 3] for line in grid for column in range(0, 77, 11)]
        numbers = [int(number) for number in shown if number.strip()]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert len(numbers) in (28, 31)


def test_counts_stay_short() -> None:
    assert [short_count(ticks) for ticks in (0, 1, 1440, 9999, 10_000, 86_400)] == [
        "·",
        "×1",
        "×1440",
        "×9999",
        "×10k",
        "×86k",
    ]


def test_busy_days_have_another_style_than_quiet_ones_and_alike_days_one() -> None:
    assert len({busy_style(ticks, 100) for ticks in (0, 1, 30, 60, 100)}) == 5
    assert busy_style(1, 1) == busy_style(1, 100)
    assert busy_style(100, 100) == busy_style(76, 100) != busy_style(75, 100)


def test_marks_in_words() -> None:
    tick = datetime(2026, 3, 29, 1, tzinfo=UTC)
    skipped = datetime.fromisoformat("2026-03-29T02:30")
    assert mark_text(tick, TickMarks(skipped, has_own_reading=False), BERLIN) == "02:30 does not exist: fires at 03:00"
    assert mark_text(tick, TickMarks(skipped), BERLIN) == "03:00 stands for 02:30 too, which does not exist"
    assert mark_text(tick, TickMarks(), BERLIN) == ""
    assert short_mark_text(TickMarks(skipped, has_own_reading=False)) == "instead of 02:30"
    assert short_mark_text(TickMarks(skipped)) == "also for 02:30"
    assert [short_mark_text(TickMarks(showing=one)) for one in Showing] == ["first of two", "second of two"]
    assert short_mark_text(TickMarks()) == ""


def test_changes_in_words() -> None:
    half = ClockChange(datetime(2026, 4, 4, 15, tzinfo=UTC), timedelta(hours=11), timedelta(hours=10, minutes=30))
    assert change_text(half) == "the clock goes from 02:00 to 01:30 (+11:00 to +10:30)"
    assert short_change_text(half) == "clock -30m today"
    line = ClockChange(datetime(2011, 12, 30, 10, tzinfo=UTC), timedelta(hours=-10), timedelta(hours=14))
    assert change_text(line) == "the clock goes from 12-30 00:00 to 12-31 00:00 (-10:00 to +14:00)"
    assert short_change_text(line) == "clock +1d today"
    amsterdam = ClockChange(
        datetime(1937, 6, 30, 23, 40, 28, tzinfo=UTC), timedelta(seconds=4772), timedelta(seconds=4800)
    )
    assert change_text(amsterdam) == "the clock goes from 01:00 to 01:00:28 (+01:19:32 to +01:20)"


def test_when_a_claim_becomes_available_is_on_the_clock_of_the_zone() -> None:
    tick = datetime(2026, 3, 29, 0, 59, 50, tzinfo=UTC)
    assert available_text(tick, timedelta(seconds=5), BERLIN) == "01:59:55"
    assert available_text(tick, timedelta(seconds=10), BERLIN) == "03:00:00"
    assert available_text(tick, timedelta(days=2), BERLIN) == "03-31 02:59:50"


def test_local_times_have_a_fraction_only_where_the_tick_has_one() -> None:
    tick = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert local_text(tick, BERLIN) == "Sun 2026-03-29 03:00:00 CEST"
    assert local_text(tick + timedelta(milliseconds=50), BERLIN) == "Sun 2026-03-29 03:00:00.050 CEST"
