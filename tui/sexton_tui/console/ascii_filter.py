"""What Textual itself draws (frames, scroll bars, the palette's signs) in ASCII: the core's own texts are already."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_TWINS = {
    **dict.fromkeys("─━═▁▔▂", "-"),
    **dict.fromkeys("│┃║▏▎▍▌▋▊▉▕", "|"),
    **dict.fromkeys("╭╮╯╰┌┐┘└├┤┬┴┼", "+"),
    **dict.fromkeys("▃▄▅▆▇█", "#"),
    "…": "~",
    "🔎": "> ",
}


@lru_cache(maxsize=4096)
def drawn_in_ascii(text: str) -> str:
    """`text` in as many cells; ``?`` for what has no twin."""
    if text.isascii():
        return text
    return "".join(one if one.isascii() else _TWINS.get(one, "?" * cell_len(one)) for one in text)


class AsciiFilter(LineFilter):
    """Applied to every line before it is written."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(drawn_in_ascii(text), style, control) for text, style, control in segments]
