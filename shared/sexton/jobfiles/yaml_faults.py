"""What YAML's reader stopped at, said so that the author can mend it: the place, the text there, the remedy."""

from __future__ import annotations

import re
from typing import Any

import yaml

from sexton.jobfiles.nodes import MAX_DEPTH, Mapping, Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.secret_texts import shown_text

_ODD_BLANK = re.compile("[\u00a0\u1680\u2000-\u200f\u202f\u205f\u2060\u3000\ufeff]")
# Line breaks to YAML 1.1, ordinary characters to YAML 1.2 and to editors.
_NO_BLANK = re.compile(r"\s*(?:- +)*(?P<key>[a-z_]+):(?=[^\s:/])(?!.*:(?: |$))")
_SURROGATE = re.compile(r"\\u([dD][89a-fA-F][0-9a-fA-F]{2})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?")
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ODD_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


def report_odd_breaks(text: str, problems: FileProblems) -> bool:
    """Whether the text has line breaks that YAML readers and editors do not agree about; the first is reported."""
    match = _ODD_BREAK.search(text)
    if match is None:
        return False
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    if match[0] == "\r":
        message = "a carriage return stands alone; save the file with line ends LF or CRLF"
    else:
        code = f"{ord(match[0]):04X}"
        message = f'U+{code} breaks the line for some YAML readers only; write "\\u{code.lower()}" in double quotes'
    problems.add_at(line, column, message)
    return True


def report_fault(text: str, error: yaml.MarkedYAMLError, problems: FileProblems, below: int = -1) -> int:
    """Report the fault that ended the reading, if it lies below a line; its line, counted from 0."""
    lines = text.split("\n")
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    began = (error.context_mark.line, error.context_mark.column) if error.context_mark is not None else (line, column)
    here = lines[line].rstrip("\r") if line < len(lines) else ""
    started = lines[began[0]].rstrip("\r") if began[0] < len(lines) else ""
    problem = str(error.problem or error.context or "this is not YAML")
    at = (line, column)
    if (opened := quote_opened_above(text, error)) is not None:
        at = opened
        message = (
            f"the quoted text that begins here does not end in its line but in line {line + 1}, before "
            f"{shown(here[column:].strip())}; close its quotes"
        )
    elif "\t" in here[: column + 1] and not here[:column].strip():
        message = "a tab stands in the indentation; YAML takes blanks only, so replace it by blanks"
    elif "maximum nesting depth" in problem:
        message = f"is nested deeper than {MAX_DEPTH} levels"
    elif (odd := _odd_blank(lines, (line, began[0], line - 1))) is not None:
        at, odd_blank = odd
        message = f"U+{ord(odd_blank):04X} stands in this line and looks like a blank; replace it by an ordinary one"
    elif "end of stream" in problem:
        at = began
        message = f"the quoted text {shown(started[began[1] :])} does not end; close its quotes"
    elif "mapping values are not allowed" in problem and (keyless := _keyless_line_above(lines, line)) is not None:
        at = (keyless, _indentation(lines[keyless]))
        message = f"{shown(lines[keyless].strip())} is no key with a value; write 'key: value', or a ':' at its end"
    elif "mapping values are not allowed" in problem:
        where = f"a ':' stands where none can be in {shown(here.strip())}"
        message = f"{where}; quote the text it belongs to, or mend the indentation"
    elif "could not find expected ':'" in problem:
        at = began
        message = f"{shown(started.strip())} is no key with a value; write 'key: value', with a blank after the colon"
    elif "expected ',' or" in problem:
        at = began
        what, mark_needed = ("list", "]") if "sequence" in str(error.context) else ("mapping", "}")
        message = (
            f"the {what} {shown(started[began[1] :])} is not closed where it should be; write ',' or '{mark_needed}'"
        )
    elif "block sequence entries are not allowed" in problem:
        message = f"a list cannot begin in this line ({shown(here.strip())}); begin it in the next, or write [a, b]"
    elif "did not find expected key" in problem or "did not find expected '-' indicator" in problem:
        message = _why_no_key(here, column)
    elif "unknown escape" in problem or "escape" in problem or "hexdecimal" in problem:
        message = _why_no_escape(here, column)
    else:
        context = f" {error.context}" if error.context else ""
        message = f"{shown(here.strip())} is not YAML:{context} {problem}; mend it, or quote the text"
    if at[0] > below:
        problems.add_at(at[0] + 1, at[1] + 1, shown_text("", message))
    return at[0]


def quote_opened_above(text: str, error: yaml.MarkedYAMLError) -> tuple[int, int] | None:
    """Where the quoted text begins that ends just before the fault, if that is in a line above."""
    mark = error.problem_mark or error.context_mark
    if re.match("while scanning an? (?:alias|anchor|tag|directive)", str(error.context)):
        mark = error.context_mark
    if mark is None or not text[max(mark.index - 1_000, 0) : mark.index].rstrip(" ").endswith(("'", '"')):
        return None
    last: Any = None
    try:
        for token in yaml.scan(text, Loader=_LOADER):
            if token.start_mark.index >= mark.index:
                break
            last = token
    except yaml.MarkedYAMLError:
        pass  # the fault itself
    if not isinstance(last, yaml.ScalarToken) or last.plain or last.style not in ("'", '"'):
        return None
    between = text[last.end_mark.index : mark.index]
    if between.strip(" ") or last.start_mark.line == last.end_mark.line:
        return None
    return last.start_mark.line, last.start_mark.column


def with_blank_after_colon(text: str, error: yaml.MarkedYAMLError, problems: FileProblems) -> str | None:
    """The text with the blank that is missing after a key's colon (reported); None where that is not the fault."""
    problem, mark = str(error.problem), error.problem_mark
    if mark is None or not ("mapping values are not allowed" in problem or "could not find expected ':'" in problem):
        return None
    lines = text.split("\n")
    numbers = [number for number in range(min(mark.line, len(lines) - 1), -1, -1) if lines[number].strip()][:3]
    for number in numbers:
        match = _NO_BLANK.match(lines[number])
        if match is not None:
            key = match["key"]
            problems.add_at(number + 1, match.start("key") + 1, f"no blank follows '{key}:'; write one after the colon")
            lines[number] = f"{match[0]} {lines[number][match.end() :]}"
            return "\n".join(lines)
    return None


def without_line(text: str, line: int) -> str | None:
    """The text with this line emptied, and the deeper ones that follow it; None where too much would go with it."""
    lines = text.split("\n")
    if line >= len(lines):
        return None
    depth = _indentation(lines[line])
    if depth == 0:
        return None
    lines[line] = ""
    for number in range(line + 1, len(lines)):
        if lines[number].strip() and _indentation(lines[number]) <= depth:
            break
        lines[number] = ""
    return "\n".join(lines)


def spare_jobs_of(root: Node | None, faulty_lines: list[int], problems: FileProblems) -> Node | None:
    """The document; of the jobs in which these lines stand it is not told what they lack."""
    if not faulty_lines or not isinstance(root, Mapping):
        return root
    jobs = root.entries.get("jobs", (None, None))[1]
    if not isinstance(jobs, Mapping):  # the fault took it, or is it
        return None
    starts = [(key.line, name) for name, (key, _) in jobs.entries.items()]
    for line in faulty_lines:
        before = [name for start, name in starts if start <= line + 1]
        if before:
            node = jobs.entries[before[-1]][1]
            problems.silence_at(node.line, node.column)
    return root


def _why_no_escape(here: str, column: int) -> str:
    if match := _SURROGATE.match(here, max(column - 2, 0)):
        high, low = int(match[1], 16), int(match[2] or "0", 16)
        if high < 0xDC00 and low:
            code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            return (
                f'{match[0]} is one character in two halves, as JSON writes it; write "\\U{code:08X}", or the character'
            )
        return f"{match[0]} is half a character, which stands for nothing; remove it"
    return f"{shown(here[column:])} follows a backslash that means nothing here; quote the text with ' instead of \""


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _odd_blank(lines: list[str], numbers: tuple[int, ...]) -> tuple[tuple[int, int], str] | None:
    """Place and character of what looks like a blank in the first of these lines that has one."""
    for number in numbers:
        if 0 <= number < len(lines) and (match := _ODD_BLANK.search(lines[number])):
            return (number, match.start()), match[0]
    return None


def _keyless_line_above(lines: list[str], line: int) -> int | None:
    """The line above, if this one is indented below it as below a key, and it is none."""
    above = next((number for number in range(line - 1, -1, -1) if lines[number].strip()), None)
    if above is None or _indentation(lines[above]) >= _indentation(lines[line]):
        return None
    return above if ":" not in lines[above] and not lines[above].lstrip().startswith(("-", "#")) else None


def _why_no_key(here: str, column: int) -> str:
    before, rest = here[:column].rstrip(), here[column:].strip()
    if before.endswith(("'", '"')):
        twice = "write '' for a ' within, or quote the text with \"" if before.endswith("'") else "quote the whole text"
        return f"{shown(rest)} stands after the end of a quoted text; {twice}"
    if rest.startswith(("]", "}")):
        return f"a {rest[0]!r} stands here that closes nothing; remove it, or quote the text"
    if not before and rest.startswith("- "):
        return f"the list item {shown(rest)} stands among keys; indent it below the key it belongs to"
    if not before and rest.startswith(":"):
        return f"{shown(rest)} has no key; write one before the ':'"
    if not before:
        return f"the indentation of {shown(rest)} fits no line above it; keys of one mapping begin in one column"
    return f"{shown(rest)} stands where a key should; quote the text it belongs to, or mend the indentation"
