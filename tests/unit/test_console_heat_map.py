from __future__ import annotations

from datetime import UTC, date, timedelta

from sexton.zones import load_zone
from sexton_tui.console.core.heat_map import bounds_of, days_shown, heat_map, scale_words

SUNDAY = date(2026, 3, 29)


def test_the_map_ends_with_today_and_begins_on_a_monday() -> None:
    days = days_shown(SUNDAY, weeks=2)
    assert (days[0], days[-1], len(days)) == (date(2026, 3, 16), SUNDAY, 14)
    assert days_shown(date(2026, 3, 24), weeks=1) == [date(2026, 3, 23), date(2026, 3, 24)]


def test_days_are_told_by_quarters_of_the_busiest_and_what_lies_ahead_is_blank() -> None:
    counts = {date(2026, 3, 16): 1, date(2026, 3, 17): 26, date(2026, 3, 18): 75, date(2026, 3, 23): 100}
    assert heat_map(counts, date(2026, 3, 24), weeks=2) == [
        "    Mar",
        "Mon ░░██",
        "Tue ▒▒· ",
        "Wed ▓▓",
        "Thu · ",
        "Fri · ",
        "Sat · ",
        "Sun · ",
    ]
    assert heat_map(counts, date(2026, 3, 24), weeks=2, ascii_only=True)[1:3] == ["Mon ..##", "Tue ::- "]
    assert scale_words(100) == "░░ 1-25  ▒▒ 26-50  ▓▓ 51-75  ██ 76-100"
    assert (scale_words(1), scale_words(0)) == ("██ 1", "")


def test_months_are_named_over_their_first_week() -> None:
    first = heat_map({}, SUNDAY)[0]
    assert first == "      Oct     Nov     Dec       Jan     Feb     Mar"


def test_a_day_begins_at_midnight_of_the_zone_though_the_clock_changes() -> None:
    berlin = load_zone("Europe/Berlin")
    begin, end = bounds_of([SUNDAY], berlin)
    assert end.astimezone(UTC) - begin.astimezone(UTC) == timedelta(hours=23)
