"""What is wrong with job files, collected: one list for all files, each fault with its place."""

from __future__ import annotations

from typing import Protocol

from sexton.errors import Problem

SHOWN_CHARACTERS = 60


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

    def add(self, place: Place, message: str) -> None:
        """One fault at a place; ``message`` names the faulty value and what to write instead."""
        self.add_at(place.line, place.column, message)

    def add_at(self, line: int, column: int, message: str) -> None:
        """One fault at a line and column, both from 1."""
        self.found.append(Problem(self.file, line, column, message))


def shown(text: str) -> str:
    """``text`` quoted, short, and unable to act on a terminal."""
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
