"""Where the values of a Python job file stand, and values written so that another process can read them.

A value of a call, a list or a dict that is written out has its own place. One that is made elsewhere (a variable, a
function's result) has the place where it is used.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from types import CodeType
from typing import Any

from sexton.jobfiles.python_source import parsed

MAX_DEPTH = 32
MAX_VALUES = 5_000_000
_MILLISECOND = timedelta(milliseconds=1)
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both from 1; ``end`` tells a call from others that begin there."""

    line: int
    column: int
    end: tuple[int, int] | None = None


class Places:
    """The places of one source."""

    def __init__(self, source: bytes) -> None:
        self.values_left = MAX_VALUES
        self._lines = source.split(b"\n")
        self._tree = parsed(source) or ast.Module([], [])
        self._calls: dict[tuple[int, int], ast.Call] = {}
        self._import: ast.AST | None = None
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and node.end_lineno is not None and node.end_col_offset is not None:
                self._calls[node.end_lineno, node.end_col_offset] = node
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and self._import is None:
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                if "sexton" in names:
                    self._import = node
        self._tables: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}

    def of(self, node: ast.AST) -> Place:
        """Where a node begins."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end = (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
        return Place(line, self._characters(line, column) + 1, end)

    def of_import(self) -> Place:
        """Where sexton is imported."""
        return Place(1, 1) if self._import is None else self.of(self._import)

    def of_instruction(self, code: CodeType, instruction: int) -> Place:
        """Where the expression begins that this instruction of the file's code belongs to."""
        if code not in self._tables:
            self._tables[code] = list(code.co_positions())
        table = self._tables[code]
        number = instruction // 2
        line, end_line, column, end_column = table[number] if number < len(table) else (None,) * 4
        if line is None:
            return Place(code.co_firstlineno or 1, 1)
        end = (end_line, end_column) if end_line is not None and end_column is not None else None
        if end in self._calls:
            return self.of(self._calls[end])  # a call over several lines begins where it is written
        return Place(line, self._characters(line, column or 0) + 1, end)

    def call_at(self, place: Place) -> ast.Call | None:
        """The call that is written there."""
        return None if place.end is None else self._calls.get(place.end)

    def assigned(self, name: str) -> ast.expr | None:
        """What is last assigned to ``name`` at the top of the file."""
        found: ast.expr | None = None
        for node in self._tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                found = getattr(node, "value", None) or found
        return found

    def elements(self, node: ast.expr | None, count: int) -> list[ast.expr] | None:
        """The nodes of a list's elements, where they are all written out."""
        if not isinstance(node, (ast.List, ast.Tuple)) or len(node.elts) != count:
            return None
        return None if any(isinstance(element, ast.Starred) for element in node.elts) else node.elts

    def _characters(self, line: int, column: int) -> int:
        source = self._lines[line - 1] if line <= len(self._lines) else b""
        return len(source[:column].decode("utf-8", errors="replace"))


def encoded(value: Any, node: ast.expr | None, place: Place, places: Places, depth: int = 0) -> list[Any]:
    """``value`` as ``[kind, line, column, content]`` of texts and lists, parts at places of their own."""

    def said(kind: str, content: Any) -> list[Any]:
        return [kind, place.line, place.column, content]

    places.values_left -= 1
    if depth > MAX_DEPTH or places.values_left < 0:
        raise ValueError(f"a value of a job is nested deeper than {MAX_DEPTH} levels, or endless")
    match value:
        case None:
            return said("plain", "null")
        case bool():
            return said("plain", "true" if value else "false")
        case int() if value.bit_length() <= 1_024:
            return said("plain", str(int(value)))
        case float():
            return said("float", repr(float(value)))
        case str():
            return said("text", str.__str__(value))
        case timedelta():
            return _encoded_duration(value, said)
        case datetime():
            is_instant = value.utcoffset() is not None
            return said("datetime", (value.astimezone(UTC) if is_instant else value).isoformat())
        case date():
            return said("date", value.isoformat())
        case time() if value.tzinfo is None:
            return said("time", value.isoformat())
        case os.PathLike() if isinstance(os.fspath(value), str):
            return said("text", os.fspath(value))
        case Mapping():
            return said("map", _encoded_entries(value, node, place, places, depth))
        case Sequence() if isinstance(value, (list, tuple)):
            elements = places.elements(node, len(value))
            return said(
                "list",
                [
                    _at(item, elements[number] if elements else None, place, places, depth)
                    for number, item in enumerate(value)
                ],
            )
    return said("other", [type(value).__name__, _short_repr(value)])


def _encoded_duration(value: timedelta, said: Any) -> list[Any]:
    milliseconds, rest = divmod(value, _MILLISECOND)
    return list(
        said("other", ["timedelta finer than a millisecond", repr(value)]) if rest else said("duration", milliseconds)
    )


def _encoded_entries(
    value: Mapping[Any, Any], node: ast.expr | None, place: Place, places: Places, depth: int
) -> list[Any]:
    written: dict[Any, tuple[ast.AST, ast.expr]] = {}
    if isinstance(node, ast.Dict):
        written = {
            key.value: (key, entry)
            for key, entry in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    elif isinstance(node, ast.Call):  # dict(key=...)
        written = {keyword.arg: (keyword, keyword.value) for keyword in node.keywords if keyword.arg}
    entries = []
    for key, item in value.items():
        key_node, item_node = written.get(key, (None, None))
        at = places.of(key_node) if key_node is not None else place
        entries.append([encoded(key, None, at, places, depth + 1), _at(item, item_node, place, places, depth)])
    return entries


def _at(value: Any, node: ast.expr | None, place: Place, places: Places, depth: int) -> list[Any]:
    return encoded(value, node, place if node is None else places.of(node), places, depth + 1)


def _short_repr(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a value's own __repr__ may raise
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
