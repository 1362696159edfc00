"""The answer of a process that ran a Python job file, as nodes. Nothing in it is trusted to have the right form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from sexton.jobfiles.nodes import MAX_DEPTH, Mapping, Node, Scalar, Sequence
from sexton.jobfiles.toml_values import written_scalar
from sexton.settings import format_duration

_TYPED: dict[str, Callable[[str], object]] = {
    "float": float,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}


class BadAnswer(Exception):
    """The answer has not the form that the process gives it."""


def job_entry(answer: Any) -> tuple[Scalar, Node]:
    """One job: its name, and a mapping of its keys."""
    line, column = int(answer["line"]), int(answer["column"])
    name = node_of(answer["name"])
    if not isinstance(name, Scalar):
        name = Scalar(name.line, name.column, "", is_plain=False)
    keys = Mapping(line, column)
    for key, key_line, key_column, value in answer["keys"]:
        keys.entries[str(key)] = (Scalar(int(key_line), int(key_column), str(key), is_plain=False), node_of(value))
    return name, keys


def node_of(value: Any, depth: int = 0) -> Node:
    """The node that an encoded value is. Raises BadAnswer."""
    if depth > MAX_DEPTH + 1 or not isinstance(value, list) or len(value) != 4:
        raise BadAnswer("a value has no form")
    kind, line, column, content = value
    if kind == "text":
        return Scalar(line, column, str(content), is_plain=False)
    if kind == "plain":
        kind = {"null": "None", "true": "bool", "false": "bool"}.get(content, "int")
        return Scalar(line, column, str(content), is_plain=True, typed=f"a Python {kind}")
    if kind == "list":
        return Sequence(line, column, [node_of(item, depth + 1) for item in content])
    if kind == "map":
        mapping = Mapping(line, column)
        for key, item in content:
            key_node = node_of(key, depth + 1)
            if not isinstance(key_node, Scalar):
                key_node = Scalar(key_node.line, key_node.column, "", is_plain=False)
            mapping.entries[key_node.text] = (key_node, node_of(item, depth + 1))
        return mapping
    if kind == "duration":
        return Scalar(line, column, _duration_text(int(content)), is_plain=False, typed="a Python timedelta")
    if kind in _TYPED:
        text, is_plain, typed = written_scalar(_TYPED[kind](content), "Python")
        return Scalar(line, column, text, is_plain, typed=typed)
    if kind == "other":
        name, shown = content
        return Scalar(line, column, str(shown), is_plain=False, typed=f"a Python {name}")
    raise BadAnswer("a value is of no known kind")


def _duration_text(milliseconds: int) -> str:
    sign = "-" if milliseconds < 0 else ""
    return sign + format_duration(timedelta(milliseconds=abs(milliseconds)))
