"""Which TOML tables there are, which may still be extended, and what a second mention of a key or table means.

TOML lets a table be named once by a header, be implied by the headers of tables inside it, and be filled by dotted keys
within one section only. A table knows how it came to be; a mention that TOML forbids is refused with the line of the
first one, and what follows it is still read, into a table that nobody sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems, shown


@dataclass(slots=True)
class Table:
    """A table being read. ``section``: the one whose dotted keys may extend it; -1 for none."""

    node: Mapping
    is_explicit: bool = False
    is_closed: bool = False  # written inline: nothing may be added
    section: int = -1
    tables: dict[str, Table] = field(default_factory=dict)
    lists: dict[str, list[Table]] = field(default_factory=dict)  # arrays of tables


class Tables:
    """All tables of one document."""

    def __init__(self, problems: FileProblems) -> None:
        self._problems = problems
        self.root = Table(Mapping(1, 1))
        self._section = 0

    def open(self, path: list[Scalar], *, is_item: bool) -> Table:
        """The table that a header names: a new item where ``is_item`` (two brackets)."""
        self._section += 1
        table = self.root
        for part in path[:-1]:
            below = self._below(table, part)
            if below is None:
                self._report_taken(table, part)
                return _unseen(part)
            table = below
        name = path[-1]
        if is_item:
            return self._new_item(table, name)
        known = table.tables.get(name.text)
        if known is None and name.text not in table.node.entries:
            known = self._add_table(table, name)
        elif known is None or known.is_explicit or known.is_closed:
            self._report_again(table, name, "the table")
            return _unseen(name)
        known.is_explicit = True
        return known

    def put(self, table: Table, path: list[Scalar], value: Node, made: Table | None) -> None:
        """``value`` under a key, dotted or not, of ``table``; ``made`` is the inline table that it is."""
        for part in path[:-1]:
            known = table.tables.get(part.text)
            if known is None:
                if part.text in table.node.entries:
                    self._report_again(table, part, "the key")
                    return
                known = self._add_table(table, part)
            elif known.is_closed or (known.is_explicit and known.section != self._section):
                self._report_again(table, part, "the table")
                return
            known.is_explicit = True
            known.section = self._section
            table = known
        name = path[-1]
        if name.text in table.node.entries:
            self._report_again(table, name, "the key")
            return
        table.node.entries[name.text] = (name, value)
        if made is not None:
            table.tables[name.text] = made

    def _below(self, table: Table, part: Scalar) -> Table | None:
        """The table under ``part``, made where there is none; None where something else stands there."""
        if (items := table.lists.get(part.text)) is not None:
            return items[-1]
        known = table.tables.get(part.text)
        if known is None and part.text not in table.node.entries:
            return self._add_table(table, part)
        return known if known is not None and not known.is_closed else None

    def _new_item(self, table: Table, name: Scalar) -> Table:
        item = Table(Mapping(name.line, name.column), is_explicit=True)
        if name.text not in table.node.entries:
            table.node.entries[name.text] = (name, Sequence(name.line, name.column))
            table.lists[name.text] = []
        elif name.text not in table.lists:
            self._report_taken(table, name)
            return _unseen(name)
        sequence = table.node.entries[name.text][1]
        if isinstance(sequence, Sequence):
            sequence.items.append(item.node)
        table.lists[name.text].append(item)
        return item

    def _add_table(self, table: Table, name: Scalar) -> Table:
        added = Table(Mapping(name.line, name.column))
        table.node.entries[name.text] = (name, added.node)
        table.tables[name.text] = added
        return added

    def _report_again(self, table: Table, name: Scalar, what: str) -> None:
        line = table.node.entries[name.text][0].line
        self._problems.add(
            name, f"{what} {shown(name.text)} stands here a second time (first in line {line}); keep one"
        )

    def _report_taken(self, table: Table, name: Scalar) -> None:
        line = table.node.entries[name.text][0].line
        self._problems.add(
            name,
            f"{shown(name.text)} has a value of another kind in line {line}, to which no table can be added; "
            "give it another name, or write it as tables from the start",
        )


def _unseen(name: Scalar) -> Table:
    return Table(Mapping(name.line, name.column), is_explicit=True)
