"""What stands where nothing was read yet, so that no empty frame looks like nothing there."""

from __future__ import annotations

from sexton_tui.console.core.lines import DIM, WARN, Line, line


def reading_line(trouble: str = "", *, ascii_only: bool = False) -> Line:
    """That it is being read; ``trouble``: what is in the way."""
    word = "reading ..." if ascii_only else "reading …"
    return line((word, DIM), (f"  {trouble}" if trouble else "", WARN))
