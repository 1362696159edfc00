from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from sexton.cluster_views import Lateness, LatenessMinute
from sexton_tui.console.core.plot import Plot, peaks, plot

NOW = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def minute(minutes_ago: int, max_ms: float) -> LatenessMinute:
    late = timedelta(milliseconds=max_ms)
    return LatenessMinute(NOW - minutes_ago * MINUTE, Lateness(1, late, late, late))


def drawn(*minutes: LatenessMinute, takeovers: tuple[datetime, ...] = (), ascii_only: bool = True) -> Plot:
    return plot(minutes, takeovers, NOW, width=37, height=4, ascii_only=ascii_only)  # 30 columns: one a minute


def test_columns_keep_the_highest_of_what_falls_into_them() -> None:
    values = peaks([minute(10, 5), minute(9, 300), minute(8, 7)], NOW, 10, 30 * MINUTE)
    assert values[6] == 5
    assert values[7] == 300  # minutes 9 and 8: the peak survives
    assert values[0] is None


def test_every_minute_fills_its_columns_without_gaps() -> None:
    every = [minute(ago, 10) for ago in range(1, 31)]
    for columns in (7, 29, 30, 31, 60, 119):
        assert None not in peaks(every, NOW, columns, 30 * MINUTE)


def test_a_peak_stands_out_on_a_logarithmic_axis() -> None:
    high = drawn(*(minute(ago, 8) for ago in range(1, 31)), minute(15, 800))
    assert high.rows[0].startswith("   1 s ")
    assert high.rows[-1].startswith("  1 ms ")
    assert high.rows[0].count("*") == 1
    assert high.rows[0].index("*") == 7 + 15
    assert high.rows[-1].count("*") == 30


def test_no_run_draws_nothing_and_a_run_without_lateness_draws_a_dot() -> None:
    assert "*" not in "".join(drawn().rows)
    assert "".join(drawn(minute(3, 0)).rows).count("*") == 1


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("width", [1, 8, 9, 30, 70, 211])
def test_all_rows_have_one_width(width: int, ascii_only: bool) -> None:
    at = (NOW - 17 * MINUTE, NOW - 2 * MINUTE, NOW - timedelta(hours=2))
    one = plot([minute(2, 50)], at, NOW, width=width, height=3, ascii_only=ascii_only)
    assert {cell_len(row) for row in (*one.rows, one.marks)} == {max(width, 8)}
    if ascii_only:
        assert "".join(one.rows).isascii()


def test_takeovers_are_marked_with_their_time_where_there_is_room() -> None:
    marks = drawn(takeovers=(NOW - 20 * MINUTE,)).marks
    assert marks == " " * 7 + " " * 10 + "^ takeover 02:10" + " " * 4
    late = drawn(takeovers=(NOW - 2 * MINUTE,)).marks
    assert late == " " * 7 + " " * 13 + "takeover 02:28 " + "^ "
    assert drawn(takeovers=(NOW - 31 * MINUTE,)).marks.strip() == ""


def test_of_takeovers_close_together_the_newest_is_named_and_all_are_marked() -> None:
    marks = drawn(takeovers=(NOW - 5 * MINUTE, NOW - 4 * MINUTE)).marks
    assert marks.count("^") == 2
    assert "takeover 02:26" in marks
    assert "02:25" not in marks


def test_braille_cells_fill_from_below() -> None:
    one = drawn(*(minute(ago, 10) for ago in range(1, 31)), ascii_only=False)
    assert set(one.rows[0][7:]) == {"⣿"}
    low = drawn(*(minute(ago, 1) for ago in range(1, 31)), ascii_only=False)
    assert set(low.rows[-1][7:]) == {"⣀"}
    assert low.rows[0][7:].strip() == ""
