"""TOML text as nodes that remember where they stand.

The standard library's reader gives values without places and stops at the first fault. So the structure is read here,
statement by statement: a fault is reported with its line and column, and reading goes on with the next statement, so
that all faults of a file come at once. What a single value means is tomllib's word (``toml_values``), and that this
reader takes and refuses the same documents as tomllib is what its tests prove.

A value that should stand in quotes and does not (``0 2 * * *``, ``Europe/Berlin``) is reported and then read as if it
were quoted.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from sexton.jobfiles.nodes import MAX_DEPTH, MAX_VALUES, Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.toml_tables import Table, Tables
from sexton.jobfiles.toml_values import quoted, scalar_of, text_of

MAX_FAULTS = 200

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n]+|#[^\n]*)*+")
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY_END = re.compile(r"[ \t]*(?:[.=\]:\n#]|\Z)")
_PART_END = re.compile(r"[ \t]*(?:[.\]\n#]|\Z)")
_ODD_KEY = re.compile(r"[^\s.=\[\]{}#\"',:]+(?=[ \t]*[.=])")  # bare, with characters that need quotes
_ODD_PART = re.compile(r"[^.\[\]\n\"'#=]*[^.\[\]\n\"'#= \t](?=[ \t]*[.\]])")  # the same in a header
_LOST_BRACKET = re.compile(r"(?:[\w.-]|\"[^\"\n]*\"|'[^'\n]*')+\]+[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_STRINGS = (
    ('"""', re.compile(r'"""(?:[^"\\]+|\\[\s\S]|"{1,2}(?!"))*+"""(?:"{1,2}+)?')),
    ("'''", re.compile(r"'''(?:[^']+|'{1,2}(?!'))*+'''(?:'{1,2}+)?")),
    ('"', re.compile(r'"(?:[^"\\\n]+|\\[^\n])*+"')),
    ("'", re.compile(r"'[^'\n]*'")),
)
_ALONE = re.compile(r"[^#\n]*")  # an unquoted value that ends with its line
_AMONG = re.compile(r"[^,\]}#\n]*")  # one that ends with a comma or a bracket
_STATEMENT = re.compile(r"^[ \t]*(?:\[\[?[^\[\]\n=]+\]\]?[ \t]*(?:#[^\n]*)?$|[\w.\"'-]+[ \t]*[=:])", re.MULTILINE)


class _Fault(Exception):
    """What is wrong at an offset; ``is_last``: nothing after it can be read."""

    def __init__(self, offset: int, message: str, *, is_last: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.is_last = is_last


def parse(text: str, problems: FileProblems) -> Mapping:
    """All that can be read of the document; every fault goes to ``problems``."""
    text = text.replace("\r\n", "\n")
    if (alone := text.find("\r")) >= 0:
        line = text.count("\n", 0, alone) + 1
        column = alone - text.rfind("\n", 0, alone)
        problems.add_at(line, column, "a carriage return stands alone; save the file with line ends LF or CRLF")
        return Mapping(1, 1)
    return _Reader(text, problems).read()


class _Reader:
    def __init__(self, text: str, problems: FileProblems) -> None:
        self._text = text
        self._at = 0
        self._values = 0
        self._problems = problems
        self._tables = Tables(problems)
        self._is_jobs_lost = False
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def read(self) -> Mapping:
        table = self._tables.root
        faults = 0
        while True:
            self._skip(_BETWEEN)
            if self._at >= len(self._text):
                break
            start = self._at
            try:
                if self._text[start] == "[":
                    table = Table(Mapping(1, 1))  # what follows a header that cannot be read goes nowhere
                    table = self._header()
                elif _LOST_BRACKET.match(self._text, start):
                    self._report(start, f"the header of a table begins with '['; write [{self._rest_of_line()}")
                    table = self._tables.open(self._key(in_header=True), is_item=False)
                    self._at = self._text.index("]", self._at) + 1
                else:
                    self._put(table, *self._entry(_ALONE, 1))
                self._expect_line_end()
            except _Fault as fault:
                faults += 1
                self._problems.add_first_at(*self._position(fault.offset), fault.message)
                self._is_jobs_lost |= self._text[start] == "["
                if fault.is_last or faults >= MAX_FAULTS:
                    break
                self._to_next_statement(max(start, fault.offset))
        root = self._tables.root.node
        if self._is_jobs_lost:  # they stand below a header that could not be read
            root.entries.setdefault("jobs", (Scalar(1, 1, "jobs", is_plain=False), Mapping(1, 1)))
        return root

    # --- statements -------------------------------------------------------------------------------------------------

    def _header(self) -> Table:
        start = self._at
        brackets = 2 if self._text.startswith("[[", start) else 1
        self._at += brackets
        path = self._key(in_header=True)
        closing = "]" * brackets
        if self._text.startswith(closing, self._at):
            self._at += brackets
        elif _LINE_END.match(self._text, self._at):
            self._report(start, f"the header of a table does not end; close it with {closing!r}")
            self._problems.silence_at(path[-1].line, path[-1].column)  # what it lacks may stand in the header
        else:
            raise _Fault(start, f"the header of a table does not end; close it with {closing!r}")
        return self._tables.open(path, is_item=brackets == 2)

    def _entry(self, unquoted: re.Pattern[str], depth: int) -> tuple[list[Scalar], Node, Table | None]:
        """A key, '=' and a value."""
        path = self._key()
        mark = self._text[self._at : self._at + 1]
        if mark == ":":
            self._report(self._at, f"':' stands after the key {shown(path[-1].text)}; TOML writes '='")
        elif mark != "=":
            raise _Fault(self._offset(path[0]), _no_value(path))
        self._at += 1
        self._skip(_BLANK)
        return path, *self._value(unquoted, depth)

    def _put(self, table: Table, path: list[Scalar], value: Node, made: Table | None) -> None:
        self._tables.put(table, path, value, made)

    def _key(self, *, in_header: bool = False) -> list[Scalar]:
        """A key's parts, and the blanks after them."""
        path: list[Scalar] = []
        while True:
            self._skip(_BLANK)
            start = self._at
            match = _BARE_KEY.match(self._text, start)
            is_whole = match and (_PART_END if in_header else _KEY_END).match(self._text, match.end())
            odd = None if is_whole else (_ODD_PART if in_header else _ODD_KEY).match(self._text, start)
            if odd:
                self._at = odd.end()
                text = odd[0]
                self._problems.add_at(
                    *self._position(start),
                    f"{shown(text)} has characters other than A-Z, a-z, 0-9, '_' and '-', which TOML takes in quotes "
                    f"only; write {quoted(text)}, or another name",
                )
            elif match and not self._text.startswith("- ", start):
                self._at = match.end()
                text = match[0]
            elif self._text.startswith(('"""', "'''"), start) or not self._text.startswith(('"', "'"), start):
                raise _Fault(start, self._no_key(start))
            else:
                text = self._string()
            path.append(Scalar(*self._position(start), text, is_plain=False))
            if len(path) > MAX_DEPTH:
                raise _Fault(start, f"is nested deeper than {MAX_DEPTH} levels")
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return path
            self._at += 1

    def _no_key(self, start: int) -> str:
        line = self._text[start : self._text.find("\n", start) if "\n" in self._text[start:] else None].rstrip()
        if line.startswith(("- ", "---")):
            return f"{shown(line)} is YAML; TOML writes tables such as [jobs.backup] and lists such as [1, 2]"
        if line[:1] and not line[0].isascii():
            return f"{shown(line)} is no key of TOML; keys with other letters than A-Z stand in quotes"
        return f'{shown(line)} is not TOML; write a key with a value, such as queue = "fast", or a table [jobs.NAME]'

    def _expect_line_end(self) -> None:
        start = self._at
        match = _LINE_END.match(self._text, start)
        if match is None:
            rest = self._text[start:].partition("\n")[0].strip()
            raise _Fault(
                start, f"{shown(rest)} stands after the end of this line's value; remove it, or quote the whole"
            )
        self._at = match.end()

    def _to_next_statement(self, offset: int) -> None:
        end_of_line = self._text.find("\n", offset)
        match = _STATEMENT.search(self._text, end_of_line + 1) if end_of_line >= 0 else None
        self._at = match.start() if match else len(self._text)

    # --- values -----------------------------------------------------------------------------------------------------

    def _value(self, unquoted: re.Pattern[str], depth: int) -> tuple[Node, Table | None]:
        start = self._at
        if depth > MAX_DEPTH:
            raise _Fault(start, f"is nested deeper than {MAX_DEPTH} levels", is_last=True)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _Fault(start, f"the file holds more than {MAX_VALUES} values; split it into several", is_last=True)
        first = self._text[start : start + 1]
        if first == "[":
            return self._array(depth), None
        if first == "{":
            made = self._inline_table(depth)
            return made.node, made
        if first in ('"', "'") and first:
            return Scalar(*self._position(start), self._string(), is_plain=False), None
        match = unquoted.match(self._text, start)
        token = match[0].rstrip() if match else ""
        self._at = start + len(token)
        return self._scalar(start, token), None

    def _scalar(self, start: int, token: str) -> Scalar:
        if not token:
            raise _Fault(start, "a value is missing; write one, or remove the key")
        try:
            text, is_plain, typed = scalar_of(token)
        except ValueError as error:
            self._report(start, f"{shown(token)} {error}")
            text, is_plain, typed = token, False, ""
        return Scalar(*self._position(start), text, is_plain, typed=typed)

    def _string(self) -> str:
        start = self._at
        for quotes, pattern in _STRINGS:
            if not self._text.startswith(quotes, start):
                continue
            match = pattern.match(self._text, start)
            if match is None:
                where = "" if len(quotes) == 3 else " in its line"
                raise _Fault(start, f"a text does not end{where}; close it with {quotes}", is_last=len(quotes) == 3)
            self._at = match.end()
            try:
                return text_of(match[0])
            except ValueError as error:
                self._report(start, f"{shown(match[0])}: {error}; a text with backslashes may stand in single quotes")
                return match[0].strip(quotes[0])
        raise AssertionError("called where a quote stands")

    def _array(self, depth: int) -> Sequence:
        start = self._at
        node = Sequence(*self._position(start))
        self._at += 1
        while True:
            self._skip(_BETWEEN)
            if self._text.startswith("]", self._at) or self._at >= len(self._text):
                break
            node.items.append(self._value(_AMONG, depth + 1)[0])
            self._skip(_BETWEEN)
            if not self._text.startswith(",", self._at):
                break
            self._at += 1
        if not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise _Fault(start, "a list does not end; close it with ']'")
            raise _Fault(self._at, f"{shown(self._rest_of_line())} stands where a list needs ',' or ']'")
        self._at += 1
        return node

    def _inline_table(self, depth: int) -> Table:
        start = self._at
        tables = Tables(self._problems)
        tables.root.node.line, tables.root.node.column = self._position(start)
        self._at += 1
        self._skip(_BLANK)
        while not self._text.startswith("}", self._at):
            self._refuse_line_break(start)
            tables.put(tables.root, *self._entry(_AMONG, depth + 1))
            self._skip(_BLANK)
            if not self._text.startswith(",", self._at):
                break
            comma = self._at
            self._at += 1
            self._skip(_BLANK)
            if self._text.startswith("}", self._at):
                self._report(comma, "a ',' stands before '}'; remove it, for TOML allows none there")
        if not self._text.startswith("}", self._at):
            self._refuse_line_break(start)
            raise _Fault(self._at, f"{shown(self._rest_of_line())} stands where a table in braces needs ',' or '}}'")
        self._at += 1
        tables.root.is_closed = True
        return tables.root

    def _refuse_line_break(self, start: int) -> None:
        if self._text[self._at : self._at + 1] in ("\n", "#", ""):
            raise _Fault(start, "a table in braces does not end in its line; write it on one, or as [table]")

    # --- places -----------------------------------------------------------------------------------------------------

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()

    def _rest_of_line(self) -> str:
        return self._text[self._at :].partition("\n")[0].strip()

    def _report(self, offset: int, message: str) -> None:
        self._problems.add_first_at(*self._position(offset), message)

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _offset(self, place: Scalar) -> int:
        return self._lines[place.line - 1] + place.column - 1


def _no_value(path: list[Scalar]) -> str:
    key = ".".join(part.text for part in path)
    return f"the key {shown(key)} has no value; write {key} = ..., and quote a key that is not letters and digits"
