"""Sizes in bytes: how job files and settings write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, pattern_schema, read_scalar

_SIZE_UNITS = {
    **{unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), start=1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), start=1)},
}
_SIZE = re.compile(rf"([0-9]{{1,15}})({'|'.join(_SIZE_UNITS)})")


@dataclass(frozen=True, slots=True)
class Size:
    """``512MB`` or ``2GiB``, in bytes: KB, MB, GB, TB count by 1000, KiB, MiB, GiB, TiB by 1024."""

    least: str
    most: str

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = "a size such as 512MB or 2GiB"
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        value = bytes_of(scalar.text)
        if value is None:
            problems.add(node, f"{key}: {shown(scalar.text)} {_why_no_size(scalar.text, wanted)}")
            return BAD
        for bound, is_kept in ((self.least, value >= _known(self.least)), (self.most, value <= _known(self.most))):
            if not is_kept:
                side = "least" if bound is self.least else "most"
                problems.add(node, f"{key}: {shown(scalar.text)} is not allowed; it must be at {side} {bound}")
                return BAD
        return value

    def schema(self) -> JsonSchema:
        return pattern_schema(f"^{_SIZE.pattern}$", "a size such as 512MB or 2GiB")


def bytes_of(text: str) -> int | None:
    """The bytes that ``512MB`` or ``2GiB`` says; None for what is no size."""
    match = _SIZE.fullmatch(text)
    return None if match is None else int(match[1]) * _SIZE_UNITS[match[2]]


def size_text(size: int) -> str:
    """The shortest text that ``bytes_of`` reads back; ``size`` is a whole number of KB or KiB."""
    exact = [f"{size // unit}{name}" for name, unit in _SIZE_UNITS.items() if size % unit == 0]
    return min(exact, key=len)


def _known(text: str) -> int:
    size = bytes_of(text)
    if size is None:
        raise AssertionError(f"the bound {text} is a size")
    return size


def _why_no_size(text: str, wanted: str) -> str:
    match = re.fullmatch(r"([0-9]{1,15})[ ]*([A-Za-z]*)", text)
    if match is None:
        return f"is not {wanted}: a whole number and its unit"
    number, unit = match[1], match[2]
    if not unit:
        return f"has no unit; write e.g. {number}MB"
    near = {known.lower(): known for known in _SIZE_UNITS}
    meant = near.get(unit.lower()) or near.get(f"{unit.lower()}b")
    if meant is None:
        return f"has the unit {shown(unit)}; the units are {', '.join(_SIZE_UNITS)}"
    return f"is not spelt as sizes are; write {number}{meant}"
