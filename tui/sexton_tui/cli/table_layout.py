"""How a table is laid out in a terminal of a given width: pure, on texts that are already fit to be shown.

A row that is too long for the terminal gives way in this order, and the same for all rows of the table:
1. notes (prose) go under their row, wrapped;
2. names of more than 24 cells are folded over several lines, every character kept;
3. columns with a rank go, those that hold the usual alone first, then the highest rank; what they hold is told under
   the row where it is not the usual;
4. names are folded down to 12 cells.
Instants, numbers and other short cells are never cut or folded: rather than that, a line is longer than the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len, chop_cells

from sexton_tui.cli.columns import Column

GAP = "  "
_INDENT = "    "
_NARROW, _NARROWEST = 24, 12
_JOINTS = "-_./@:"
_NOTHING = ("", "-")


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, bold: Callable[[str], str] = str
) -> list[str]:
    """The table's lines, its titles first through ``bold``; ``rows`` have a text for each column."""
    natural = [
        max(cell_len(text) for text in (column.heading, *(row[place] for row in rows)))
        for place, column in enumerate(columns)
    ]
    shown = _places_that_fit(columns, rows, natural, width)
    widths = _folded(columns, {place: natural[place] for place in shown}, width)
    under = [place for place in range(len(columns)) if place not in widths]
    lines = [bold(_line(columns, widths, {place: columns[place].heading for place in shown}))]
    for row in rows:
        folded = {place: fold(row[place], size) for place, size in widths.items()}
        for number in range(max(len(parts) for parts in folded.values())):
            cells = {place: parts[number] if number < len(parts) else "" for place, parts in folded.items()}
            lines.append(_line(columns, widths, cells))
        told = _told_under(columns, under, row)
        lines += [_INDENT + part for part in fold(told, max(width - len(_INDENT), _NARROWEST))] if told else []
    return lines


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _places_that_fit(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], natural: Sequence[int], width: int
) -> list[int]:
    """Which columns stand in the row itself, by place."""
    shown = list(range(len(columns)))
    if _total(natural) <= width:
        return shown
    shown = [place for place in shown if not columns[place].is_note] or shown
    least = sorted(
        (place for place in shown if columns[place].gives_way),
        key=lambda place: (any(_is_telling(columns, place, row) for row in rows), -columns[place].gives_way),
    )
    needed = [min(size, _NARROW) if columns[place].folds else size for place, size in enumerate(natural)]
    for place in least:
        if _total([needed[one] for one in shown]) <= width:
            break
        shown.remove(place)
    return shown


def _is_telling(columns: Sequence[Column], place: int, row: Sequence[str]) -> bool:
    """Whether a cell says more than the usual."""
    column = columns[place]
    same = {row[other] for other, one in enumerate(columns) if one.key == column.same_as}
    return row[place] not in {*_NOTHING, column.usual, *same}


def _folded(columns: Sequence[Column], widths: dict[int, int], width: int) -> dict[int, int]:
    """The widths, with names made as narrow as it takes, the widest first."""
    while (over := _total(list(widths.values())) - width) > 0:
        names = [place for place, size in widths.items() if columns[place].folds and size > _NARROWEST]
        if not names:
            break
        widest = max(names, key=lambda place: widths[place])
        others = sorted((widths[place] for place in names if place != widest), reverse=True)
        step = widths[widest] - max(others[0] - 1 if others else 0, _NARROWEST)
        widths[widest] -= min(over, max(step, 1))
    return widths


def _line(columns: Sequence[Column], widths: dict[int, int], cells: dict[int, str]) -> str:
    padded = []
    for place, size in widths.items():
        blank = " " * (size - cell_len(cells[place]))
        padded.append(blank + cells[place] if columns[place].align == "right" else cells[place] + blank)
    return GAP.join(padded).rstrip()


def _told_under(columns: Sequence[Column], under: Sequence[int], row: Sequence[str]) -> str:
    """What stands under a row: the unusual of the columns that went, then the notes."""
    gone, notes = [], []
    has_one_note = sum(column.is_note for column in columns) == 1
    for place in under:
        column, text = columns[place], row[place]
        if not _is_telling(columns, place, row):
            continue
        if column.is_note:
            notes.append(text if has_one_note else f"{column.heading}: {text}")
        else:
            gone.append(f"{column.heading} {text}")
    return "; ".join([*([", ".join(gone)] if gone else []), *notes])


def fold(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, broken at blanks, within words at joints, else anywhere."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        while cell_len(word) > width:
            part = chop_cells(word, width)[0]
            joint = max(part.rfind(mark) for mark in _JOINTS) + 1
            part = part[:joint] if joint > len(part) // 2 else part
            lines.append(part)
            word = word[len(part) :]
        line = word
    return [*lines, line]
