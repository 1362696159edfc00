"""The console's lines on a standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sexton_tui.console.core.lines import Line, to_ascii


def is_ascii_output() -> bool:
    """Whether standard output can't take the signs that screens use."""
    return not (sys.stdout.encoding or "ascii").lower().startswith("utf")


def print_lines(lines: Iterable[Line]) -> None:
    """Print them; what the output's encoding lacks as ASCII."""
    ascii_only = is_ascii_output()
    for one in lines:
        print((to_ascii(one.text) if ascii_only else one.text).rstrip())
