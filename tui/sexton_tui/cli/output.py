"""Listings: the same rows as a table, as JSON, or as one JSON object a line.

JSON keeps instants as ``2026-03-29T01:00:00Z``, durations as seconds, enumerations as the words of the screens. A table
never lets a stored text act on the terminal: control characters are shown as escapes, markup as it stands.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Annotated, Any

import typer

from sexton.settings import format_duration
from sexton_tui.cli.columns import Column as Column
from sexton_tui.cli.plan_paint import paint_for_stdout


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, json, or jsonl.")]


def instant_text(instant: datetime) -> str:
    """``2026-03-29T01:00:00Z``; with a fraction only where there is one. Raises ValueError for a naive datetime."""
    if instant.tzinfo is None:
        raise ValueError(f"naive datetime {instant!r}: instants are timezone-aware")
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def json_value(value: object) -> Any:
    """``value`` as JSON has it; dataclasses become objects."""
    match value:
        case Enum():
            return getattr(value, "word", value.value)
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return instant_text(value)
        case timedelta():
            return value.total_seconds()
        case bytes():
            return value.decode(errors="backslashreplace")
        case Mapping():
            return {str(key): json_value(item) for key, item in value.items()}
        case Iterable():
            return [json_value(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


def cell_text(value: object) -> str:
    """``value`` as a table shows it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(getattr(value, "word", value.value))
        case datetime():
            return instant_text(value)
        case timedelta():
            return format_duration(value) if value >= timedelta(0) else "-" + format_duration(-value)
        case str():
            return printable(value)
        case Mapping():
            return printable(json.dumps(json_value(value), ensure_ascii=False))
        case list() | tuple() | set() | frozenset():
            return ", ".join(cell_text(item) for item in value)
    return printable(str(value))


def counted(number: int, what: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def printable(text: str) -> str:
    """``text`` with control characters as escapes, so that it cannot act on a terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def print_json(value: object) -> None:
    """One JSON document, indented."""
    print(json.dumps(json_value(value), indent=2, ensure_ascii=False))


def print_rows(
    rows: Iterable[Any],
    output: Output,
    columns: Sequence[Column | str],
    *,
    empty: str = "",
) -> None:
    """Print a listing. Rows are mappings or dataclasses.

    JSON holds every key of a row, a table only ``columns``. ``empty`` is said on stderr where a table has no rows.
    """
    if output is Output.JSON:
        print_json(list(rows))
        return
    if output is Output.JSONL:
        for row in rows:
            print(json.dumps(json_value(row), ensure_ascii=False))
        return
    listed = list(rows)
    if not listed and empty:
        print(empty, file=sys.stderr)
        return
    _print_table(listed, [column if isinstance(column, Column) else _column(column, listed) for column in columns])


def print_record(record: Any, output: Output, keys: Sequence[Column | str] | None = None) -> None:
    """Print one thing: ``key  value`` lines, or one JSON object."""
    if output is Output.JSON:
        print_json(record)
        return
    if output is Output.JSONL:
        print(json.dumps(json_value(record), ensure_ascii=False))
        return
    columns = [key if isinstance(key, Column) else Column(key) for key in (keys or _keys(record))]
    width = max((len(column.heading) for column in columns), default=0)
    for column in columns:
        print(f"{column.heading:<{width}}  {cell_text(_field(record, column.key))}".rstrip())


def _keys(record: Any) -> list[str]:
    if isinstance(record, Mapping):
        return [str(key) for key in record]
    return [field.name for field in dataclasses.fields(record)]


def _field(row: Any, key: str) -> object:
    return row.get(key) if isinstance(row, Mapping) else getattr(row, key)


def _print_table(rows: Sequence[Any], columns: Sequence[Column]) -> None:
    texts = [[_cell(row, column) for column in columns] for row in rows]
    titles = [column.heading for column in columns]
    if sys.stdout.isatty():
        from sexton_tui.cli.table_layout import table_lines

        for line in table_lines(columns, texts, shutil.get_terminal_size().columns, _bold):
            print(line)
        return
    widths = [max(len(row[place]) for row in [titles, *texts]) for place in range(len(columns))]
    for row in [titles, *texts]:
        cells = [
            text.rjust(width) if column.align == "right" else text.ljust(width)
            for text, width, column in zip(row, widths, columns, strict=True)
        ]
        print("  ".join(cells).rstrip())


def _column(key: str, rows: Sequence[Any]) -> Column:
    """What stands in a narrow terminal is never a cut instant or number: texts alone are folded."""
    return Column(key, folds=all(type(_field(row, key)) in (str, type(None)) for row in rows))


def _cell(row: Any, column: Column) -> str:
    value = _field(row, column.key)
    return cell_text(value.replace(microsecond=0) if column.in_seconds and isinstance(value, datetime) else value)


def _bold(text: str) -> str:
    return paint_for_stdout()("bold", text)
