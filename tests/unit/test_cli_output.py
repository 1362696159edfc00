"""Listings: the same rows as table, JSON and JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest

from sexton.claims import Origin, State
from sexton_tui.cli.output import Column, Output, cell_text, counted, instant_text, json_value, print_record, print_rows


@dataclass(frozen=True)
class Row:
    job: str
    tick: datetime
    state: State


ROWS = [Row("a", datetime(2026, 3, 29, 1, tzinfo=UTC), State.TIMED_OUT)]


def test_instants_print_as_the_design_says() -> None:
    assert instant_text(datetime(2026, 3, 29, 3, tzinfo=timezone(timedelta(hours=2)))) == "2026-03-29T01:00:00Z"
    assert instant_text(datetime(2026, 3, 29, 1, 0, 0, 123456, tzinfo=UTC)) == "2026-03-29T01:00:00.123456Z"
    with pytest.raises(ValueError, match="naive"):
        instant_text(datetime(2026, 3, 29))  # noqa: DTZ001 - the naive one is the point


def test_json_has_words_seconds_and_lists() -> None:
    value = {
        "state": State.READY,
        "origin": Origin.CATCH_UP,
        "for": timedelta(seconds=1.5),
        "raw": b"a\xff",
        "t": (1, None),
    }
    assert json_value(value) == {"state": "ready", "origin": "catch_up", "for": 1.5, "raw": "a\\xff", "t": [1, None]}


def test_json_holds_every_key_of_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, Output.JSON, ("job",))
    assert json.loads(capsys.readouterr().out) == [{"job": "a", "tick": "2026-03-29T01:00:00Z", "state": "timed_out"}]


def test_json_lines_are_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([*ROWS, *ROWS], Output.JSONL, ("job",))
    assert [json.loads(line)["job"] for line in capsys.readouterr().out.splitlines()] == ["a", "a"]


def test_a_table_shows_its_columns_without_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, Output.TABLE, (Column("state", "became"), "job", Column("tick", "at")))
    assert capsys.readouterr().out == "became     job  at\ntimed_out  a    2026-03-29T01:00:00Z\n"


def test_a_narrow_terminal_folds_texts_and_no_instants(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "34")
    monkeypatch.setenv("NO_COLOR", "1")
    print_rows([{"at": ROWS[0].tick, "file": "jobs/night.yaml"}], Output.TABLE, ("at", "file"))
    assert capsys.readouterr().out.splitlines()[1:] == ["2026-03-29T01:00:00Z  jobs/night.", f"{'':<22}yaml"]


def test_an_empty_listing_is_an_empty_list_for_programs_and_a_sentence_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows([], Output.JSON, ("job",), empty="no jobs yet")
    assert capsys.readouterr().out == "[]\n"
    print_rows([], Output.TABLE, ("job",), empty="no jobs yet")
    assert capsys.readouterr() == ("", "no jobs yet\n")


def test_stored_text_cannot_act_on_the_terminal() -> None:
    assert cell_text("a\x1b[31mred\nb\u202e") == "a\\x1b[31mred\\nb\\u202e"
    assert cell_text("[bold]kept[/bold] é") == "[bold]kept[/bold] é"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(seconds=-2), "-2s"),
        (("a", "b"), "a, b"),
        (State.LOST, "lost"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_one_is_not_said_in_the_plural() -> None:
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_a_record_is_a_line_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    print_record(ROWS[0], Output.TABLE)
    assert capsys.readouterr().out == "job    a\ntick   2026-03-29T01:00:00Z\nstate  timed_out\n"
