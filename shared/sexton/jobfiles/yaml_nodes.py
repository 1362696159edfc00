"""YAML text as nodes that remember where they stand and how they were written.

PyYAML only splits the text into events; nothing here turns ``no`` into False, ``12:30`` into 750, or the second of two
equal keys into the only one. What a scalar means is decided by the key it belongs to (``readings``). Refused here, with
the place: what is not YAML, tags, merge keys, keys that are not single values, duplicate keys, several documents,
aliases to themselves, and more depth or aliased values than any job file needs.

A value that starts with a character YAML reserves (``*/5 * * * *``, ``@daily``) stops any YAML reader at once. Such a
line is reported and then read as if it were quoted, so that the file's other faults are found in the same go. After any
other fault the reading begins anew without the faulty line, and does not ask what its job lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from sexton.jobfiles.nodes import MAX_DEPTH, MAX_VALUES, Mapping, Node, Scalar, Sequence, kind_of
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.yaml_faults import (
    quote_opened_above,
    report_fault,
    report_odd_breaks,
    spare_jobs_of,
    with_blank_after_colon,
    without_line,
)

MAX_ALIASED_NODES = 1_000_000
MAX_REPAIRS = 50
MAX_REPAIRED_CHARACTERS = 30_000_000  # in all attempts together
_LONGEST_REPAIRED_LINE = 5_000
_MERGE_KEY = "<<"

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str, problems: FileProblems) -> Node | None:
    """The text's one document, or None where nothing of it could be read; every fault goes to ``problems``."""
    if report_odd_breaks(text, problems):
        return None
    faulty_lines: list[int] = []
    for _ in range(1 + min(MAX_REPAIRS, MAX_REPAIRED_CHARACTERS // (len(text) + 1))):
        builder = _Builder(problems)
        try:
            return spare_jobs_of(builder.build(yaml.parse(text, Loader=_LOADER)), faulty_lines, problems)
        except yaml.MarkedYAMLError as error:
            repaired = None
            if quote_opened_above(text, error) is None:
                repaired = _repair(text, error, problems) or with_blank_after_colon(text, error, problems)
            if repaired is None:
                last = faulty_lines[-1] if faulty_lines else -1
                line = report_fault(text, error, problems, below=last)
                repaired = without_line(text, line) if line > last else None
                faulty_lines.append(line)
            if repaired is None:
                return None
            problems.found = [problem for problem in problems.found if problem not in builder.reported]
            text = repaired
        except _Unreadable:
            return None
    told = problems.found[-1]
    problems.add_at(told.line, told.column, "more faults like this one follow; mend these and try again")
    return None


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


class _Unreadable(Exception):
    """A fault after which the rest of the document is not looked at; it has been reported."""


class _Builder:
    """Makes nodes from events without recursion, so that no file is deep enough to hurt."""

    def __init__(self, problems: FileProblems) -> None:
        self._problems = problems
        self._anchors: dict[str, Node | None] = {}  # None: still being read
        self._aliased_nodes = 0
        self._values = 0
        self._root: Node | None = None
        self._stack: list[_Open] = []
        self.reported: list[object] = []

    def _add(self, event: yaml.Event, message: str) -> None:
        self._report(*_place(event), message)

    def _report(self, line: int, column: int, message: str) -> None:
        self._problems.add_at(line, column, message)
        self.reported.append(self._problems.found[-1])

    def build(self, events: Iterator[yaml.Event]) -> Node | None:
        documents = 0
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._check_tag(event, event.tag)
                scalar = Scalar(*_place(event), event.value, is_plain=event.style in (None, ""))
                if event.anchor:
                    self._anchors[event.anchor] = scalar
                self._put(scalar)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                done = self._stack.pop()
                done.node.size = done.size
                if done.anchor:
                    self._anchors[done.anchor] = done.node
                self._put(done.node)
            elif isinstance(event, yaml.AliasEvent):
                self._put(self._resolve(event))
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._add(event, "starts a second document; a job file is one document, so remove the '---'")
                    raise _Unreadable
        return self._root

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._check_tag(event, event.tag)
        if len(self._stack) >= MAX_DEPTH:
            self._add(event, f"is nested deeper than {MAX_DEPTH} levels")
            raise _Unreadable
        if event.anchor:
            self._anchors[event.anchor] = None
        kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Sequence
        self._stack.append(_Open(kind(*_place(event)), event.anchor))

    def _check_tag(self, event: yaml.Event, tag: str | None) -> None:
        if tag is not None and tag != "!":
            self._add(event, f"has the tag {shown(tag)}; job files have no tags, so remove it (quote what is a text)")
            raise _Unreadable

    def _resolve(self, event: yaml.AliasEvent) -> Node:
        anchor = str(event.anchor)
        if anchor not in self._anchors:
            mark: Any = event.start_mark  # of the C reader, which has what the other has
            raise yaml.MarkedYAMLError(None, mark, f"*{anchor} names no anchor before it", mark)
        node = self._anchors[anchor]
        if node is None:
            self._add(event, f"*{anchor} stands inside what it names; write the value out")
            raise _Unreadable
        self._aliased_nodes += node.size
        if self._aliased_nodes > MAX_ALIASED_NODES:
            self._add(event, f"aliases write out to more than {MAX_ALIASED_NODES} values; use fewer aliases")
            raise _Unreadable
        return node

    def _put(self, node: Node) -> None:
        """``node`` is complete: into what is open it goes."""
        self._values += 1
        if self._values > MAX_VALUES:
            self._report(node.line, node.column, f"the file holds more than {MAX_VALUES} values; split it into several")
            raise _Unreadable
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        parent.size += node.size
        into = parent.node
        if isinstance(into, Sequence):
            into.items.append(node)
        elif not parent.awaits_value:
            parent.key = self._key(node, into)
            parent.awaits_value = True
        else:
            parent.awaits_value = False
            if parent.key is not None:
                into.entries[parent.key.text] = (parent.key, node)

    def _key(self, node: Node, mapping: Mapping) -> Scalar | None:
        """The key, or None (reported) where the entry is to be left out."""
        if not isinstance(node, Scalar):
            message = f"a key is {kind_of(node)}; keys are texts"
        elif node.is_plain and node.text == _MERGE_KEY:
            message = "'<<' merges mappings, which job files do not do; put shared keys under 'defaults'"
        elif (first := mapping.entries.get(node.text)) is not None:
            line = first[0].line
            message = f"the key {shown(node.text)} stands here a second time (first in line {line}); keep one"
        else:
            return node
        self._report(node.line, node.column, message)
        return None


@dataclass(slots=True)
class _Open:
    """A collection being read."""

    node: Sequence | Mapping
    anchor: str | None
    size: int = 1
    awaits_value: bool = False
    key: Scalar | None = None


_RESERVED_VALUE = re.compile(
    r"^(?:\s*(?:-\s+)*(?:[\w.'\"-]+\s*:\s+)?)(?P<value>[*@%`&!|>].*?)(?P<after>,?\s*(?:\s#.*)?)$"
)
# The same within braces or brackets on one line: up to the comma (with a blank, as cron has commas too) or the bracket.
_RESERVED_IN_FLOW = re.compile(r"(?P<value>[*@%`&!|>][^}\]\"'#]*?)(?P<after>\s*(?:,\s.*|[}\]].*|,?))$")


_KEY_BEFORE = re.compile(r"(?P<key>[\w-]+)['\"]?\s*:\s*$")
_CRON = re.compile(r"@[a-z]+$|\*(?:/\d+)?(?:\s+\S+){4,5}$")


def _repair(text: str, error: yaml.MarkedYAMLError, problems: FileProblems) -> str | None:
    """``text`` with the value that YAML could not read in quotes (reported), or None where that is not the fault."""
    mark = error.context_mark or error.problem_mark
    if mark is None:
        return None
    lines = text.split("\n")
    if mark.line >= len(lines):
        return None
    here = lines[mark.line].rstrip("\r")
    if len(here) > _LONGEST_REPAIRED_LINE:
        return None
    match = _RESERVED_VALUE.match(here)
    if match is None or match.start("value") != mark.column:
        match = _in_flow(here, mark.column)
    if match is None:
        return None
    value = match["value"].rstrip()
    key = _KEY_BEFORE.search(here[: mark.column])
    is_schedule = key["key"] in ("schedule", "cron") if key is not None else _CRON.match(value) is not None
    what = "quote the schedule" if is_schedule else "quote the value"
    message = f"the value {value} starts with {value[0]!r}, which YAML reserves; {what}: {_quoted(value)}"
    is_all = value.startswith("*") and " " not in value  # what it is besides follows from it
    (problems.add_first_at if is_all else problems.add_at)(mark.line + 1, mark.column + 1, message)
    lines[mark.line] = f"{here[: mark.column]}{_quoted(value)}{match['after']}"
    return "\n".join(lines)


def _in_flow(here: str, column: int) -> re.Match[str] | None:
    """The reserved value that starts at this column of a flow collection."""
    before = here[:column].rstrip()
    return _RESERVED_IN_FLOW.match(here, column) if before.endswith(("{", "[", ",", ":")) else None


def _quoted(value: str) -> str:
    return '"' + value + '"' if '"' not in value and "\\" not in value else "'" + value.replace("'", "''") + "'"
