"""Ticks to come as rows: in UTC and in the job's zone, when each becomes available, what a changed clock does to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sexton_tui.cli.columns import Column
from sexton_tui.console.core.clock_words import available_text, local_text
from sexton_tui.console.core.upcoming import TicksOf, notes_of


def tick_table(asked: TicksOf, ticks: Sequence[datetime]) -> tuple[list[Column], list[dict[str, Any]]]:
    """Columns and rows; a row says ``note`` and ``available`` where there is such a column."""
    from sexton.zones import load_zone

    zone = load_zone(asked.zone)
    columns = [Column("tick", "UTC"), Column("local", asked.zone)]
    rows: list[dict[str, Any]] = [
        {"tick": tick, "local": local_text(tick, zone), "offset": f"{tick.astimezone(zone):%z}"} for tick in ticks
    ]
    if asked.rules is not None and asked.rules.jitter:
        columns.append(Column("available"))
        for row in rows:
            row["available"] = available_text(row["tick"], asked.rules.jitter_of(row["tick"]), zone)
    else:
        columns.append(Column("offset", gives_way=1))
    said = notes_of(asked, ticks)
    if any(said):
        columns.append(Column("note", is_note=True))
        for row, note in zip(rows, said, strict=True):
            row["note"] = note
    return columns, rows
