"""What a listing says of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the row's key, its title (the key, unless given), and where its text stands.

    ``is_note``: prose, which may stand under its row. ``gives_way``: columns of a higher rank go sooner where a
    terminal is narrow; 0 stays. ``usual``: the text that says nothing once the column has gone; so does that of the
    column whose key is ``same_as``. ``folds``: a name, which may be folded. ``in_seconds``: an instant whose fraction
    says nothing to people.
    """

    key: str
    title: str = ""
    align: Literal["left", "right"] = "left"
    is_note: bool = False
    gives_way: int = 0
    usual: str = "-"
    same_as: str = ""
    folds: bool = False
    in_seconds: bool = False

    @property
    def heading(self) -> str:
        return self.title or self.key
