"""From a job file's bytes to its text, or to the byte that is none.

UTF-8 it is, with line ends LF or CRLF. A byte-order mark, UTF-16, Latin-1 and control characters are refused with
their place: nothing is guessed and no character is replaced, for a name that was read wrong is another job.
"""

from __future__ import annotations

import re

from sexton.jobfiles.problems import FileProblems

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "UTF-8"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def decode(data: bytes, problems: FileProblems) -> str | None:
    """The text that ``data`` is in UTF-8, or None with the fault and its place reported."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            problems.add_at(
                1, 1, f"starts with a byte-order mark ({encoding}, byte 0); save the file as UTF-8 without one"
            )
            return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8", errors="replace"))
        byte = data[error.start]
        problems.add_at(
            line,
            column,
            f"byte {error.start} (0x{byte:02x}) is not UTF-8; save the file as UTF-8, not Latin-1 or UTF-16",
        )
        return None
    if match := _CONTROL.search(text):
        line, column = _position(text[: match.start()])
        code = ord(match[0])
        what = "a NUL byte: is the file UTF-16?" if code == 0 else f"the control character U+{code:04X}"
        problems.add_at(line, column, f"holds {what}; remove it or save the file as UTF-8")
        return None
    return text


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
