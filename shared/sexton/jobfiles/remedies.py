"""Remedies written out: a key and its value as the author's own format spells them."""

from __future__ import annotations

import json
import re
from typing import Any

from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.toml_values import quoted
from sexton.jobfiles.yaml_words import why_not_text

LONGEST = 200
"""A remedy with more characters than this is not told: the author would not look through it."""

_BARE = re.compile(r"[A-Za-z0-9_./+-](?:[A-Za-z0-9_./@+=-]|:(?=\S)|\*)*")
_BARE_TOML_KEY = re.compile(r"[A-Za-z0-9_-]+")


def node_from(value: Any) -> Node:
    """A Python value as JSON has it as nodes, for a remedy that is not the author's value."""
    if isinstance(value, dict):
        entries = {key: (Scalar(1, 1, key, is_plain=False), node_from(one)) for key, one in value.items()}
        return Mapping(1, 1, entries)
    if isinstance(value, list):
        return Sequence(1, 1, [node_from(one) for one in value])
    if value is None or isinstance(value, bool):
        return Scalar(1, 1, "null" if value is None else str(value).lower(), is_plain=True)
    return Scalar(1, 1, str(value), is_plain=not isinstance(value, str))


def entry(key: str, node: Node, problems: FileProblems) -> str:
    """``retries: {max: 3}``, or as TOML and Python write it; ``key`` may be a path, of which the last part is told."""
    last = key.rpartition(".")[2]
    if last.endswith("]"):
        return written(node, problems)
    match problems.format:
        case "toml":
            return f"{toml_key(last)} = {written(node, problems)}"
        case "python":
            return (
                f"{json.dumps(last)}: {written(node, problems)}" if "." in key else f"{last}={written(node, problems)}"
            )
    return f"{_yaml(last, is_plain=False)}: {written(node, problems)}"


def written(node: Node, problems: FileProblems) -> str:
    """A value on one line."""
    match node:
        case Scalar():
            return _scalar(node, problems.format)
        case Sequence():
            return f"[{', '.join(written(item, problems) for item in node.items)}]"
        case Mapping():
            entries = (_inner_entry(name, value, problems) for name, (_, value) in node.entries.items())
            return "{" + ", ".join(entries) + "}"


def _inner_entry(name: str, value: Node, problems: FileProblems) -> str:
    match problems.format:
        case "toml":
            return f"{toml_key(name)} = {written(value, problems)}"
        case "python":
            return f"{json.dumps(name, ensure_ascii=False)}: {written(value, problems)}"
    return f"{_yaml(name, is_plain=False)}: {written(value, problems)}"


def _scalar(node: Scalar, format_name: str) -> str:
    if format_name == "toml":
        return node.text if node.is_plain else quoted(node.text)
    if format_name == "python":
        words = {"null": "None", "true": "True", "false": "False"}
        return words.get(node.text, node.text) if node.is_plain else json.dumps(node.text, ensure_ascii=False)
    return _yaml(node.text, node.is_plain)


def _yaml(text: str, is_plain: bool) -> str:
    """Without quotes where they change nothing: a number and ``true`` stay what they are."""
    if _BARE.fullmatch(text) and (is_plain or why_not_text(text) is None):
        return text
    if not text.isprintable():
        return json.dumps(text)
    return '"' + text + '"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def toml_key(name: str) -> str:
    """A key of a TOML table or header, in quotes where TOML needs them."""
    return name if _BARE_TOML_KEY.fullmatch(name) else quoted(name)
