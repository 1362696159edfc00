"""Sexton's own source as data: which modules there are and what each imports. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PART_FOLDERS = ("shared", "scheduler", "worker", "tui")


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file: its dotted name, its path below the root, its text."""

    name: str
    path: Path
    is_package: bool
    text: str = field(repr=False)

    @property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return _parse(self.text)

    def imports(self) -> set[str]:
        """Return all that the file imports, at the top, inside functions or for type checking alone.

        `from a import b` counts as `a` and as `a.b`, since b may be a module.
        """
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None, f"{self.path}: relative import"
                found.add(node.module)
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
        return found

    def names_in_strings(self) -> set[str]:
        """Return every string constant: a module may be started by its name (`python -m`)."""
        return {
            node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant) and type(node.value) is str
        }


@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def product_modules() -> tuple[Module, ...]:
    """Return the modules of the four parts."""
    return tuple(module for part in PART_FOLDERS for module in _below(ROOT / part, base=ROOT / part))


@cache
def modules_of_tests() -> tuple[Module, ...]:
    """Return the modules under tests/."""
    return tuple(_below(ROOT / "tests", base=ROOT))


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or lies inside it."""
    return name == package or name.startswith(f"{package}.")


def _below(folder: Path, base: Path) -> Iterator[Module]:
    for path in sorted(folder.rglob("*.py")):
        if "__pycache__" in path.parts:
            continue
        parts = path.relative_to(base).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield Module(name, path.relative_to(ROOT), is_package, path.read_text())
