"""From the core's lines and spans to Textual's: never by markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.strip import Strip

from sexton_tui.console.core.lines import Line, Span, to_ascii

# Content resolves $variables of the theme; for Rich's Text (of DataTable) ``themes.cell_styles`` does.
_CONTENT_STYLES = {
    "": "",
    "dim": "$text-muted",
    "strong": "bold",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "bold $text-error",
    "warning": "bold",  # the banner has the colours
    "alarm": "bold",
}


def content_of(lines: Sequence[Line], *, ascii_only: bool = False) -> Content:
    """The lines one below the other."""
    return Content("\n").join(_line_content(one, ascii_only) for one in lines)


def _line_content(one: Line, ascii_only: bool) -> Content:
    return Content.assemble(
        *((to_ascii(span.text) if ascii_only else span.text, _CONTENT_STYLES[span.style]) for span in one.spans)
    )


def text_of(span: Span, styles: Mapping[str, str], *, ascii_only: bool = False) -> Text:
    """A table's cell, in the styles of ``themes.cell_styles``."""
    text = to_ascii(span.text) if ascii_only else span.text
    return Text(text, style=styles[span.style], no_wrap=True, overflow="crop")


def strip_of(one: Line, width: int, style: Style) -> Strip:
    """The line's text as a row of a table that is `width` cells wide."""
    return Strip([Segment(f" {one.text}", style)]).crop_extend(0, width, style)
