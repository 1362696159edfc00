"""Marks of an unresolved merge in a job file: the one fault to tell, for all others only follow from it."""

from __future__ import annotations

import re

from sexton.jobfiles.problems import FileProblems, shown

_MARK = re.compile(r"^(?:<{7}|>{7})(?:[ \r].*)?$", re.MULTILINE)
_REST = re.compile(r"^={7}\r?$(?:.*\n)*?>{7}(?:[ \r].*)?$", re.MULTILINE)


def tell_conflicts(text: str | None, problems: FileProblems) -> bool:
    """Whether the file, in which faults were found, holds conflicts; then they are told, and nothing else is."""
    if text is None or not problems.found:
        return False
    conflicts = _conflicts(text)
    if conflicts:
        problems.forget()
    for line, message in conflicts:
        problems.add_at(line, 1, message)
    return bool(conflicts)


def _conflicts(text: str) -> list[tuple[int, str]]:
    """Line and sentence of each conflict, and of each mark that is left of one."""
    found = []
    at = 0
    while mark := _MARK.search(text, at):
        line = text.count("\n", 0, mark.start()) + 1
        said = shown(mark[0].rstrip())
        at = mark.end()
        if mark[0].startswith("<") and (rest := _REST.search(text, at)):
            at = rest.end()
            last = text.count("\n", 0, at) + 1
            message = (
                f"a merge conflict begins here ({said}) and ends in line {last}; keep one of its sides, or both, and "
                "remove the lines with <<<<<<<, ======= and >>>>>>>"
            )
        else:
            message = f"{said} is left of a merge conflict; remove the line, and see what the merge did around it"
        found.append((line, message))
    return found
