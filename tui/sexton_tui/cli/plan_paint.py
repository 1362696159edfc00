"""Colours of a plan: beside its signs, never instead of them, and only where a terminal wants them."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

_CODES = {"+": "32", "-": "31", "~": "33", "→": "36", "!": "33", "bold": "1", "dim": "2", "hot": "1;31", "warm": "33"}
_WIDTH_OF_FILES, _WIDEST = 100, 120


@dataclass(frozen=True, slots=True)
class Paint:
    """Whether to colour, and how wide a line of prose may be."""

    has_colour: bool = False
    width: int = _WIDTH_OF_FILES

    def __call__(self, what: str, text: str) -> str:
        """``text`` in the colour of a sign (``+ ~ - →``) or a style."""
        code = _CODES.get(what)
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and code else text

    def prose(self, text: str, first: str = "", rest: str = "") -> list[str]:
        """A sentence on as many lines as it needs; words are never broken, so that they can be pasted."""
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )


def paint_for_stdout(environ: Mapping[str, str] | None = None) -> Paint:
    """What standard output can take: colour on a terminal, unless NO_COLOR is set or it is a dumb one."""
    environ = os.environ if environ is None else environ
    if not sys.stdout.isatty():
        return Paint()
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return Paint(not environ.get("NO_COLOR") and environ.get("TERM") != "dumb", width)
