"""How Python would import a job file: the name of its module, and the folder that must be on the path for it."""

from __future__ import annotations

import keyword
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from sexton.jobfiles.problems import FileProblems, shown

_OURS = frozenset({"sexton", "sexton_scheduler", "sexton_worker", "sexton_tui"})


@dataclass(frozen=True, slots=True)
class Module:
    """A file as a module: ``root`` is the folder from which ``name`` can be imported."""

    name: str
    root: str
    file: str


class ModuleNames:
    """The modules of all files that are read together."""

    def __init__(self) -> None:
        self._roots: dict[str, tuple[str, str]] = {}  # by top name: root, file as messages say it

    def roots(self) -> tuple[str, ...]:
        """The folders from which workers must be able to import, in order."""
        return tuple(dict.fromkeys(root for root, _ in self._roots.values()))

    def locate(self, path: Path, problems: FileProblems) -> Module | None:
        """The module that ``path`` is; None, reported, where Python could not import it under a name of its own."""
        real = Path(os.path.realpath(path.parent)) / path.name
        parts = [] if real.stem == "__init__" else [real.stem]
        folder = real.parent
        while os.path.exists(folder / "__init__.py") and folder != folder.parent:
            parts.insert(0, folder.name)
            folder = folder.parent
        for part in parts:
            if not part.isidentifier() or keyword.iskeyword(part):
                problems.add_at(
                    1, 1, f"cannot be imported, for {shown(part)} is no name of a module; {_better_name(part)}"
                )
                return None
        if not parts or parts[0] in _OURS or parts[0] in sys.stdlib_module_names:
            whose = "Sexton's" if not parts or parts[0] in _OURS else "Python's"
            problems.add_at(1, 1, f"would be imported as {'.'.join(parts)}, a module of {whose} own; rename it")
            return None
        return Module(".".join(parts), str(folder), str(real))

    def claim(self, module: Module, problems: FileProblems) -> None:
        """Workers will import functions of this module; another folder's module of its name is reported."""
        top = module.name.partition(".")[0]
        root, file = self._roots.setdefault(top, (module.root, problems.file))
        if root != module.root:
            problems.add_at(
                1, 1, f"workers would import {shown(top)} from {file} instead of this file; rename one of them"
            )


def _better_name(part: str) -> str:
    better = "".join(one if one.isalnum() else "_" for one in part)
    return f"rename it, e.g. to {better}" if better.isidentifier() and not keyword.iskeyword(better) else "rename it"
