"""The shape of a table whose rows change: how wide its columns are, and where its cursor belongs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from sexton_tui.console.core.lines import Row


def column_widths(titles: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """How many cells each column needs."""
    widths = [cell_len(title) for title in titles]
    for one in rows:
        widths = [max(width, cell_len(cell.text)) for width, cell in zip(widths, one.cells, strict=True)]
    return widths


def keep_place(keys: Sequence[str], key: str | None, place: int, *, follows_top: bool = False) -> int:
    """Where the cursor belongs after rows changed: on the row it was on, else as near as can be.

    ``follows_top``: a cursor on the first row stays there, so that it is always on the newest.
    """
    if follows_top and place == 0:
        return 0
    if key is not None and key in keys:
        return keys.index(key)
    return max(min(place, len(keys) - 1), 0)
