"""Tables in narrow terminals: instants stay whole, and nothing is lost."""

from __future__ import annotations

import pytest

from sexton_tui.cli.columns import Column
from sexton_tui.cli.table_layout import fold, table_lines

COLUMNS = (
    Column("tick"),
    Column("job", folds=True),
    Column("count", align="right", gives_way=2, usual="1"),
    Column("worker", gives_way=1),
    Column("reason", is_note=True),
)
TICK = "2026-11-29T23:52:09Z"
ROWS = (
    (TICK, "app01-backup-of-everything-there", "1", "vm-21093", "exited with code 127"),
    (TICK, "app01-ls", "3", "-", ""),
)


def test_a_table_that_fits_is_one_line_a_row() -> None:
    titles, first, second = table_lines(COLUMNS, ROWS, 120, lambda text: f"<{text}>")
    assert titles == f"<{'tick':<20}  {'job':<32}  count  worker    reason>"
    assert first == f"{TICK}  app01-backup-of-everything-there      1  vm-21093  exited with code 127"
    assert second == f"{TICK}  {'app01-ls':<32}      3  -"


def test_notes_go_under_their_row_before_a_column_goes() -> None:
    assert table_lines(COLUMNS, ROWS, 75)[1:3] == [
        f"{TICK}  app01-backup-of-everything-there      1  vm-21093",
        "    exited with code 127",
    ]


def test_a_column_that_went_is_told_where_it_is_not_the_usual() -> None:
    assert table_lines(COLUMNS, ROWS, 57) == [
        f"{'tick':<20}  {'job':<25}  worker",
        f"{TICK}  app01-backup-of-           vm-21093",
        f"{'':<20}  everything-there",
        "    exited with code 127",
        f"{TICK}  {'app01-ls':<25}  -",
        "    count 3",
    ]


def test_columns_that_hold_the_usual_alone_go_first() -> None:
    columns = (Column("a"), Column("b", gives_way=1, usual="0"), Column("c", gives_way=9), Column("d", same_as="a"))
    assert table_lines(columns, [("xxx", "0", "7", "xxx")], 11) == ["a    c  d", "xxx  7  xxx"]


@pytest.mark.parametrize("width", range(1, 160, 7))
def test_no_width_cuts_an_instant_or_loses_a_letter(width: int) -> None:
    lines = table_lines(COLUMNS, ROWS, width)
    assert [line[:20] for line in lines].count(TICK) == len(ROWS)
    told = "".join("".join(lines).split())
    for part in ("vm-21093", "exitedwithcode127", "3"):
        assert part in told
    assert max(map(len, lines)) <= max(width, len(TICK) + 2 + 12)


def test_a_name_is_folded_at_its_joints_and_by_cells() -> None:
    assert fold("app01-backup-full", 14) == ["app01-backup-", "full"]
    assert fold("a word and anotherlongone", 10) == ["a word and", "anotherlon", "gone"]
    assert fold("日本語日本語", 5) == ["日本", "語日", "本語"]
    assert fold("", 5) == [""]
