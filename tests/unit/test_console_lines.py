from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sexton.claims import State
from sexton_tui.console.core.lines import Line, clean, fit, line, row, text_lines, to_ascii
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.core.words import count, duration, instant, plural, size, strip, wants_ascii

NOW = datetime(2026, 3, 29, 2, 30, 41, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain name", "plain name"),
        ("a [/x] b", "a [/x] b"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x7fb\rc\n", "a\\x7fb\\x0dc\\x0a"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("Zählung 東京", "Zählung 東京"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_as_an_escape(raw: str, shown: str) -> None:
    assert clean(raw) == shown
    assert line(raw).text == shown
    assert row("key", raw).cells[0].text == shown


def test_of_a_text_that_no_column_has_room_for_only_the_begin_is_cleaned() -> None:
    cell = row("key", "\u202e" * 10_000).cells[0]
    assert cell.text == "\\u202e" * 200 + "…"
    assert row("key", "x" * 200).cells[0].text == "x" * 200


@given(st.text())
def test_cleaned_text_has_no_control_characters_whatever_it_was(raw: str) -> None:
    shown = clean(raw)
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert clean(shown) == shown


@given(st.text())
def test_ascii_text_is_ascii(raw: str) -> None:
    assert to_ascii(clean(raw)).isascii()


@given(st.lists(st.text(), max_size=4), st.integers(min_value=1, max_value=30))
def test_a_fitted_line_fits(parts: list[str], width: int) -> None:
    whole = line(*parts)
    fitted = fit(whole, width)
    assert cell_len(fitted.text) <= width
    if cell_len(whole.text) <= width:
        assert fitted == whole
    else:
        assert fitted.text.endswith("…")


def test_output_is_lines_of_cleaned_text() -> None:
    assert [one.text for one in text_lines(b"a\tb\r\n\x1b]0;owned\x07\n\xff\n")] == [
        "a       b",
        "\\x1b]0;owned\\x07",
        "\\xff",
    ]
    assert text_lines(b"") == (Line(),)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "-"),
        (timedelta(0), "0 ms"),
        (timedelta(milliseconds=4), "4 ms"),
        (timedelta(milliseconds=999.6), "1.0 s"),
        (timedelta(seconds=2.34), "2.3 s"),
        (timedelta(seconds=9.96), "10 s"),
        (timedelta(seconds=59.7), "1m00s"),
        (timedelta(minutes=13, seconds=7), "13m07s"),
        (timedelta(hours=3, minutes=10), "3h10m"),
        (timedelta(days=2, hours=4), "2d04h"),
        (timedelta(milliseconds=-3), "-3 ms"),
    ],
)
def test_durations(value: timedelta | None, words: str) -> None:
    assert duration(value) == words


def test_instants_name_the_day_when_it_is_another() -> None:
    assert instant(NOW - timedelta(minutes=1), NOW) == "02:29:41"
    assert instant(NOW - timedelta(days=1), NOW) == "Mar 28 02:30"
    assert instant(NOW - timedelta(days=365), NOW) == "2025-03-29"
    assert instant(None, NOW) == "-"


def test_counts_stop_where_counting_stopped() -> None:
    assert (count(12), count(1234), count(10_001)) == ("12", "1,234", "10,000+")
    assert (plural(1, "job"), plural(2, "job")) == ("1 job", "2 jobs")
    assert (size(17), size(65_536), size(3 * 1024 * 1024)) == ("17 B", "64 KiB", "3.0 MiB")


def test_a_strip_tells_outcomes_by_shape() -> None:
    outcomes = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.READY)
    assert strip(outcomes, 6) == "  ▪✗–·"
    assert strip(outcomes, 6, ascii_only=True) == "  oX-."
    assert strip(outcomes, 2) == "–·"


@pytest.mark.parametrize(
    ("environ", "ascii_only"),
    [
        ({}, True),
        ({"LANG": "C"}, True),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.utf8@euro"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),  # Python itself sets that one
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_ALL": "en_US.UTF-8"}, False),
    ],
)
def test_the_locale_decides_about_ascii(environ: dict[str, str], ascii_only: bool) -> None:
    assert wants_ascii(environ) is ascii_only


def test_what_is_being_read_says_so_in_plain_ascii_too_and_what_is_in_the_way() -> None:
    assert reading_line().text == "reading …"
    assert reading_line("no data yet; gone", ascii_only=True).text == "reading ...  no data yet; gone"
