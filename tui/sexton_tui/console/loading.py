"""Parts of the console that load when they are first needed, so that the first screen does not wait for them.

A key that needs one finds it loaded already: once there is data on the screen, they load one by one between the keys.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_later: list[str] = []


def part(where: str) -> Any:
    """What ``module:name`` names; its module is loaded afterwards."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


class _Later:
    """In the place of a module: loads it when something of it is first asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


def later(module: str) -> Any:
    """Stands for the module, which is not loaded yet."""
    _later.append(module)
    return _Later(module)


def load_next(parts: Sequence[str]) -> bool:
    """Load one more module, of these parts or of those left for later; whether there was one."""
    modules = [*(where.partition(":")[0] for where in parts), *_later]
    found = next((module for module in modules if module not in sys.modules), None)
    if found is not None:
        import_module(found)
    return found is not None
