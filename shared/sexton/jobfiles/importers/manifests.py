"""Kubernetes manifests as nodes with their places: several documents, List kinds, JSON; nothing of YAML that acts.

Reading stops at the limits that hold for job files too: depth, aliases, size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sexton.jobfiles.importers.findings import Findings, shown
from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.yaml_nodes import parse

MAX_DOCUMENTS, MAX_LINES = 1_000, 200_000
_DOCUMENT = re.compile(r"^---(?=$|[ \t])|^\.\.\.[ \t]*$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_TRUE, _FALSE = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False", "FALSE"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and the line where it begins."""

    node: Mapping
    line: int


def manifests_of(text: str, findings: Findings) -> Iterator[Manifest]:
    """The objects of all documents, those within Lists too; what is no YAML is reported."""
    if template := _TEMPLATE.search(text):
        line = text[: template.start()].count("\n") + 1
        findings.error(
            line, f"{shown(template[0])} is a template; render it first (helm template, or helm get manifest)"
        )
        return
    if control := _CONTROL.search(text):
        line = text[: control.start()].count("\n") + 1
        findings.error(
            line, f"holds the control character U+{ord(control[0]):04X}; remove it, or save the file as UTF-8"
        )
        return
    for start, document in _documents(text, findings):
        problems = FileProblems(findings.file)
        # Blank lines before it keep the places of the file.
        root = parse("\n" * start + document, problems)
        for problem in problems.found:
            findings.error(problem.line, problem.message)
        if root is None or problems.found or (isinstance(root, Scalar) and root.text in ("", "null", "~")):
            continue
        if not isinstance(root, Mapping):
            findings.error(root.line, "is no manifest; a manifest is a mapping with apiVersion and kind")
            continue
        yield from _objects(root, findings)


def _documents(text: str, findings: Findings) -> Iterator[tuple[int, str]]:
    """Each document that holds something, with the number of lines before it."""
    places = [0, *(match.start() for match in _DOCUMENT.finditer(text)), len(text)]
    if len(places) > MAX_DOCUMENTS or text.count("\n") > MAX_LINES:
        findings.error(0, f"has more than {MAX_DOCUMENTS} documents or {MAX_LINES} lines; split it into several files")
        return
    line = 0
    for begin, end in pairwise(places):
        part = text[begin:end]
        if part.startswith(("---", "...")):
            part = "   " + part[3:]  # the mark's own line may hold the document's beginning
        if any(row.strip() and not row.lstrip().startswith("#") for row in part.split("\n")):
            yield line, part
        line += part.count("\n")


def _objects(root: Mapping, findings: Findings) -> Iterator[Manifest]:
    kind = text_at(root, "kind") or ""
    if not kind.endswith("List"):
        yield Manifest(root, root.line)
        return
    items = at(root, "items")
    if not isinstance(items, Sequence):
        findings.error(root.line, f"{kind} has no items")
        return
    for item in items.items:
        if isinstance(item, Mapping):
            yield Manifest(item, item.line)
        else:
            findings.error(item.line, f"an item of {kind} is no object")


def at(node: Node | None, *path: str) -> Node | None:
    """What stands at a path of keys; None where there is nothing, or null."""
    for key in path:
        if not isinstance(node, Mapping) or key not in node.entries:
            return None
        node = node.entries[key][1]
    if isinstance(node, Scalar) and node.is_plain and node.text in ("", "null", "~"):
        return None
    return node


def text_at(node: Node | None, *path: str) -> str | None:
    """The single value at a path, as text."""
    found = at(node, *path)
    return found.text if isinstance(found, Scalar) else None


def number_at(node: Node | None, *path: str) -> int | None:
    """The whole number at a path."""
    found = at(node, *path)
    if isinstance(found, Scalar) and re.fullmatch(r"[0-9]{1,12}", found.text):
        return int(found.text)
    return None


def flag_at(node: Node | None, *path: str) -> bool | None:
    """The flag at a path."""
    found = at(node, *path)
    if not isinstance(found, Scalar) or not found.is_plain:
        return None
    return True if found.text in _TRUE else False if found.text in _FALSE else None


def line_at(node: Node, *path: str) -> int:
    """The line of what stands at a path, as far as it goes."""
    line = node.line
    for key in path:
        if not isinstance(node, Mapping) or key not in node.entries:
            break
        key_node, node = node.entries[key]
        line = key_node.line
    return line


def texts_of(node: Node | None) -> list[str] | None:
    """A list of single values; None where it is none."""
    if not isinstance(node, Sequence):
        return None
    texts = [item.text for item in node.items if isinstance(item, Scalar)]
    return texts if len(texts) == len(node.items) else None


def keys_of_node(node: Node | None) -> Iterator[tuple[str, int]]:
    """The keys of a mapping with their lines."""
    if isinstance(node, Mapping):
        for name, (key, _) in node.entries.items():
            yield name, key.line
