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
        return _parse(self.text, str(self.path))

    @cache  # noqa: B019  modules are few, and live as long as the tests
    def imports(self) -> frozenset[str]:
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
        return frozenset(found)

    @cache  # noqa: B019  as above
    def names_in_strings(self) -> frozenset[str]:
        """Return every string that may name a module to start or to load later: `package.module` or `module:object`.

        An f-string counts where what it fills in are string constants of this file.
        """
        constants = {
            target.id: node.value.value
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        found = {_filled_in(node, constants) for node in ast.walk(self.tree)}
        return frozenset(text.partition(":")[0] for text in found)


def _filled_in(node: ast.AST, constants: dict[str, str]) -> str:
    """The text of a string constant or f-string; empty for anything else, and where a value is not known."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is str else ""
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return constants.get(node.value.id, "")
    if isinstance(node, ast.JoinedStr):
        return "".join(_filled_in(part, constants) for part in node.values)
    return ""


@cache
def _parse(text: str, path: str) -> ast.Module:
    return ast.parse(text, path)


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
