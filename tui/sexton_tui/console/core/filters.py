"""What ``/`` takes on every list: letters of a name, and ``state: queue: owner: tag:`` with what they are to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sexton.errors import InvalidInput
from sexton_tui.console.core.lines import Row

KEYS = ("state", "queue", "owner", "tag")
_STRAIGHT = {"queue": ("queue", "queues"), "state": ("state", "outcome"), "owner": ("owner",), "tag": ("tag", "tags")}


@dataclass(frozen=True, slots=True)
class Filter:
    """All of it must hold; what is empty asks for nothing. ``letters``: in their order, others may be between them."""

    letters: str = ""
    state: str = ""
    queue: str = ""
    owner: str = ""
    tag: str = ""

    @property
    def is_empty(self) -> bool:
        return self == Filter()


def parse_filter(text: str, keys: Sequence[str] = KEYS) -> Filter:
    """The filter that the text asks for, of these keys. Raises ``InvalidInput`` with what to write."""
    letters: list[str] = []
    found: dict[str, str] = {}
    for word in text.split():
        key, colon, value = word.partition(":")
        key = key.lower()
        if not colon or not key.isalpha():
            letters.append(word)
            continue
        if key not in keys:
            known = " ".join(f"{one}:" for one in keys)
            raise InvalidInput(f"this list has no {key}:", hint=f"write letters{', or ' + known if known else ''}")
        if not value:
            raise InvalidInput(f"{key}: wants a word behind it", hint=f"write {key}:WORD, without a space")
        if key in found:
            raise InvalidInput(f"{key}: is there twice", hint="all of a filter must hold: write one of them")
        found[key] = value
    return Filter(letters=" ".join(letters), **found)


def keys_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The keys that a list with these columns can answer from its cells."""
    return tuple(key for key in KEYS if any(title in columns for title in _STRAIGHT[key]))


def holds_letters(text: str, letters: str) -> bool:
    """Whether the letters are in the text, in their order, case and spaces aside."""
    at = 0
    text = text.lower()
    for letter in letters.lower():
        if letter.isspace():
            continue
        at = text.find(letter, at) + 1
        if not at:
            return False
    return True


def filtered(rows: Sequence[Row], columns: Sequence[str], which: Filter) -> list[Row]:
    """The rows that pass: by the letters of their first cell, or as these stand in another one; by words in the columns
    that are called so."""
    return [row for row in rows if _passes(row, columns, which)]


def _passes(row: Row, columns: Sequence[str], which: Filter) -> bool:
    stands = which.letters.lower()
    if stands and not any(stands in cell.text.lower() for cell in row.cells):
        return holds_letters(row.cells[0].text, stands) and _passes(row, columns, replace(which, letters=""))
    for key in KEYS:
        wanted = getattr(which, key).lower()
        if not wanted:
            continue
        cells = [cell.text.lower() for title, cell in zip(columns, row.cells, strict=True) if title in _STRAIGHT[key]]
        if not any(wanted in [part.strip() for part in cell.split(",")] for cell in cells):
            return False
    return True


def filter_words(text: str, shown: int, total: int) -> str:
    """What is filtered, and how to end that."""
    return f"found by {text!r}: {shown:,} of {total:,}; escape shows all"
