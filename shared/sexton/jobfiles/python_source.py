"""What a Python file's source says of jobs, without running it: is it a job file, and where do its values stand."""

from __future__ import annotations

import ast
import re
import warnings

_BY_WORDS = re.compile(
    rb"^[ \t]*(?:from[ \t]+sexton[ \t]+import\b(?:[^\n(]*|[ \t]*\([^)]*)\b[Jj]ob\b|import[ \t]+sexton\b)", re.MULTILINE
)
_NAMES = frozenset({"job", "Job", "*"})


def declares_jobs(source: bytes, *, by_words: bool = False) -> bool:
    """Whether it imports ``job`` or ``Job`` from sexton; by its words alone where it is not Python (or is huge)."""
    if b"sexton" not in source:
        return False
    tree = None if by_words else parsed(source)
    if tree is None:
        return _BY_WORDS.search(source) is not None
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "sexton" and node.level == 0:
            if _NAMES.intersection(alias.name for alias in node.names):
                return True
        elif isinstance(node, ast.Import):
            aliases.update(alias.asname or alias.name for alias in node.names if alias.name == "sexton")
    return bool(aliases) and any(
        isinstance(node, ast.Attribute)
        and node.attr in _NAMES
        and isinstance(node.value, ast.Name)
        and node.value.id in aliases
        for node in ast.walk(tree)
    )


def parsed(source: bytes | str) -> ast.Module | None:
    """The tree, or None where this is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
