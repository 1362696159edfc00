"""The console's lines on a standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from sexton_tui.console.core.lines import Line, Span, to_ascii

# SGR of the terminal; the same words stand there without it.
_COLOURS = {
    "dim": "2",
    "strong": "1",
    "good": "32",
    "warn": "33",
    "bad": "1;31",
    "warning": "1;30;43",
    "alarm": "1;37;41",
}


def is_ascii_output() -> bool:
    """Whether standard output can't take the signs that screens use."""
    return not (sys.stdout.encoding or "ascii").lower().startswith("utf")


def is_coloured_output() -> bool:
    """Whether standard output is a terminal that takes colours, and nobody asked for none."""
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "")
    return sys.stdout.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def print_lines(lines: Iterable[Line], *, coloured: bool = False) -> None:
    """Print them, with colours where that is asked for and the terminal takes them; what the output's encoding lacks
    as ASCII."""
    ascii_only, coloured = is_ascii_output(), coloured and is_coloured_output()
    for one in lines:
        if coloured:
            print("".join(_coloured(span, ascii_only) for span in one.spans))
        else:
            print((to_ascii(one.text) if ascii_only else one.text).rstrip())


def _coloured(span: Span, ascii_only: bool) -> str:
    text = to_ascii(span.text) if ascii_only else span.text
    colour = _COLOURS.get(span.style)
    return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"
