"""Parts of the console that load when they are first needed, so that the first screen does not wait for them.

A key that needs one finds it loaded already: once there is data on the screen, they load one by one between the keys.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def part(where: str) -> Any:
    """What ``module:name`` names; its module is loaded afterwards."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def next_to_load(parts: Sequence[str]) -> str | None:
    """The first of these whose module is not loaded."""
    return next((where for where in parts if where.partition(":")[0] not in sys.modules), None)
