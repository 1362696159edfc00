"""From the core's lines and spans to Textual's: never by markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.content import Content

from sexton_tui.console.core.lines import Line, Span, to_ascii

# Content resolves $variables of the theme; Rich's Text (for DataTable) needs colours of the terminal.
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
_TEXT_STYLES = {
    "": "",
    "dim": "dim",
    "strong": "bold",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "warning": "bold black on yellow",
    "alarm": "bold white on red",
}


def content_of(lines: Sequence[Line], *, ascii_only: bool = False) -> Content:
    """The lines one below the other."""
    return Content("\n").join(_line_content(one, ascii_only) for one in lines)


def _line_content(one: Line, ascii_only: bool) -> Content:
    return Content.assemble(
        *((to_ascii(span.text) if ascii_only else span.text, _CONTENT_STYLES[span.style]) for span in one.spans)
    )


def text_of(span: Span, *, ascii_only: bool = False) -> Text:
    """A table's cell."""
    text = to_ascii(span.text) if ascii_only else span.text
    return Text(text, style=_TEXT_STYLES[span.style], no_wrap=True, overflow="crop")
