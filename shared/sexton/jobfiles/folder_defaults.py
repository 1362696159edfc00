"""Where a folder's defaults stand, and how far up they are looked for.

A file ``defaults.yaml`` (``.yml``, ``.toml``) holds ``version`` and ``defaults`` for all job files in its folder and
below; the nearer one wins. So that a job means the same whether its file, its folder or the whole tree is named, the
folders above the named path count too: up to the root of the git repository, or, outside of one, as long as each next
folder holds such a file. Above the path, a file of that name that is not Sexton's is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

DEFAULTS_NAMES = ("defaults.toml", "defaults.yaml", "defaults.yml")
_SNIFFED_BYTES = 65_536
_HAS_DEFAULTS = re.compile(rb"^(?:['\"]?defaults['\"]?\s*[:=.]|\[\s*defaults)", re.MULTILINE)
_HAS_VERSION = re.compile(rb"^['\"]?version['\"]?\s*[:=]", re.MULTILINE)


def defaults_in(folder: Path) -> Iterator[Path]:
    """The files of defaults in this folder."""
    for name in DEFAULTS_NAMES:
        path = folder / name
        if os.path.exists(path) or os.path.islink(path):
            yield path


def defaults_above(folder: Path) -> list[Path]:
    """The files of defaults that apply to ``folder`` from above it, the outermost first."""
    real = Path(os.path.realpath(folder))
    repository = next((one for one in (real, *real.parents) if os.path.exists(one / ".git")), None)
    found: list[list[Path]] = []
    if real == repository:
        return []
    for parent in real.parents:
        here = [path for path in defaults_in(parent) if _is_ours(path) and _is_of_same_people(path, real)]
        if repository is None and not here:
            break
        found.append([Path(_shortest(path)) for path in here])
        if parent == repository:
            break
    return [path for here in reversed(found) for path in here]


def _is_ours(path: Path) -> bool:
    try:
        if not os.path.isfile(path):
            return False
        with path.open("rb") as file:
            start = file.read(_SNIFFED_BYTES)
    except OSError:
        return False
    return _HAS_DEFAULTS.search(start) is not None and _HAS_VERSION.search(start) is not None


def _is_of_same_people(path: Path, folder: Path) -> bool:
    """Whether its owner may speak for ``folder``: what a stranger lays into a shared folder above changes no job."""
    return path.stat().st_uid in (0, os.geteuid(), folder.stat().st_uid)


def _shortest(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)
