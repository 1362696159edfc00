"""What is wrong with job files, collected: one list for all files, each fault with its place."""

from __future__ import annotations

from typing import Protocol

from sexton.errors import Problem

SHOWN_CHARACTERS = 60
LONGEST_MESSAGE = 2_000


class Place(Protocol):
    """Where something stands in a file; both count from 1."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class FileProblems:
    """The faults of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self._first: dict[tuple[int, int], Problem] = {}

    @property
    def format(self) -> str:
        """``yaml``, ``toml`` or ``python``: how the file writes what a remedy tells its author to write."""
        suffix = self.file.lower().rpartition(".")[2]
        return {"toml": "toml", "py": "python"}.get(suffix, "yaml")

    def add(self, place: Place, message: str) -> None:
        """One fault at a place; ``message`` names the faulty value and what to write instead."""
        self.add_at(place.line, place.column, message)

    def add_at(self, line: int, column: int, message: str) -> None:
        """One fault at a line and column, both from 1."""
        if len(message) > LONGEST_MESSAGE:
            message = message[:LONGEST_MESSAGE] + "…"
        if not message.isprintable():
            message = printable(message)
        self.found.append(Problem(self.file, line, column, message))

    def add_first_at(self, line: int, column: int, message: str) -> None:
        """The same for a fault that says all: what is found later at its place only follows from it."""
        self.add_at(line, column, message)
        self._first.setdefault((line, column), self.found[-1])

    def silence_at(self, line: int, column: int) -> None:
        """Nothing is told of what is found at this place: it only follows from a fault elsewhere."""
        self._first[line, column] = Problem(self.file, line, column, "")

    def forget(self) -> None:
        """All that was found only follows from what is told next."""
        self.found.clear()
        self._first.clear()

    def told(self) -> list[Problem]:
        """What the author is told: all that was found but what only follows from a first fault."""
        return [one for one in self.found if self._first.get((one.line, one.column), one) is one]


def printable(text: str) -> str:
    """``text`` with every character written out that acts on a terminal, or shows nothing."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def shown(text: str) -> str:
    """``text`` quoted, short, and unable to act on a terminal."""
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
