"""Durations in braille dots (or ASCII) over a logarithmic axis: the lateness of half an hour with a mark for each
takeover, and how long runs took, one beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.cluster_views import LatenessMinute


_MINUTE = timedelta(minutes=1)
_MILLISECOND = timedelta(milliseconds=1)
# Dots of one braille cell, from its bottom row to its top one: left column, right column.
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
_LABELS = {
    **{1: "1 ms", 10: "10 ms", 100: "100 ms", 1_000: "1 s", 10_000: "10 s", 100_000: "100 s"},
    **{1_000_000: "17 m", 10_000_000: "2.8 h", 100_000_000: "28 h", 1_000_000_000: "12 d"},
}
_HIGHEST = 1_000_000_000
_LABEL_WIDTH = 7


@dataclass(frozen=True, slots=True)
class Plot:
    """Rows of the plot, top first, and the row of marks under it; all of one width."""

    rows: tuple[str, ...]
    marks: str


def peaks(minutes: Sequence[LatenessMinute], now: datetime, columns: int, window: timedelta) -> list[float | None]:
    """The highest lateness in ms of each column; None where no run started."""
    values: list[float | None] = [None] * columns
    start = now - window
    for minute in minutes:
        if minute.lateness.max is None:
            continue
        late_ms = minute.lateness.max / _MILLISECOND
        first = int((minute.at - start) / window * columns)
        last = max(int((minute.at + _MINUTE - start) / window * columns), first + 1)
        for column in range(max(first, 0), min(last, columns)):
            known = values[column]
            values[column] = late_ms if known is None else max(known, late_ms)
    return values


def plot(
    minutes: Sequence[LatenessMinute],
    takeovers: Sequence[datetime],
    now: datetime,
    *,
    width: int,
    height: int,
    window: timedelta = 30 * _MINUTE,
    ascii_only: bool = False,
) -> Plot:
    """Peaks of lateness over the window that ends at `now`; `width` and `height` are cells, labels included."""
    columns = max(width - _LABEL_WIDTH, 1)
    values = peaks(minutes, now, dots_of(width, ascii_only=ascii_only), window)
    rows = columns_drawn(values, width=width, height=height, ascii_only=ascii_only)
    return Plot(rows, _marks(takeovers, now, columns, window, ascii_only=ascii_only))


def dots_of(width: int, *, ascii_only: bool = False) -> int:
    """How many values stand side by side in `width` cells, labels included."""
    columns = max(width - _LABEL_WIDTH, 1)
    return columns if ascii_only else columns * 2


def columns_drawn(
    values: Sequence[float | None], *, width: int, height: int, bottom: int = 1, ascii_only: bool = False
) -> tuple[str, ...]:
    """Rows of cells, top first, with labels: a column of dots for each of the ``dots_of(width)`` values in ms.
    ``bottom``: the power of ten at which the axis begins."""
    top = _decade_above(max((value for value in values if value is not None), default=1.0), bottom)
    steps = height if ascii_only else height * 4
    levels = [None if value is None else _level(value, bottom, top, steps) for value in values]
    rows = []
    for place in range(height - 1, -1, -1):
        cells = (
            "".join("*" if level is not None and level > place else " " for level in levels)
            if ascii_only
            else "".join(_cell(left, right, place * 4) for left, right in zip(levels[::2], levels[1::2], strict=True))
        )
        rows.append(_label(place, height, bottom, top).rjust(_LABEL_WIDTH - 1) + " " + cells)
    return tuple(rows)


def newest_columns(
    durations: Sequence[timedelta | None], *, width: int, height: int, ascii_only: bool = False
) -> tuple[str, ...]:
    """The last of the durations, the newest of them at the right edge; rows as of ``columns_drawn``."""
    dots = dots_of(width, ascii_only=ascii_only)
    newest = [None if one is None else max(one / _MILLISECOND, 0.0) for one in durations[-dots:]]
    values = [None] * (dots - len(newest)) + newest
    bottom = _decade_below(min((value for value in newest if value is not None), default=1.0))
    return columns_drawn(values, width=width, height=height, bottom=bottom, ascii_only=ascii_only)


def _decade_below(value: float) -> int:
    bottom = 1
    while bottom * 10 < value and bottom < _HIGHEST // 10:
        bottom *= 10
    return bottom


def _decade_above(value: float, bottom: int) -> int:
    top = bottom * 10
    while top < value and top < _HIGHEST:
        top *= 10
    return top


def _level(value: float, bottom: int, top: int, steps: int) -> int:
    """How many dots high; at least one, so that every run is seen."""
    share = log10(max(value / bottom, 1.0)) / log10(top / bottom)
    return max(1, min(steps, round(share * steps)))


def _cell(left: int | None, right: int | None, bottom: int) -> str:
    code = sum(dot for row, dot in enumerate(_LEFT) if left is not None and left > bottom + row)
    code += sum(dot for row, dot in enumerate(_RIGHT) if right is not None and right > bottom + row)
    return chr(0x2800 + code) if code else " "


def _label(place: int, height: int, bottom: int, top: int) -> str:
    if place == height - 1:
        return _LABELS[top]
    return _LABELS[bottom] if place == 0 else ""


def _marks(takeovers: Sequence[datetime], now: datetime, columns: int, window: timedelta, *, ascii_only: bool) -> str:
    places = [(int((at - (now - window)) / window * columns), at) for at in sorted(takeovers, reverse=True)]
    cells = [" "] * columns
    for column, _ in places:
        if 0 <= column < columns:
            cells[column] = "^" if ascii_only else "▲"
    for column, at in places:  # the newest has the first claim to the room
        text = f"takeover {at:%H:%M}"
        for start in (column + 2, column - len(text) - 1):
            end = start + len(text)
            if 0 <= column < columns and start >= 0 and end <= columns and not "".join(cells[start:end]).strip():
                cells[start:end] = text
                break
    return " " * _LABEL_WIDTH + "".join(cells)
