"""Lines of styled, cleaned text: all that the core hands to widgets.

Every text passes ``clean`` when a line or a cell is made, so that no name, error or output can reach the terminal as a
control character. Widgets never parse what they get as markup.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from sexton_tui.console.core.subjects import Subject

# Styles are words; the widgets know their colours. No meaning hangs on a colour alone.
PLAIN = ""
DIM = "dim"
STRONG = "strong"
GOOD = "good"
WARN = "warn"
BAD = "bad"
WARNING = "warning"  # a band over the whole line: must not be overlooked
ALARM = "alarm"  # the same, and urgent

# Characters that draw nothing or turn the direction of what follows: bidi controls and zero-width ones are category Cf.
_SHOWN_AS_ESCAPE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def clean(text: str) -> str:
    """`text` with every control, bidi and zero-width character shown as an escape: ``\\x1b``, ``\\u202e``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _SHOWN_AS_ESCAPE:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def to_ascii(text: str) -> str:
    """`text` with what ASCII lacks as escapes, but for the few signs that have a twin."""
    if text.isascii():
        return text
    return "".join(
        character if character.isascii() else _TWINS.get(character, _escape(character)) for character in text
    )


_TWINS = {
    "●": "*",
    "○": "o",
    "▸": ">",
    "·": "-",
    "…": "~",
    "→": "->",
    "—": "-",
    "–": "-",
    "▲": "^",
    "×": "x",
    "✗": "X",
}


def _escape(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of cleaned text in one style."""

    text: str
    style: str = PLAIN


@dataclass(frozen=True, slots=True)
class Line:
    """One line on the screen."""

    spans: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


Part = str | tuple[str, str]


def line(*parts: Part) -> Line:
    """A line of texts, each plain or with a style; cleaned."""
    spans = []
    for part in parts:
        text, style = (part, PLAIN) if isinstance(part, str) else part
        if text:
            spans.append(Span(clean(text), style))
    return Line(tuple(spans))


def fit(one: Line, width: int) -> Line:
    """The line cut to `width` cells, with ``…`` where something was cut off."""
    if cell_len(one.text) <= width:
        return one
    spans, room = [], width - 1
    for span in one.spans:
        size = cell_len(span.text)
        if size > room:
            spans.append(Span(set_cell_size(span.text, max(room, 0)) + "…", span.style))
            break
        spans.append(span)
        room -= size
    return Line(tuple(spans))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its key among the others, its cells, and what it is about."""

    key: str
    cells: tuple[Span, ...]
    about: Subject | None = None


_LONGEST_CELL = 200  # characters, more than any column shows; what is behind them costs no time


def row(key: str, *cells: Part, about: Subject | None = None) -> Row:
    """A row of texts, each plain or with a style; cleaned, and cut where no column has room for it."""
    made = []
    for cell in cells:
        text, style = (cell, PLAIN) if isinstance(cell, str) else cell
        cut = text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"
        made.append(Span(clean(cut), style))
    return Row(key, tuple(made), about)


def text_lines(data: bytes | str) -> tuple[Line, ...]:
    """Untrusted output as lines: undecodable bytes and controls shown as escapes, tabs widened."""
    text = data.decode(errors="backslashreplace") if isinstance(data, bytes) else data
    return tuple(line(one.expandtabs(8)) for one in text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
