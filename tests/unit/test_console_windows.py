"""Long lists: which blocks are read and kept, where a window of runs stands, what a filter lets pass."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sexton.cluster_views import OverviewPart
from sexton.errors import InvalidInput
from sexton.views import RunKey
from sexton_tui.console.core.filters import Filter, filtered, holds_letters, keys_of, parse_filter
from sexton_tui.console.core.lines import row
from sexton_tui.console.core.pace import PERIODS, STATEMENTS_A_SECOND, Pace
from sexton_tui.console.core.run_window import RunWindow
from sexton_tui.console.core.windows import BLOCK, KEPT_BLOCKS, Window, span_of_blocks


def _rows(first: int, number: int) -> list[object]:
    return [row(str(place), f"row {place}") for place in range(first, first + number)]


def test_only_the_blocks_that_were_looked_at_last_are_kept() -> None:
    window = Window()
    for block in range(KEPT_BLOCKS):
        assert window.put(0, block * BLOCK, _rows(block * BLOCK, BLOCK), 50_000)  # type: ignore[arg-type]  # rows
    assert window.is_known(0, 10)  # looked at: the next one to go is block 1
    assert window.put(0, 49_920, _rows(49_920, 80), 50_000)  # type: ignore[arg-type]  # rows
    assert window.is_known(49_900, 60_000) is False
    assert window.is_known(49_920, 60_000)
    assert window.row(5) is not None
    assert window.row(BLOCK) is None
    assert window.place_of("49999") == 49_999


def test_what_was_read_for_an_older_list_is_dropped() -> None:
    window = Window()
    asked_in = window.generation
    window.renew()
    assert not window.put(asked_in, 0, _rows(0, 3), 3)  # type: ignore[arg-type]  # rows
    assert window.row(0) is None


def test_rows_that_went_away_are_not_shown_any_more() -> None:
    window = Window()
    window.put(0, 0, _rows(0, 200), 200)  # type: ignore[arg-type]  # rows
    window.put(0, 0, _rows(0, 100), 100)  # type: ignore[arg-type]  # rows
    assert window.row(150) is None
    assert len(list(window.known())) == 100


@pytest.mark.parametrize(
    ("first", "last", "span"), [(0, 30, (0, 128)), (120, 150, (0, 256)), (49_990, 50_030, (49_920, 128))]
)
def test_whole_blocks_are_read(first: int, last: int, span: tuple[int, int]) -> None:
    assert span_of_blocks(first, last) == span


def test_a_window_of_runs_grows_by_keys_and_forgets_what_a_new_first_block_moved() -> None:
    keys = [RunKey(datetime(2026, 3, 29, 2, 30 - minute, tzinfo=UTC), minute) for minute in range(4)]
    window = RunWindow().read(0, BLOCK, keys[1])
    assert window.total == 2 * BLOCK
    assert (window.next_block(BLOCK + 1), window.before(1)) == (1, keys[1])
    window = window.read(1, BLOCK, keys[2])
    assert window.read(0, BLOCK, keys[1]) == window  # nothing ended meanwhile
    assert window.read(0, BLOCK, keys[3]).keys == (keys[3],)
    assert window.read(2, 17, None).total == 2 * BLOCK + 17


def test_a_filter_has_letters_and_words_and_says_what_it_does_not_know() -> None:
    found = parse_filter("nightly state:paused queue:gpu bill owner:data tag:ml")
    assert found == Filter("nightly bill", "paused", "gpu", "data", "ml")
    assert parse_filter("12:30").letters == "12:30"
    for text, told in (
        ("colour:red", "this list has no colour:"),
        ("queue:", "wants a word"),
        ("tag:a tag:b", "twice"),
    ):
        with pytest.raises(InvalidInput, match=told):
            parse_filter(text)
    with pytest.raises(InvalidInput, match="this list has no owner:"):
        parse_filter("owner:x", keys_of(("worker", "state", "queues")))


def test_rows_pass_by_letters_in_their_order_and_by_whole_words_of_a_column() -> None:
    assert holds_letters("Nightly-Billing", "ngt bll")
    assert not holds_letters("nightly", "yn")
    columns = ("worker", "state", "queues")
    rows = [row("1", "worker-1", "serves", "default, gpu"), row("2", "worker-2", "silent", "gpu-large")]
    assert filtered(rows, columns, parse_filter("queue:gpu", keys_of(columns))) == rows[:1]
    assert filtered(rows, columns, parse_filter("wrk2", keys_of(columns))) == rows[1:]


@pytest.mark.parametrize("cost", [1, 3, 8, 30])
def test_refreshes_stay_within_five_statements_a_second_and_read_everything_in_turn(cost: int) -> None:
    pace, now = Pace().began(0.0), 0.0
    spent: list[int] = []
    read: dict[object, list[float]] = {"view": [], **{part: [] for part in OverviewPart}}
    for now in (float(second) for second in range(1, 121)):
        turn = pace.turn(now, "jobs", is_asked=False)
        statements = 1 + len(turn.parts) + cost * turn.view
        for one in (*turn.parts, *(["view"] if turn.view else [])):
            read[one].append(now)
        pace = pace.spent(now, turn, statements, "jobs", cost if turn.view else None)
        spent.append(statements)
    assert sum(spent) <= STATEMENTS_A_SECOND * now + cost
    if cost <= 3:
        assert max(spent) <= STATEMENTS_A_SECOND
    assert len(read["view"]) >= now * min(1.0, 3 / cost)
    for part, period in PERIODS.items():
        assert max(b - a for a, b in zip(read[part], read[part][1:], strict=False)) <= 4 * max(period, cost / 4)


def test_after_an_act_every_part_is_read_within_two_polls() -> None:
    pace, read = Pace().began(0.0).acted(), set[OverviewPart]()
    for now in (0.1, 1.1):
        turn = pace.turn(now, "jobs", is_asked=True)
        pace = pace.spent(now, turn, 1 + len(turn.parts), "jobs", None)
        read |= turn.parts
    assert read == set(OverviewPart)


def test_a_key_is_answered_at_once_until_the_debt_is_high() -> None:
    pace = Pace().began(0.0)
    answered = 0
    for number in range(50):
        turn = pace.turn(number / 100, "jobs", is_asked=True)
        answered += turn.view
        pace = pace.spent(number / 100, turn, 1 + 4 * turn.view, "jobs", 4)
    assert 5 <= answered < 15
    assert pace.wait(0.5) > 0
    assert pace.wait(60.0) == 0
